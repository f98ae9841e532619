// Persistent memory for RocksDB, for C++.
//
//   std::string error;
//   auto memory = chimera_placement::PersistentMemory::Open("/mnt/pmem0", 8ull << 30, true, &error);
//   rocksdb::LRUCacheOptions cache;
//   cache.capacity = 6ull << 30;
//   table_options.block_cache = memory->NewBlockCache(cache, 100);
//
// Link with libchimera_placement.a and RocksDB.
#pragma once

#include <rocksdb/cache.h>
#include <rocksdb/memory_allocator.h>
#include <rocksdb/memtablerep.h>
#include <rocksdb/secondary_cache.h>

#include <cstdint>
#include <memory>
#include <string>

struct ChimeraArena;

namespace chimera_placement {

// A file on persistent memory, mapped as volatile memory. It is removed when the last of what was made of it is gone.
class PersistentMemory {
 public:
  // Makes a file of `bytes` bytes in `directory`. With `require_dax`, a directory that is not on a DAX file system is an error.
  // On errors the result is null, and `error` says what to do.
  static std::shared_ptr<PersistentMemory> Open(const std::string& directory, uint64_t bytes,
                                                bool require_dax, std::string* error);
  ~PersistentMemory();
  PersistentMemory(const PersistentMemory&) = delete;
  PersistentMemory& operator=(const PersistentMemory&) = delete;

  // Memory of which `percent` percent lie in persistent memory.
  std::shared_ptr<rocksdb::MemoryAllocator> NewAllocator(int percent) const;
  // A block cache of which `percent` percent lie in persistent memory. Where that is full, the cache does not keep a block.
  // Null when `options` has a secondary cache: RocksDB takes blocks back from one into DRAM, by no allocator.
  std::shared_ptr<rocksdb::Cache> NewBlockCache(rocksdb::LRUCacheOptions options,
                                                int percent) const;
  // Memtables of which `percent` percent lie in persistent memory. They need allow_concurrent_memtable_write = false.
  std::shared_ptr<rocksdb::MemTableRepFactory> NewMemTableFactory(int percent) const;
  // A tier behind a block cache in DRAM, for LRUCacheOptions::secondary_cache. It keeps blocks that go back to DRAM.
  std::shared_ptr<rocksdb::SecondaryCache> NewTier(uint64_t capacity_bytes, bool compresses) const;
  // A block cache in DRAM, as `options` say, with a tier behind it. An exclusive tier gives up blocks that go back to DRAM, and
  // RocksDB takes a block back at its second hit only.
  // On errors the result is null, and `error` says what to do: `options` have a secondary cache already, or a strict limit of
  // their capacity with an exclusive tier, which RocksDB 7.8.3 does not survive. SetStrictCapacityLimit has no effect with one.
  std::shared_ptr<rocksdb::Cache> NewTieredCache(rocksdb::LRUCacheOptions options,
                                                 uint64_t capacity_bytes, bool compresses,
                                                 bool is_exclusive, std::string* error) const;

 private:
  std::shared_ptr<rocksdb::SecondaryCache> MakeTier(uint64_t capacity_bytes, bool compresses,
                                                    bool is_exclusive) const;

  explicit PersistentMemory(const ChimeraArena* arena) : arena_(arena) {}

  const ChimeraArena* arena_;
};

}  // namespace chimera_placement
