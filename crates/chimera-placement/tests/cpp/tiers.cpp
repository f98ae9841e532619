// Allocators, tiers, and caches with tiers, as the header says: databases that use them have all records.
//
//   tiers DATABASE PMEM_DIRECTORY
#include <chimera_placement.h>
#include <rocksdb/db.h>
#include <rocksdb/statistics.h>
#include <rocksdb/table.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

using chimera_placement::PersistentMemory;

namespace {

constexpr int kRecords = 3000;

void Check(bool is_right, const std::string& what) {
  if (!is_right) {
    std::cerr << what << "\n";
    std::exit(1);
  }
}

std::string ValueOf(int number) {
  return std::string(1000, 'a' + number % 26) + std::to_string(number);
}

// Reads with some values held, so that a small cache is full of what it may not give up. Says how many reads were refused.
int Read(rocksdb::DB* db, const std::string& name) {
  int refused = 0;
  std::vector<rocksdb::PinnableSlice> held(200);
  for (int at = 0; at < 5 * kRecords; ++at) {
    const int number = at / kRecords % 2 == 0 ? at % kRecords : at * 7919 % kRecords;
    rocksdb::PinnableSlice& value = held[at % held.size()];
    value.Reset();
    const rocksdb::Status status =
        db->Get({}, db->DefaultColumnFamily(), std::to_string(number), &value);
    Check(status.ok() || status.IsMemoryLimit(), name + ": " + status.ToString());
    Check(!status.ok() || value == ValueOf(number), name + ": another value");
    refused += status.ok() ? 0 : 1;
  }
  return refused;
}

// How often a tier had a block, and how many reads were refused.
struct Outcome {
  uint64_t tier_hits;
  int refused;
};

// A database with a block cache.
Outcome Use(const std::string& path, const std::string& name,
            std::shared_ptr<rocksdb::Cache> cache) {
  Check(cache != nullptr, name + ": no cache");
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = std::move(cache);
  rocksdb::Options options;
  options.create_if_missing = true;
  options.write_buffer_size = 1 << 20;
  options.statistics = rocksdb::CreateDBStatistics();
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  rocksdb::DB* db = nullptr;
  rocksdb::Status status = rocksdb::DB::Open(options, path + name, &db);
  for (int number = 0; status.ok() && number < kRecords; ++number) {
    status = db->Put({}, std::to_string(number), ValueOf(number));
  }
  if (status.ok()) {
    status = db->Flush({});
  }
  Check(status.ok(), name + ": " + status.ToString());
  const int refused = Read(db, name);
  delete db;
  return {options.statistics->getTickerCount(rocksdb::SECONDARY_CACHE_HITS), refused};
}

rocksdb::LRUCacheOptions Small() {
  rocksdb::LRUCacheOptions options;
  options.capacity = 256 << 10;
  options.num_shard_bits = 0;
  return options;
}

void UseAllocators(const PersistentMemory& memory, const std::string& path) {
  for (const int percent : {0, 60, 100}) {
    rocksdb::LRUCacheOptions options = Small();
    options.memory_allocator = memory.NewAllocator(percent);
    Use(path, "allocator" + std::to_string(percent), rocksdb::NewLRUCache(options));
  }
}

void UseTiers(const PersistentMemory& memory, const std::string& path) {
  for (const bool compresses : {false, true}) {
    const std::string name = compresses ? "tier-lz4" : "tier";
    rocksdb::LRUCacheOptions options = Small();
    options.secondary_cache = memory.NewTier(4 << 20, compresses);
    const Outcome loose = Use(path, name, rocksdb::NewLRUCache(options));
    Check(loose.tier_hits > 1000 && loose.refused == 0, name + ": not used");
    options.strict_capacity_limit = true;
    options.secondary_cache = memory.NewTier(4 << 20, compresses);
    const Outcome strict = Use(path, name + "-strict", rocksdb::NewLRUCache(options));
    Check(strict.tier_hits > 1000 && strict.refused > 0, name + ": not strict");
  }
}

void UseTieredCaches(const PersistentMemory& memory, const std::string& path) {
  std::string error;
  for (const bool is_exclusive : {false, true}) {
    const std::string name = is_exclusive ? "exclusive" : "inclusive";
    auto cache = memory.NewTieredCache(Small(), 4 << 20, false, is_exclusive, &error);
    Check(cache != nullptr, error);
    cache->SetStrictCapacityLimit(true);
    Check(cache->HasStrictCapacityLimit() != is_exclusive, name + ": the limit");
    const Outcome outcome = Use(path, name, cache);
    Check(outcome.tier_hits > 1000 && (outcome.refused == 0) == is_exclusive, name + ": not used");
  }
}

void Refuse(const PersistentMemory& memory) {
  std::string error;
  rocksdb::LRUCacheOptions options = Small();
  options.strict_capacity_limit = true;
  Check(memory.NewTieredCache(options, 4 << 20, false, true, &error) == nullptr, "strict");
  Check(error.find("strict_capacity_limit = false") != std::string::npos, error);
  options = Small();
  options.num_shard_bits = 30;
  Check(memory.NewTieredCache(options, 4 << 20, false, true, &error) == nullptr, "shards");
  Check(error.find("num_shard_bits") != std::string::npos, error);
  options = Small();
  options.secondary_cache = memory.NewTier(4 << 20, false);
  Check(memory.NewTieredCache(options, 4 << 20, false, false, &error) == nullptr, "two tiers");
  Check(error.find("already") != std::string::npos, error);
  Check(memory.NewBlockCache(options, 100) == nullptr, "a tier behind persistent memory");
}

}  // namespace

int main(int count, char** arguments) {
  Check(count == 3, "tiers DATABASE PMEM_DIRECTORY");
  std::string error;
  auto memory = PersistentMemory::Open(arguments[2], 64ull << 20, false, &error);
  Check(memory != nullptr, error);
  UseAllocators(*memory, arguments[1]);
  UseTiers(*memory, arguments[1]);
  UseTieredCaches(*memory, arguments[1]);
  Refuse(*memory);
  std::cout << "OK\n";
  return 0;
}
