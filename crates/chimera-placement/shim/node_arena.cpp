#include "node_arena.h"

#include <cstdlib>

namespace chimera_placement {

NodeArena::~NodeArena() {
  for (char* block : blocks_) {
    chimera_heap_free(heap_.get(), block);
  }
}

char* NodeArena::NewBlock(size_t size, bool in_pmem) {
  // Where persistent memory is full, the block comes from DRAM: a memtable cannot refuse a write.
  auto* block = static_cast<char*>(chimera_heap_allocate_in(heap_.get(), size, in_pmem));
  if (block == nullptr) {
    // DRAM is used up as well. RocksDB would write through the null pointer.
    std::abort();
  }
  blocks_.push_back(block);
  return block;
}

char* NodeArena::Allocate(size_t size) {
  size = (size + 7) & ~size_t{7};
  const bool in_pmem = chimera_heap_takes(heap_.get(), pmem_used_, used_, size);
  used_ += size;
  pmem_used_ += in_pmem ? size : 0;
  if (size > kLarge) {
    char* block = NewBlock(size, in_pmem);
    Count(chimera_heap_usable_bytes(heap_.get(), block));
    return block;
  }
  Rest& rest = in_pmem ? pmem_ : dram_;
  if (rest.length < size) {
    char* block = NewBlock(kBlock, in_pmem);
    Count(rest.length);
    rest = {block, kBlock};
  }
  Count(size);
  char* object = rest.at;
  rest.at += size;
  rest.length -= size;
  return object;
}

}  // namespace chimera_placement
