// A memtable with one writer and three readers. The heap is that of this file, so that all of it but RocksDB is compiled with what
// the test asks for: nothing, or ThreadSanitizer.
//
//   memtable ENTRIES
#include <rocksdb/memtablerep.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "memtable.h"
#include "rust.h"

using rocksdb::MemTableRep;
using rocksdb::Slice;

extern "C" {

struct ChimeraHeap {
  std::atomic<uint64_t> live{0};
};

// Objects have their length in front.
void* chimera_heap_allocate_in(const ChimeraHeap* heap, size_t size, bool) {
  const_cast<ChimeraHeap*>(heap)->live += size;
  auto* words = static_cast<size_t*>(std::malloc(size + 16));
  words[0] = size;
  return words + 2;
}
void chimera_heap_free(const ChimeraHeap* heap, void* object) {
  size_t* words = static_cast<size_t*>(object) - 2;
  const_cast<ChimeraHeap*>(heap)->live -= words[0];
  std::free(words);
}
size_t chimera_heap_usable_bytes(const ChimeraHeap*, void* object) {
  return static_cast<size_t*>(object)[-2];
}
bool chimera_heap_takes(const ChimeraHeap*, uint64_t pmem, uint64_t total, uint64_t size) {
  return (pmem + size) * 10 <= (total + size) * 6;
}
bool chimera_heap_has_model(const ChimeraHeap*) { return false; }
void chimera_heap_read(const ChimeraHeap*, const void*, size_t) {}
void chimera_heap_stored(const ChimeraHeap*, const void*, size_t) {}
void chimera_heap_retain(const ChimeraHeap*) {}
void chimera_heap_release(const ChimeraHeap*) {}

}  // extern "C"

namespace {

constexpr size_t kKeyBytes = 24;

void Check(bool is_right, const char* what) {
  if (!is_right) {
    std::fprintf(stderr, "%s\n", what);
    std::_Exit(1);
  }
}

// Entries are a length, a key with a tag, a length and a value. Keys and values are shorter than 128 bytes.
Slice KeyOf(const char* entry) { return Slice(entry + 1, entry[0]); }

class Comparator : public MemTableRep::KeyComparator {
 public:
  int operator()(const char* a, const char* b) const override {
    return KeyOf(a).compare(KeyOf(b));
  }
  int operator()(const char* a, const Slice& b) const override { return KeyOf(a).compare(b); }
};

std::string InternalKey(int number) {
  char key[kKeyBytes + 1];
  std::snprintf(key, sizeof(key), "%016dtagtagta", number);
  return key;
}

std::string ValueOf(int number) { return std::string(number % 100, 'a' + number % 26); }

std::string EntryOf(int number) {
  const std::string value = ValueOf(number);
  std::string entry(1, static_cast<char>(kKeyBytes));
  entry += InternalKey(number);
  entry += static_cast<char>(value.size());
  return entry + value;
}

int NumberOf(const char* entry) {
  return std::atoi(KeyOf(entry).ToString().substr(0, 16).c_str());
}

void CheckEntry(const char* entry) {
  const std::string expected = EntryOf(NumberOf(entry));
  Check(std::memcmp(entry, expected.data(), expected.size()) == 0, "another entry");
}

void Write(MemTableRep* table, int entries, std::atomic<int>* written) {
  for (int at = 0; at < entries; ++at) {
    // Each number once, not in order.
    const std::string entry = EntryOf(static_cast<int>(at * 7919L % entries));
    char* buffer = nullptr;
    rocksdb::KeyHandle handle = table->Allocate(entry.size(), &buffer);
    std::memcpy(buffer, entry.data(), entry.size());
    table->Insert(handle);
    written->store(at + 1, std::memory_order_release);
  }
}

int Walk(MemTableRep::Iterator* iterator, bool forward) {
  int count = 0, last = forward ? -1 : INT32_MAX;
  forward ? iterator->SeekToFirst() : iterator->SeekToLast();
  while (iterator->Valid()) {
    CheckEntry(iterator->key());
    const int number = NumberOf(iterator->key());
    Check(forward ? number > last : number < last, "out of order");
    last = number;
    ++count;
    forward ? iterator->Next() : iterator->Prev();
  }
  return count;
}

void Seek(MemTableRep* table, MemTableRep::Iterator* iterator, int number) {
  const std::string entry = EntryOf(number);
  Check(table->Contains(entry.data()), "an entry is missing");
  iterator->Seek(InternalKey(number), nullptr);
  Check(iterator->Valid() && NumberOf(iterator->key()) == number, "Seek");
  iterator->SeekForPrev(InternalKey(number), nullptr);
  Check(iterator->Valid() && NumberOf(iterator->key()) == number, "SeekForPrev");
  table->ApproximateNumEntries(InternalKey(number / 2), InternalKey(number));
  Check(table->ApproximateMemoryUsage() > 0, "no memory");
}

void Read(MemTableRep* table, int entries, const std::atomic<int>* written) {
  std::unique_ptr<MemTableRep::Iterator> iterator(table->GetIterator(nullptr));
  for (int round = 0;; ++round) {
    const int least = written->load(std::memory_order_acquire);
    const bool is_forward = round % 2 == 0;
    Check(Walk(iterator.get(), is_forward) >= least, "entries are missing");
    for (int at = least > 100 ? least - 100 : 0; at < least; ++at) {
      Seek(table, iterator.get(), static_cast<int>(at * 7919L % entries));
    }
    if (least == entries) {
      return;
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  const int entries = count == 2 ? std::atoi(arguments[1]) : 0;
  Check(entries > 0 && entries % 7919 != 0, "memtable ENTRIES, no multiple of 7919");
  ChimeraHeap heap;
  const Comparator comparator;
  chimera_placement::PlacedMemTableFactory factory(&heap);
  std::unique_ptr<MemTableRep> table(
      factory.CreateMemTableRep(comparator, nullptr, nullptr, nullptr));
  std::atomic<int> written{0};
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 3; ++reader) {
    readers.emplace_back(Read, table.get(), entries, &written);
  }
  Write(table.get(), entries, &written);
  for (std::thread& reader : readers) {
    reader.join();
  }
  table.reset();
  Check(heap.live == 0, "memory is left");
  std::puts("OK");
  return 0;
}
