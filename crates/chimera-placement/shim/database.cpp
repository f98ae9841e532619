#include "database.h"

#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/merge_operator.h>
#include <rocksdb/statistics.h>
#include <rocksdb/table.h>
#include <rocksdb/write_buffer_manager.h>

#include <memory>

#include "cache.h"
#include "guard.h"
#include "memkind_allocator.h"
#include "memtable.h"
#include "tier.h"

using chimera_placement::Guarded;
using chimera_placement::PlacedAllocator;
using chimera_placement::PlacedCache;
using chimera_placement::PlacedMemTableFactory;
using chimera_placement::PlacedTier;
using rocksdb::Slice;
using rocksdb::Status;

struct ChimeraDatabase {
  // What the database uses outlives it: members are destroyed from the last to the first.
  std::shared_ptr<rocksdb::Cache> cache;
  std::shared_ptr<PlacedCache> placed_cache;
  std::shared_ptr<rocksdb::Statistics> statistics;
  std::unique_ptr<rocksdb::DB> db;
};

struct ChimeraIterator {
  std::unique_ptr<rocksdb::Iterator> iterator;
};

namespace {

std::shared_ptr<rocksdb::Cache> NewCache(const ChimeraOptions& options,
                                         std::shared_ptr<rocksdb::MemoryAllocator> allocator) {
  if (options.cache_kind == kChimeraHyperClock) {
    rocksdb::HyperClockCacheOptions clock(options.cache_bytes, options.block_bytes);
    clock.memory_allocator = allocator;
    return clock.MakeSharedCache();
  }
  rocksdb::LRUCacheOptions lru;
  lru.capacity = options.cache_bytes;
  // db_bench leaves the number of shards to RocksDB and reserves nothing for blocks of high priority.
  lru.high_pri_pool_ratio = 0.0;
  lru.memory_allocator = allocator;
  if (options.tier != nullptr) {
    lru.secondary_cache = std::make_shared<PlacedTier>(options.tier, options.tier_is_exclusive);
  }
  return rocksdb::NewLRUCache(lru);
}

Status MakeCache(const ChimeraOptions& options, ChimeraDatabase* database) {
  if (options.cache_heap == nullptr) {
    std::shared_ptr<rocksdb::MemoryAllocator> allocator;
    if (options.memkind_directory != nullptr) {
      const Status status = chimera_placement::NewMemkindAllocator(
          options.memkind_directory, options.memkind_bytes, &allocator);
      if (!status.ok()) {
        return status;
      }
    }
    database->cache = NewCache(options, allocator);
    return Status::OK();
  }
  auto allocator = std::make_shared<PlacedAllocator>(options.cache_heap);
  auto inside = NewCache(options, allocator);
  database->placed_cache = std::make_shared<PlacedCache>(inside, allocator);
  database->cache = database->placed_cache;
  return Status::OK();
}

// Appends to what is there.
class Append : public rocksdb::AssociativeMergeOperator {
 public:
  const char* Name() const override { return "chimera.Append"; }
  bool Merge(const Slice& /*key*/, const Slice* existing, const Slice& value, std::string* merged,
             rocksdb::Logger* /*logger*/) const override {
    merged->clear();
    if (existing != nullptr) {
      merged->assign(existing->data(), existing->size());
    }
    merged->append(value.data(), value.size());
    return true;
  }
};

// Options that go with any placement.
void AddFeatures(const ChimeraOptions& options, const ChimeraDatabase& database,
                 rocksdb::Options* all) {
  if (options.write_buffers_bytes > 0) {
    all->write_buffer_manager = std::make_shared<rocksdb::WriteBufferManager>(
        options.write_buffers_bytes, database.cache);
  }
  if (options.row_cache_bytes > 0) {
    all->row_cache = rocksdb::NewLRUCache(options.row_cache_bytes);
  }
  if (options.appends) {
    all->merge_operator = std::make_shared<Append>();
  }
}

rocksdb::Options OptionsOf(const ChimeraOptions& options, ChimeraDatabase* database) {
  rocksdb::Options all;
  all.create_if_missing = options.create_if_missing;
  all.write_buffer_size = options.write_buffer_bytes;
  all.memtable_huge_page_size = options.memtable_huge_page_bytes;
  // As published: writers neither overlap nor insert side by side.
  all.enable_pipelined_write = false;
  all.allow_concurrent_memtable_write = false;
  all.compression =
      options.compresses ? rocksdb::kSnappyCompression : rocksdb::kNoCompression;
  all.statistics = database->statistics;
  all.use_direct_reads = options.is_direct;
  all.use_direct_io_for_flush_and_compaction = options.is_direct;
  if (options.memtable_heap != nullptr) {
    all.memtable_factory = std::make_shared<PlacedMemTableFactory>(options.memtable_heap);
  }
  rocksdb::BlockBasedTableOptions table;
  table.block_size = options.block_bytes;
  table.block_cache = database->cache;
  table.cache_index_and_filter_blocks = options.caches_index;
  if (options.bloom_bits_per_key > 0) {
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(options.bloom_bits_per_key));
  }
  all.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  AddFeatures(options, *database, &all);
  return all;
}

