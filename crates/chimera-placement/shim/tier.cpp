#include "tier.h"

namespace chimera_placement {

using rocksdb::Cache;
using rocksdb::SecondaryCacheResultHandle;
using rocksdb::Slice;
using rocksdb::Status;

namespace {

// A block that was found and made anew.
class Found : public SecondaryCacheResultHandle {
 public:
  Found(void* value, size_t charge) : value_(value), charge_(charge) {}
  bool IsReady() override { return true; }
  void Wait() override {}
  void* Value() override { return value_; }
  size_t Size() override { return charge_; }

 private:
  void* value_;
  size_t charge_;
};

// What a lookup is about, while Rust holds the bytes.
struct Creation {
  const Cache::CreateCallback* create;
  void* value = nullptr;
  size_t charge = 0;
};

// Rust calls it: no exception leaves.
void Create(void* context, const char* block, size_t length) noexcept {
  auto* creation = static_cast<Creation*>(context);
  try {
    const Status status =
        (*creation->create)(block, length, &creation->value, &creation->charge);
    if (!status.ok()) {
      creation->value = nullptr;
    }
  } catch (...) {
    // There was no memory for it. RocksDB reads the block from its file.
    creation->value = nullptr;
  }
}

// What an insertion is about.
struct Saving {
  void* value;
  const Cache::CacheItemHelper* helper;
  Status status;
};

// Rust calls it: no exception leaves.
bool Save(void* context, char* block, size_t length) noexcept {
  auto* saving = static_cast<Saving*>(context);
  try {
    saving->status = saving->helper->saveto_cb(saving->value, 0, length, block);
    return saving->status.ok();
  } catch (...) {
    // The tier does not take the block.
    return false;
  }
}

}  // namespace

Status PlacedTier::Insert(const Slice& key, void* value, const Cache::CacheItemHelper* helper) {
  if (value == nullptr || helper == nullptr || helper->size_cb == nullptr ||
      helper->saveto_cb == nullptr) {
    return Status::InvalidArgument("a block that cannot be saved");
  }
  Saving saving{value, helper, Status::OK()};
  const size_t length = helper->size_cb(value);
  // A block without room is lost to the tier, and RocksDB reads it from its file again.
  chimera_tier_insert(tier_.get(), key.data(), key.size(), length, Save, &saving);
  return saving.status;
}

std::unique_ptr<SecondaryCacheResultHandle> PlacedTier::Lookup(
    const Slice& key, const Cache::CreateCallback& create, bool /*wait*/, bool advise_erase,
    bool& is_in_sec_cache) {
  const bool take = advise_erase && is_exclusive_;
  Creation creation{&create};
  // RocksDB does not offer a block again that it takes to be there. It may be gone by then: a block that is used in DRAM is not
  // used here. A block that still is there is not copied again.
  is_in_sec_cache = false;
  if (!chimera_tier_lookup(tier_.get(), key.data(), key.size(), take, Create, &creation) ||
      creation.value == nullptr) {
    return nullptr;
  }
  return std::make_unique<Found>(creation.value, creation.charge);
}

void PlacedTier::Erase(const Slice& key) {
  chimera_tier_erase(tier_.get(), key.data(), key.size());
}

Status PlacedTier::SetCapacity(size_t capacity) {
  chimera_tier_set_capacity(tier_.get(), capacity);
  return Status::OK();
}

Status PlacedTier::GetCapacity(size_t& capacity) {
  capacity = chimera_tier_capacity(tier_.get());
  return Status::OK();
}

}  // namespace chimera_placement
