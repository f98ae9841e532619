#include <chimera_placement.h>

#include "allocator.h"
#include "cache.h"
#include "memtable.h"
#include "tier.h"

extern "C" {

// An `Arena`, shared and counted. Null on errors, and then `message` says what to do.
const ChimeraArena* chimera_arena_open(const char* directory, size_t length, uint64_t bytes,
                                       bool require_dax, char* message, size_t message_length);
void chimera_arena_release(const ChimeraArena* arena);
// The caller owns a reference to the result. Percent above 100 count as 100.
const ChimeraHeap* chimera_heap_new(const ChimeraArena* arena, uint8_t percent);
const ChimeraTier* chimera_tier_new(const ChimeraArena* arena, uint64_t capacity, bool compresses);

}  // extern "C"

namespace chimera_placement {

namespace {

constexpr size_t kMessageBytes = 1024;

// Runs `make` with a heap of its own, which what is made keeps.
template <typename Make>
auto WithHeap(const ChimeraArena* arena, int percent, Make make) {
  const int bounded = percent < 0 ? 0 : percent > 100 ? 100 : percent;
  // Also given up where there is no memory for what is made.
  const std::unique_ptr<const ChimeraHeap, void (*)(const ChimeraHeap*)> heap(
      chimera_heap_new(arena, static_cast<uint8_t>(bounded)), chimera_heap_release);
  return make(heap.get());
}

}  // namespace

std::shared_ptr<PersistentMemory> PersistentMemory::Open(const std::string& directory,
                                                         uint64_t bytes, bool require_dax,
                                                         std::string* error) {
  char message[kMessageBytes] = "";
  const ChimeraArena* arena = chimera_arena_open(directory.data(), directory.size(), bytes,
                                                 require_dax, message, sizeof(message));
  if (arena == nullptr) {
    *error = message;
    return nullptr;
  }
  return std::shared_ptr<PersistentMemory>(new PersistentMemory(arena));
}

PersistentMemory::~PersistentMemory() { chimera_arena_release(arena_); }

std::shared_ptr<rocksdb::MemoryAllocator> PersistentMemory::NewAllocator(int percent) const {
  return WithHeap(arena_, percent, [](const ChimeraHeap* heap) {
    return std::make_shared<PlacedAllocator>(heap);
  });
}

std::shared_ptr<rocksdb::Cache> PersistentMemory::NewBlockCache(rocksdb::LRUCacheOptions options,
                                                                int percent) const {
  if (options.secondary_cache != nullptr) {
    return nullptr;
  }
  return WithHeap(arena_, percent, [&](const ChimeraHeap* heap) -> std::shared_ptr<rocksdb::Cache> {
    auto allocator = std::make_shared<PlacedAllocator>(heap);
    options.memory_allocator = allocator;
    return std::make_shared<PlacedCache>(rocksdb::NewLRUCache(options), allocator);
  });
}

std::shared_ptr<rocksdb::MemTableRepFactory> PersistentMemory::NewMemTableFactory(
    int percent) const {
  return WithHeap(arena_, percent, [](const ChimeraHeap* heap) {
    return std::make_shared<PlacedMemTableFactory>(heap);
  });
}

std::shared_ptr<rocksdb::SecondaryCache> PersistentMemory::MakeTier(uint64_t capacity_bytes,
                                                                    bool compresses,
                                                                    bool is_exclusive) const {
  const std::unique_ptr<const ChimeraTier, void (*)(const ChimeraTier*)> tier(
      chimera_tier_new(arena_, capacity_bytes, compresses), chimera_tier_release);
  return std::make_shared<PlacedTier>(tier.get(), is_exclusive);
}

std::shared_ptr<rocksdb::SecondaryCache> PersistentMemory::NewTier(uint64_t capacity_bytes,
                                                                   bool compresses) const {
  return MakeTier(capacity_bytes, compresses, false);
}

std::shared_ptr<rocksdb::Cache> PersistentMemory::NewTieredCache(rocksdb::LRUCacheOptions options,
                                                                 uint64_t capacity_bytes,
                                                                 bool compresses,
                                                                 bool is_exclusive,
                                                                 std::string* error) const {
  if (options.secondary_cache != nullptr) {
    *error = "the options of the cache have a secondary cache already; leave it out";
    return nullptr;
  }
  if (is_exclusive && options.strict_capacity_limit) {
    *error = "an exclusive tier needs strict_capacity_limit = false; or take an inclusive one";
    return nullptr;
  }
  options.secondary_cache = MakeTier(capacity_bytes, compresses, is_exclusive);
  auto cache = rocksdb::NewLRUCache(options);
  if (cache == nullptr) {
    *error = "RocksDB refuses the options of the cache: num_shard_bits and pool ratios have limits";
    return nullptr;
  }
  if (is_exclusive) {
    return std::make_shared<UnlimitedCache>(cache, options.memory_allocator);
  }
  return cache;
}

}  // namespace chimera_placement
