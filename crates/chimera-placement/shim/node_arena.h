// NodeArena: memory of one memtable. Whole blocks come from a heap; all of it is freed with the memtable.
//
// What counts is what was given out, and the ends of blocks that were too short for what came next: not the rest of a block that
// is still to be given out. RocksDB's own arena reports it in the same way. Otherwise a memtable of less than a block would count
// as full before its first entry.
//
// One thread allocates. Any number of threads read `bytes`.
#pragma once

#include <atomic>
#include <vector>

#include "handles.h"

namespace chimera_placement {

class NodeArena {
 public:
  explicit NodeArena(const ChimeraHeap* heap) : heap_(heap) {}
  NodeArena(const NodeArena&) = delete;
  NodeArena& operator=(const NodeArena&) = delete;
  ~NodeArena();

  // Allocates, aligned to 8 bytes, where the share of the heap says.
  char* Allocate(size_t size);
  // Bytes of all blocks, without what can still be given out.
  size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  const ChimeraHeap* heap() const { return heap_.get(); }

 private:
  static constexpr size_t kBlock = 64 << 10;
  // Larger objects have a block of their own.
  static constexpr size_t kLarge = kBlock / 4;

  // The rest of a block.
  struct Rest {
    char* at = nullptr;
    size_t length = 0;
  };

  char* NewBlock(size_t size, bool in_pmem);
  void Count(size_t size) { bytes_.fetch_add(size, std::memory_order_relaxed); }

  HeapReference heap_;
  std::vector<char*> blocks_;
  Rest dram_;
  Rest pmem_;
  uint64_t pmem_used_ = 0;
  uint64_t used_ = 0;
  std::atomic<size_t> bytes_{0};
};

}  // namespace chimera_placement
