#include "allocator.h"

#include <cstdlib>

namespace chimera_placement {

namespace {

struct Measured {
  void* object = nullptr;
  size_t length = 0;
};

thread_local Measured measured;

}  // namespace

void* PlacedAllocator::Allocate(size_t size) {
  void* object = chimera_heap_allocate(heap_.get(), size);
  if (object == nullptr) {
    // DRAM is used up as well. RocksDB would write through the null pointer.
    std::abort();
  }
  return object;
}

void PlacedAllocator::Deallocate(void* object) {
  if (object != nullptr) {
    chimera_heap_free(heap_.get(), object);
  }
}

size_t PlacedAllocator::UsableSize(void* object, size_t allocation_size) const {
  measured = {object, allocation_size};
  return chimera_heap_usable_bytes(heap_.get(), object);
}

void* PlacedAllocator::TakeMeasured(size_t* length) {
  const Measured found = measured;
  measured = {};
  *length = found.length;
  return found.object;
}

}  // namespace chimera_placement
