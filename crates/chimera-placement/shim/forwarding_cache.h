// ForwardingCache: a block cache that does what the one inside does. What is made of it changes a part.
#pragma once

#include <rocksdb/cache.h>

#include <memory>
#include <utility>

namespace chimera_placement {

class ForwardingCache : public rocksdb::Cache {
 public:
  // `inside` allocates with `allocator`, or without one.
  ForwardingCache(std::shared_ptr<rocksdb::Cache> inside,
                  std::shared_ptr<rocksdb::MemoryAllocator> allocator)
      : Cache(std::move(allocator)), inside_(std::move(inside)) {}

  rocksdb::Status Insert(const rocksdb::Slice& key, void* value, size_t charge, DeleterFn deleter,
                         Handle** handle, Priority priority) override {
    return inside_->Insert(key, value, charge, deleter, handle, priority);
  }
  rocksdb::Status Insert(const rocksdb::Slice& key, void* value, const CacheItemHelper* helper,
                         size_t charge, Handle** handle, Priority priority) override {
    return inside_->Insert(key, value, helper, charge, handle, priority);
  }
  Handle* Lookup(const rocksdb::Slice& key, rocksdb::Statistics* stats) override {
    return inside_->Lookup(key, stats);
  }
  Handle* Lookup(const rocksdb::Slice& key, const CacheItemHelper* helper,
                 const CreateCallback& create, Priority priority, bool wait,
                 rocksdb::Statistics* stats) override {
    return inside_->Lookup(key, helper, create, priority, wait, stats);
  }
  bool Ref(Handle* handle) override { return inside_->Ref(handle); }
  bool Release(Handle* handle, bool erase_if_last_ref) override {
    return inside_->Release(handle, erase_if_last_ref);
  }
  bool Release(Handle* handle, bool useful, bool erase_if_last_ref) override {
    return inside_->Release(handle, useful, erase_if_last_ref);
  }
  void* Value(Handle* handle) override { return inside_->Value(handle); }
  void Erase(const rocksdb::Slice& key) override { inside_->Erase(key); }
  uint64_t NewId() override { return inside_->NewId(); }
  void SetCapacity(size_t capacity) override { inside_->SetCapacity(capacity); }
  void SetStrictCapacityLimit(bool strict) override { inside_->SetStrictCapacityLimit(strict); }
  bool HasStrictCapacityLimit() const override { return inside_->HasStrictCapacityLimit(); }
  size_t GetCapacity() const override { return inside_->GetCapacity(); }
  size_t GetUsage() const override { return inside_->GetUsage(); }
  size_t GetUsage(Handle* handle) const override { return inside_->GetUsage(handle); }
  size_t GetOccupancyCount() const override { return inside_->GetOccupancyCount(); }
  size_t GetTableAddressCount() const override { return inside_->GetTableAddressCount(); }
  size_t GetPinnedUsage() const override { return inside_->GetPinnedUsage(); }
  size_t GetCharge(Handle* handle) const override { return inside_->GetCharge(handle); }
  DeleterFn GetDeleter(Handle* handle) const override { return inside_->GetDeleter(handle); }
  void DisownData() override { inside_->DisownData(); }
  void ApplyToAllEntries(
      const std::function<void(const rocksdb::Slice&, void*, size_t, DeleterFn)>& callback,
      const ApplyToAllEntriesOptions& options) override {
    inside_->ApplyToAllEntries(callback, options);
  }
  void EraseUnRefEntries() override { inside_->EraseUnRefEntries(); }
  std::string GetPrintableOptions() const override { return inside_->GetPrintableOptions(); }
  bool IsReady(Handle* handle) override { return inside_->IsReady(handle); }
  void Wait(Handle* handle) override { inside_->Wait(handle); }
  void WaitAll(std::vector<Handle*>& handles) override { inside_->WaitAll(handles); }

 protected:
  const std::shared_ptr<rocksdb::Cache> inside_;
};

}  // namespace chimera_placement
