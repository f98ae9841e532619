// PlacedAllocator: the memory of a block cache, of which a share lies in persistent memory.
#pragma once

#include <rocksdb/memory_allocator.h>

#include "handles.h"

namespace chimera_placement {

class PlacedAllocator : public rocksdb::MemoryAllocator {
 public:
  explicit PlacedAllocator(const ChimeraHeap* heap) : heap_(heap) {}

  const char* Name() const override { return "chimera.PlacedAllocator"; }
  void* Allocate(size_t size) override;
  void Deallocate(void* object) override;
  // What the size class has, so that the capacity of the cache limits what it really occupies.
  size_t UsableSize(void* object, size_t allocation_size) const override;

  const ChimeraHeap* heap() const { return heap_.get(); }

  // An object whose size was asked for, and where it lay then. It may be gone by now: nothing reads it.
  struct Measured {
    const PlacedAllocator* allocator = nullptr;
    const void* object = nullptr;
    size_t length = 0;
    ChimeraPlace place = kChimeraDram;
  };

  // The object whose size this thread asked for last, which is forgotten then. RocksDB asks for the size of a block right
  // before it puts the block into the cache, and by no other way says where the block's bytes are. It asks at other times, too.
  static Measured TakeMeasured();

 private:
  HeapReference heap_;
};

}  // namespace chimera_placement
