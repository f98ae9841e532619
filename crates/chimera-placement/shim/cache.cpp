#include "cache.h"

#include <algorithm>

namespace chimera_placement {

using rocksdb::Cache;
using rocksdb::Slice;
using rocksdb::Status;

PlacedCache::PlacedCache(std::shared_ptr<Cache> inside, std::shared_ptr<PlacedAllocator> allocator)
    : ForwardingCache(std::move(inside), allocator),
      allocator_(std::move(allocator)),
      has_model_(chimera_heap_has_model(allocator_->heap())) {}

CacheCounts PlacedCache::counts() const {
  return {pmem_hits_.load(std::memory_order_relaxed), refused_.load(std::memory_order_relaxed)};
}

bool PlacedCache::Register(const void* value) {
  const PlacedAllocator::Measured found = PlacedAllocator::TakeMeasured();
  if (value == nullptr) {
    // It stands for memory that is counted, or for a block that is not to be kept anyway.
    return false;
  }
  const bool is_ours = found.allocator == allocator_.get() && found.object != nullptr;
  const ChimeraPlace place = is_ours ? found.place : kChimeraDram;
  if (has_model_) {
    Shard& shard = ShardOf(value);
    std::lock_guard<std::mutex> guard(shard.mutex);
    if (place == kChimeraPmem) {
      shard.bytes[value] = {found.object, found.length};
    } else {
      // The address may have been that of another block.
      shard.bytes.erase(value);
    }
  }
  if (place == kChimeraPmem) {
    chimera_heap_stored(allocator_->heap(), found.object, found.length);
  }
  return place == kChimeraOverflow;
}

Status PlacedCache::Insert(const Slice& key, void* value, size_t charge, DeleterFn deleter,
                           Handle** handle, Priority priority) {
  const bool is_refused = Register(value);
  Status status = inside_->Insert(key, value, charge, deleter, handle, priority);
  if (is_refused && status.ok()) {
    Refuse(key);
  }
  return status;
}

Status PlacedCache::Insert(const Slice& key, void* value, const CacheItemHelper* helper,
                           size_t charge, Handle** handle, Priority priority) {
  const bool is_refused = Register(value);
  Status status = inside_->Insert(key, value, helper, charge, handle, priority);
  if (is_refused && status.ok()) {
    Refuse(key);
  }
  return status;
}

void PlacedCache::Refuse(const Slice& key) {
  inside_->Erase(key);
  if (refused_.fetch_add(1, std::memory_order_relaxed) % kRefusalsForRoom != 0) {
    return;
  }
  std::unique_lock<std::mutex> lock(capacity_mutex_, std::try_to_lock);
  if (lock.owns_lock()) {
    const size_t capacity = inside_->GetCapacity();
    const size_t usage = inside_->GetUsage();
    inside_->SetCapacity(std::min(capacity, usage - usage / kRefusalsForRoom));
    inside_->SetCapacity(capacity);
  }
}

void PlacedCache::SetCapacity(size_t capacity) {
  std::lock_guard<std::mutex> lock(capacity_mutex_);
  inside_->SetCapacity(capacity);
}

Cache::Handle* PlacedCache::Lookup(const Slice& key, rocksdb::Statistics* stats) {
  return Charge(inside_->Lookup(key, stats));
}

Cache::Handle* PlacedCache::Lookup(const Slice& key, const CacheItemHelper* helper,
                                   const CreateCallback& create, Priority priority, bool wait,
                                   rocksdb::Statistics* stats) {
  return Charge(inside_->Lookup(key, helper, create, priority, wait, stats));
}

Cache::Handle* PlacedCache::Charge(Handle* handle) {
  if (handle == nullptr || !has_model_) {
    return handle;
  }
  const void* value = inside_->Value(handle);
  Bytes bytes{nullptr, 0};
  {
    Shard& shard = ShardOf(value);
    std::lock_guard<std::mutex> guard(shard.mutex);
    const auto found = shard.bytes.find(value);
    if (found != shard.bytes.end()) {
      bytes = found->second;
    }
  }
  if (bytes.object != nullptr) {
    // The handle keeps the block where it is.
    pmem_hits_.fetch_add(1, std::memory_order_relaxed);
    chimera_heap_read(allocator_->heap(), bytes.object, bytes.length);
  }
  return handle;
}

}  // namespace chimera_placement
