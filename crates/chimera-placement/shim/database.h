// RocksDB for Rust: what the study and its tests need of it. Errors are messages, and no exception leaves.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rust.h"

extern "C" {

struct ChimeraDatabase;
struct ChimeraIterator;

enum ChimeraCacheKind : uint32_t {
  kChimeraLru = 0,
  kChimeraHyperClock = 1,
};

// Mirrors `RawOptions` in database/raw.rs.
struct ChimeraOptions {
  const char* path;
  // Blocks lie in this heap; null for RocksDB's own allocator.
  const ChimeraHeap* cache_heap;
  // Nodes of memtables lie in this heap; null for RocksDB's own memtable.
  const ChimeraHeap* memtable_heap;
  // Blocks lie in memory of libmemkind in this directory; null for none. Not with `cache_heap`.
  const char* memkind_directory;
  uint64_t memkind_bytes;
  // Behind the block cache; null for none.
  const ChimeraTier* tier;
  uint64_t cache_bytes;
  uint64_t write_buffer_bytes;
  uint64_t block_bytes;
  uint64_t memtable_huge_page_bytes;
  // Of all memtables, counted in the block cache; 0 for no limit.
  uint64_t write_buffers_bytes;
  // Of a cache of whole records; 0 for none.
  uint64_t row_cache_bytes;
  ChimeraCacheKind cache_kind;
  int32_t bloom_bits_per_key;
  bool create_if_missing;
  bool tier_is_exclusive;
  bool compresses;
  bool keeps_statistics;
  // Files are read and written past the system's page cache.
  bool is_direct;
  bool caches_index;
  // Merging appends to what is there.
  bool appends;
};

// Mirrors `RawCounts` in database/raw.rs.
struct ChimeraCounts {
  uint64_t block_cache_hits;
  uint64_t block_cache_misses;
  uint64_t block_cache_adds;
  uint64_t block_cache_add_failures;
  uint64_t tier_hits;
  uint64_t memtable_hits;
  uint64_t memtable_misses;
  uint64_t stall_us;
  uint64_t cache_usage_bytes;
  uint64_t memtable_bytes;
  uint64_t pmem_cache_hits;
  uint64_t cache_refused;
};

// Mirrors `RawRecord` in database/raw.rs. The bytes stay where they are until the iterator moves.
struct ChimeraRecord {
  const char* key;
  size_t key_length;
  const char* value;
  size_t value_length;
  // False beyond the ends.
  bool is_there;
};

// Whether libmemkind is built in.
bool chimera_has_memkind();

// A null message is success; any other one is freed with chimera_message_free.
void chimera_message_free(char* message);

char* chimera_database_open(const ChimeraOptions* options, ChimeraDatabase** database);
void chimera_database_close(ChimeraDatabase* database);
char* chimera_database_put(ChimeraDatabase* database, const char* key, size_t key_length,
                           const char* value, size_t value_length);
char* chimera_database_merge(ChimeraDatabase* database, const char* key, size_t key_length,
                             const char* value, size_t value_length);
char* chimera_database_delete(ChimeraDatabase* database, const char* key, size_t key_length);
// Hands the value to `work`; `found` says whether there is one.
char* chimera_database_get(ChimeraDatabase* database, const char* key, size_t key_length,
                           void (*work)(void* context, const char* value, size_t length),
                           void* context, bool* found);
char* chimera_database_flush(ChimeraDatabase* database);
char* chimera_database_compact(ChimeraDatabase* database);
// Bytes of keys from `from` to below `to`, as RocksDB estimates them, those in memtables included.
char* chimera_database_approximate_bytes(ChimeraDatabase* database, const char* from,
                                         size_t from_length, const char* to, size_t to_length,
                                         uint64_t* bytes);
char* chimera_database_counts(ChimeraDatabase* database, ChimeraCounts* counts);

// An iterator over all keys, before the first one.
char* chimera_iterator_new(ChimeraDatabase* database, ChimeraIterator** iterator);
void chimera_iterator_free(ChimeraIterator* iterator);
char* chimera_iterator_seek_to_first(ChimeraIterator* iterator);
char* chimera_iterator_seek_to_last(ChimeraIterator* iterator);
char* chimera_iterator_seek(ChimeraIterator* iterator, const char* key, size_t key_length);
char* chimera_iterator_seek_for_prev(ChimeraIterator* iterator, const char* key, size_t key_length);
// From a record to its neighbour.
char* chimera_iterator_next(ChimeraIterator* iterator);
char* chimera_iterator_prev(ChimeraIterator* iterator);
// The record that an iterator is at. The message says what went wrong, also with the move before.
char* chimera_iterator_record(ChimeraIterator* iterator, ChimeraRecord* record);

}  // extern "C"
