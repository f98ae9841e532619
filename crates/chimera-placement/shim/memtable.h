// PlacedMemTableFactory: memtables whose nodes and entries lie in persistent memory, or a share of them.
//
// Memory is freed with the memtable. RocksDB learns of it through ApproximateMemoryUsage, and so write_buffer_size limits a
// memtable as usual. It is not part of what a WriteBufferManager (db_write_buffer_size) adds up: that counts what comes from
// RocksDB's own arena.
#pragma once

#include <rocksdb/memtablerep.h>

#include "handles.h"

namespace chimera_placement {

class PlacedMemTableFactory : public rocksdb::MemTableRepFactory {
 public:
  explicit PlacedMemTableFactory(const ChimeraHeap* heap) : heap_(heap) {}

  const char* Name() const override { return "chimera.PlacedMemTableFactory"; }
  using rocksdb::MemTableRepFactory::CreateMemTableRep;
  rocksdb::MemTableRep* CreateMemTableRep(const rocksdb::MemTableRep::KeyComparator& comparator,
                                          rocksdb::Allocator* allocator,
                                          const rocksdb::SliceTransform* transform,
                                          rocksdb::Logger* logger) override;
  // Inserts are not concurrent. RocksDB refuses to open a database with allow_concurrent_memtable_write.
  bool IsInsertConcurrentlySupported() const override { return false; }

 private:
  HeapReference heap_;
};

}  // namespace chimera_placement
