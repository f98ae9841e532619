// PlacedTier: a tier of persistent memory behind a block cache in DRAM, through RocksDB's interface of secondary caches.
#pragma once

#include <rocksdb/secondary_cache.h>

#include "forwarding_cache.h"
#include "handles.h"

namespace chimera_placement {

class PlacedTier : public rocksdb::SecondaryCache {
 public:
  // An exclusive tier gives up a block that goes back to DRAM. RocksDB then keeps a block in DRAM only from its second hit in the
  // tier on. An inclusive tier keeps the block; when it leaves DRAM again and still is here, nothing is copied.
  //
  // The cache in front of an exclusive tier has strict_capacity_limit = false: see UnlimitedCache.
  PlacedTier(const ChimeraTier* tier, bool is_exclusive)
      : tier_(tier), is_exclusive_(is_exclusive) {}

  const char* Name() const override { return "chimera.PlacedTier"; }
  rocksdb::Status Insert(const rocksdb::Slice& key, void* value,
                         const rocksdb::Cache::CacheItemHelper* helper) override;
  std::unique_ptr<rocksdb::SecondaryCacheResultHandle> Lookup(
      const rocksdb::Slice& key, const rocksdb::Cache::CreateCallback& create, bool wait,
      bool advise_erase, bool& is_in_sec_cache) override;
  bool SupportForceErase() const override { return is_exclusive_; }
  void Erase(const rocksdb::Slice& key) override;
  // Results are ready at once.
  void WaitAll(std::vector<rocksdb::SecondaryCacheResultHandle*>) override {}
  rocksdb::Status SetCapacity(size_t capacity) override;
  rocksdb::Status GetCapacity(size_t& capacity) override;

 private:
  TierReference tier_;
  const bool is_exclusive_;
};

// A block cache that never has a strict limit of its capacity, for an exclusive tier behind it: where such a cache refuses a block
// that comes back from such a tier, RocksDB 7.8.3 follows a null pointer.
class UnlimitedCache : public ForwardingCache {
 public:
  // `inside` has no strict limit.
  using ForwardingCache::ForwardingCache;

  const char* Name() const override { return "chimera.UnlimitedCache"; }
  // Has no effect.
  void SetStrictCapacityLimit(bool) override {}
};

}  // namespace chimera_placement
