#include "allocator.h"

#include <cstdlib>
#include <utility>

namespace chimera_placement {

namespace {

thread_local PlacedAllocator::Measured measured;

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
  measured = {this, object, allocation_size, chimera_heap_place(heap_.get(), object)};
  return chimera_heap_usable_bytes(heap_.get(), object);
}

PlacedAllocator::Measured PlacedAllocator::TakeMeasured() {
  return std::exchange(measured, Measured{});
}

}  // namespace chimera_placement