void AddTickers(const rocksdb::Statistics& statistics, ChimeraCounts* counts) {
  counts->block_cache_hits = statistics.getTickerCount(rocksdb::BLOCK_CACHE_HIT);
  counts->block_cache_misses = statistics.getTickerCount(rocksdb::BLOCK_CACHE_MISS);
  counts->block_cache_adds = statistics.getTickerCount(rocksdb::BLOCK_CACHE_ADD);
  counts->block_cache_add_failures = statistics.getTickerCount(rocksdb::BLOCK_CACHE_ADD_FAILURES);
  counts->tier_hits = statistics.getTickerCount(rocksdb::SECONDARY_CACHE_HITS);
  counts->memtable_hits = statistics.getTickerCount(rocksdb::MEMTABLE_HIT);
  counts->memtable_misses = statistics.getTickerCount(rocksdb::MEMTABLE_MISS);
  counts->stall_us = statistics.getTickerCount(rocksdb::STALL_MICROS);
}

// Moves an iterator. What went wrong with its files is said at the record that it then is at.
template <typename Move>
char* Moved(ChimeraIterator* iterator, Move move) noexcept {
  return Guarded([&] {
    move(iterator->iterator.get());
    return Status::OK();
  });
}

}  // namespace

bool chimera_has_memkind() { return chimera_placement::HasMemkind(); }

void chimera_message_free(char* message) { chimera_placement::FreeMessage(message); }

char* chimera_database_open(const ChimeraOptions* options, ChimeraDatabase** database) {
  return Guarded([&] {
    auto made = std::make_unique<ChimeraDatabase>();
    if (options->keeps_statistics) {
      made->statistics = rocksdb::CreateDBStatistics();
    }
    Status status = MakeCache(*options, made.get());
    if (!status.ok()) {
      return status;
    }
    rocksdb::DB* db = nullptr;
    status = rocksdb::DB::Open(OptionsOf(*options, made.get()), options->path, &db);
    if (status.ok()) {
      made->db.reset(db);
      *database = made.release();
    }
    return status;
  });
}

// Destructors let no exception out: there is nothing to guard.
void chimera_database_close(ChimeraDatabase* database) { delete database; }

char* chimera_database_put(ChimeraDatabase* database, const char* key, size_t key_length,
                           const char* value, size_t value_length) {
  return Guarded([&] {
    return database->db->Put(rocksdb::WriteOptions(), Slice(key, key_length),
                             Slice(value, value_length));
  });
}

char* chimera_database_merge(ChimeraDatabase* database, const char* key, size_t key_length,
                             const char* value, size_t value_length) {
  return Guarded([&] {
    return database->db->Merge(rocksdb::WriteOptions(), Slice(key, key_length),
                               Slice(value, value_length));
  });
}

char* chimera_database_delete(ChimeraDatabase* database, const char* key, size_t key_length) {
  return Guarded(
      [&] { return database->db->Delete(rocksdb::WriteOptions(), Slice(key, key_length)); });
}

