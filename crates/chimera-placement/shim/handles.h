// Counted references to what Rust owns.
#pragma once

#include <rocksdb/version.h>

#include <utility>

#include "rust.h"

// Interfaces of caches, tiers and memtables change with every version.
#if ROCKSDB_MAJOR != 7 || ROCKSDB_MINOR != 8
#error "chimera-placement needs RocksDB 7.8, as Debian 12 has it; set ROCKSDB_INCLUDE_DIR to its headers"
#endif

namespace chimera_placement {

template <typename T, void (*retain)(const T*), void (*release)(const T*)>
class Reference {
 public:
  // Takes a reference of its own.
  explicit Reference(const T* shared) : shared_(shared) { retain(shared_); }
  Reference(const Reference& other) : Reference(other.shared_) {}
  Reference& operator=(Reference other) {
    std::swap(shared_, other.shared_);
    return *this;
  }
  ~Reference() { release(shared_); }

  const T* get() const { return shared_; }

 private:
  const T* shared_;
};

using HeapReference = Reference<ChimeraHeap, chimera_heap_retain, chimera_heap_release>;
using TierReference = Reference<ChimeraTier, chimera_tier_retain, chimera_tier_release>;

}  // namespace chimera_placement
