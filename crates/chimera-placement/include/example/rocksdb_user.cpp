// A C++ program that puts RocksDB's block cache and memtables into persistent memory.
//
//   rocksdb_user DATABASE PMEM_DIRECTORY
#include <chimera_placement.h>
#include <rocksdb/db.h>
#include <rocksdb/table.h>

#include <iostream>
#include <string>

int main(int count, char** arguments) {
  if (count != 3) {
    std::cerr << "rocksdb_user DATABASE PMEM_DIRECTORY\n";
    return 2;
  }
  std::string error;
  auto memory =
      chimera_placement::PersistentMemory::Open(arguments[2], 64ull << 20, false, &error);
  if (memory == nullptr) {
    std::cerr << error << "\n";
    return 1;
  }
  rocksdb::LRUCacheOptions cache;
  cache.capacity = 8ull << 20;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = memory->NewBlockCache(cache, 100);
  rocksdb::Options options;
  options.create_if_missing = true;
  options.allow_concurrent_memtable_write = false;
  options.write_buffer_size = 1ull << 20;
  options.memtable_factory = memory->NewMemTableFactory(60);
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  // What was made keeps the memory.
  memory.reset();

  rocksdb::DB* db = nullptr;
  rocksdb::Status status = rocksdb::DB::Open(options, arguments[1], &db);
  const std::string value(1000, 'v');
  for (int number = 0; status.ok() && number < 5000; ++number) {
    status = db->Put({}, std::to_string(number), value + std::to_string(number));
  }
  for (int number = 0; status.ok() && number < 5000; ++number) {
    std::string found;
    status = db->Get({}, std::to_string(number), &found);
    if (status.ok() && found != value + std::to_string(number)) {
      status = rocksdb::Status::Corruption("another value");
    }
  }
  delete db;
  std::cout << status.ToString() << "\n";
  return status.ok() ? 0 : 1;
}
