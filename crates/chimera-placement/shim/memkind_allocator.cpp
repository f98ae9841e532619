#include "memkind_allocator.h"

#ifdef CHIMERA_MEMKIND

#include <memkind.h>

#include <cstdlib>

namespace chimera_placement {

namespace {

class MemkindAllocator : public rocksdb::MemoryAllocator {
 public:
  explicit MemkindAllocator(memkind_t kind) : kind_(kind) {}
  ~MemkindAllocator() override { memkind_destroy_kind(kind_); }

  const char* Name() const override { return "chimera.MemkindAllocator"; }

  void* Allocate(size_t size) override {
    void* object = memkind_malloc(kind_, size);
    if (object == nullptr) {
      // Full: DRAM, since RocksDB cannot go on without.
      object = memkind_malloc(MEMKIND_DEFAULT, size);
    }
    if (object == nullptr) {
      std::abort();
    }
    return object;
  }

  // The library finds out which kind an object is of.
  void Deallocate(void* object) override { memkind_free(nullptr, object); }
  size_t UsableSize(void* object, size_t /*allocation_size*/) const override {
    return memkind_malloc_usable_size(nullptr, object);
  }

 private:
  memkind_t kind_;
};

}  // namespace

bool HasMemkind() { return true; }

rocksdb::Status NewMemkindAllocator(const std::string& directory, uint64_t bytes,
                                    std::shared_ptr<rocksdb::MemoryAllocator>* allocator) {
  memkind_t kind = nullptr;
  const int error = memkind_create_pmem(directory.c_str(), bytes, &kind);
  if (error != 0) {
    char message[MEMKIND_ERROR_MESSAGE_SIZE];
    memkind_error_message(error, message, sizeof(message));
    return rocksdb::Status::InvalidArgument("memkind", message);
  }
  *allocator = std::make_shared<MemkindAllocator>(kind);
  return rocksdb::Status::OK();
}

}  // namespace chimera_placement

#else

namespace chimera_placement {

bool HasMemkind() { return false; }

rocksdb::Status NewMemkindAllocator(const std::string&, uint64_t,
                                    std::shared_ptr<rocksdb::MemoryAllocator>*) {
  return rocksdb::Status::NotSupported("built without the feature `memkind`");
}

}  // namespace chimera_placement

#endif