char* chimera_database_get(ChimeraDatabase* database, const char* key, size_t key_length,
                           void (*work)(void* context, const char* value, size_t length),
                           void* context, bool* found) {
  return Guarded([&] {
    rocksdb::PinnableSlice value;
    const Status status =
        database->db->Get(rocksdb::ReadOptions(), database->db->DefaultColumnFamily(),
                          Slice(key, key_length), &value);
    *found = status.ok();
    if (status.ok()) {
      work(context, value.data(), value.size());
    }
    return status.IsNotFound() ? Status::OK() : status;
  });
}

char* chimera_database_flush(ChimeraDatabase* database) {
  return Guarded([&] { return database->db->Flush(rocksdb::FlushOptions()); });
}

char* chimera_database_compact(ChimeraDatabase* database) {
  return Guarded([&] {
    return database->db->CompactRange(rocksdb::CompactRangeOptions(), nullptr, nullptr);
  });
}

char* chimera_database_approximate_bytes(ChimeraDatabase* database, const char* from,
                                         size_t from_length, const char* to, size_t to_length,
                                         uint64_t* bytes) {
  return Guarded([&] {
    const rocksdb::Range range(Slice(from, from_length), Slice(to, to_length));
    rocksdb::SizeApproximationOptions options;
    options.include_memtables = true;
    return database->db->GetApproximateSizes(
        options, database->db->DefaultColumnFamily(), &range, 1, bytes);
  });
}

char* chimera_database_counts(ChimeraDatabase* database, ChimeraCounts* counts) {
  return Guarded([&] {
    *counts = {};
    counts->cache_usage_bytes = database->cache->GetUsage();
    database->db->GetIntProperty(rocksdb::DB::Properties::kSizeAllMemTables,
                                 &counts->memtable_bytes);
    if (database->placed_cache != nullptr) {
      const auto of_cache = database->placed_cache->counts();
      counts->pmem_cache_hits = of_cache.pmem_hits;
      counts->cache_refused = of_cache.refused;
    }
    if (database->statistics != nullptr) {
      AddTickers(*database->statistics, counts);
    }
    return Status::OK();
  });
}

char* chimera_iterator_new(ChimeraDatabase* database, ChimeraIterator** iterator) {
  return Guarded([&] {
    auto made = std::make_unique<ChimeraIterator>();
    made->iterator.reset(database->db->NewIterator(rocksdb::ReadOptions()));
    *iterator = made.release();
    return Status::OK();
  });
}

// As chimera_database_close.
void chimera_iterator_free(ChimeraIterator* iterator) { delete iterator; }

char* chimera_iterator_seek_to_first(ChimeraIterator* iterator) {
  return Moved(iterator, [](rocksdb::Iterator* inside) { inside->SeekToFirst(); });
}

char* chimera_iterator_seek_to_last(ChimeraIterator* iterator) {
  return Moved(iterator, [](rocksdb::Iterator* inside) { inside->SeekToLast(); });
}

char* chimera_iterator_seek(ChimeraIterator* iterator, const char* key, size_t key_length) {
  return Moved(iterator, [&](rocksdb::Iterator* inside) { inside->Seek(Slice(key, key_length)); });
}

char* chimera_iterator_seek_for_prev(ChimeraIterator* iterator, const char* key,
                                     size_t key_length) {
  return Moved(iterator,
               [&](rocksdb::Iterator* inside) { inside->SeekForPrev(Slice(key, key_length)); });
}

char* chimera_iterator_next(ChimeraIterator* iterator) {
  return Moved(iterator, [](rocksdb::Iterator* inside) { inside->Next(); });
}

char* chimera_iterator_prev(ChimeraIterator* iterator) {
  return Moved(iterator, [](rocksdb::Iterator* inside) { inside->Prev(); });
}

char* chimera_iterator_record(ChimeraIterator* iterator, ChimeraRecord* record) {
  return Guarded([&] {
    *record = {};
    if (!iterator->iterator->Valid()) {
      return iterator->iterator->status();
    }
    const Slice key = iterator->iterator->key();
    const Slice value = iterator->iterator->value();
    *record = {key.data(), key.size(), value.data(), value.size(), true};
    return Status::OK();
  });
}
