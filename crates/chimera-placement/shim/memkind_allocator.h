// MemkindAllocator: the allocator of the published study, libmemkind's, as a reference beside ours.
#pragma once

#include <rocksdb/memory_allocator.h>
#include <rocksdb/status.h>

#include <cstdint>
#include <memory>
#include <string>

namespace chimera_placement {

// Whether it is built in: the feature `memkind`.
bool HasMemkind();

// Memory of a temporary file of `bytes` bytes in `directory`.
rocksdb::Status NewMemkindAllocator(const std::string& directory, uint64_t bytes,
                                    std::shared_ptr<rocksdb::MemoryAllocator>* allocator);

}  // namespace chimera_placement
