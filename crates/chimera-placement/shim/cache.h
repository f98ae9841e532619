// PlacedCache: a block cache around another one, whose blocks lie where a PlacedAllocator says.
//
// - A block that had no room in persistent memory is not kept: whoever inserts it gets its handle, and the block is gone when
//   the handle is. After some such blocks the least recently used ones of the cache give up a part of it, so that what is hot
//   now gets in although persistent memory, and not the capacity, is the limit. (A HyperClockCache gives up nothing then.)
// - With a model of the device, each lookup that finds a block in persistent memory reads the whole block from the media, once,
//   and waits as long as that takes.
//
// Everything else is what the cache inside does.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "allocator.h"
#include "forwarding_cache.h"

namespace chimera_placement {

struct CacheCounts {
  uint64_t pmem_hits = 0;
  uint64_t refused = 0;
};

class PlacedCache : public ForwardingCache {
 public:
  // `inside` allocates with `allocator`.
  PlacedCache(std::shared_ptr<rocksdb::Cache> inside, std::shared_ptr<PlacedAllocator> allocator);

  CacheCounts counts() const;

  const char* Name() const override { return "chimera.PlacedCache"; }

  rocksdb::Status Insert(const rocksdb::Slice& key, void* value, size_t charge, DeleterFn deleter,
                         Handle** handle, Priority priority) override;
  rocksdb::Status Insert(const rocksdb::Slice& key, void* value, const CacheItemHelper* helper,
                         size_t charge, Handle** handle, Priority priority) override;
  Handle* Lookup(const rocksdb::Slice& key, rocksdb::Statistics* stats) override;
  Handle* Lookup(const rocksdb::Slice& key, const CacheItemHelper* helper,
                 const CreateCallback& create, Priority priority, bool wait,
                 rocksdb::Statistics* stats) override;
  void SetCapacity(size_t capacity) override;

 private:
  struct Bytes {
    const void* object;
    size_t length;
  };
  // Where the bytes of blocks are, by the address of what the cache keeps of them. An entry is replaced when another block gets
  // that address, so the map is as large as there are such addresses.
  struct Shard {
    std::mutex mutex;
    std::unordered_map<const void*, Bytes> bytes;
  };

  Shard& ShardOf(const void* value) {
    return shards_[(reinterpret_cast<uintptr_t>(value) >> 6) % shards_.size()];
  }
  // Before an insertion: where the block lies that comes next. True when it is not to be kept.
  bool Register(const void* value);
  Handle* Charge(Handle* handle);
  // Gives up a block that had no room, and now and then others.
  void Refuse(const rocksdb::Slice& key);

  // After so many blocks without room, one of so many that the cache has is given up.
  static constexpr size_t kRefusalsForRoom = 64;

  const std::shared_ptr<PlacedAllocator> allocator_;
  const bool has_model_;
  std::array<Shard, 64> shards_;
  // Held while the capacity is changed.
  std::mutex capacity_mutex_;
  std::atomic<uint64_t> pmem_hits_{0};
  std::atomic<uint64_t> refused_{0};
};

}  // namespace chimera_placement
