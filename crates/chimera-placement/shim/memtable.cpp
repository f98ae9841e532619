#include "memtable.h"

#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "skip_list.h"

namespace chimera_placement {

using rocksdb::MemTableRep;
using rocksdb::Slice;

namespace {

using Node = SkipList::Node;

// Bytes behind the user key of an internal key: its sequence number and type.
constexpr size_t kTagBytes = 8;

// The internal key of an entry.
Slice KeyOf(const char* entry) { return rocksdb::GetLengthPrefixedSlice(entry); }

// The value of an entry.
Slice ValueOf(const char* entry) {
  const Slice key = KeyOf(entry);
  return rocksdb::GetLengthPrefixedSlice(key.data() + key.size());
}

Slice UserKeyOf(const Slice& key) { return Slice(key.data(), key.size() - kTagBytes); }

// An internal key as entries have it: behind its length.
const char* Encode(const Slice& key, std::string* buffer) {
  buffer->clear();
  size_t length = key.size();
  while (length >= 128) {
    buffer->push_back(static_cast<char>(length | 128));
    length >>= 7;
  }
  buffer->push_back(static_cast<char>(length));
  buffer->append(key.data(), key.size());
  return buffer->data();
}

// Memory of an iterator, given back after everything else of the iterator is destroyed. A caller with an arena destroys an
// iterator and never deletes it; one without deletes it. Both lead here.
class OwnMemory {
 public:
  explicit OwnMemory(void* memory) : memory_(memory) {}
  OwnMemory(const OwnMemory&) = delete;
  OwnMemory& operator=(const OwnMemory&) = delete;
  ~OwnMemory() { ::operator delete(memory_); }

 private:
  void* memory_;
};

// What an iterator is for decides what it reads of entries.
enum class Purpose {
  // All values.
  kScan,
  // The value of the key that is sought alone.
  kLookup,
};

// Bases are destroyed from the last to the first: the memory goes last.
class PlacedIterator final : private OwnMemory, public MemTableRep::Iterator {
 public:
  static PlacedIterator* New(const SkipList* list, Purpose purpose) {
    void* memory = ::operator new(sizeof(PlacedIterator));
    return new (memory) PlacedIterator(memory, list, purpose);
  }
  // The destructor has given the memory back.
  static void operator delete(void*) {}

  bool Valid() const override { return node_ != nullptr; }

  const char* key() const override {
    const char* entry = SkipList::EntryOf(node_);
    if (purpose_ == Purpose::kLookup && UserKeyOf(KeyOf(entry)) == UserKeyOf(sought_)) {
      ReadValue(entry);
    }
    return entry;
  }

  void Next() override { Arrive(SkipList::Next(node_)); }
  void Prev() override { Arrive(list_->LastBefore(SkipList::EntryOf(node_))); }

  void Seek(const Slice& internal_key, const char* entry) override {
    sought_ = internal_key;
    Arrive(list_->FirstFrom(Encoded(internal_key, entry)));
  }

  void SeekForPrev(const Slice& internal_key, const char* entry) override {
    const char* encoded = Encoded(internal_key, entry);
    Node* node = list_->FirstFrom(encoded);
    if (node != nullptr && list_->Compare(node, encoded) == 0) {
      Arrive(node);
    } else {
      Arrive(list_->LastBefore(encoded));
    }
  }

  void SeekToFirst() override { Arrive(list_->First()); }
  void SeekToLast() override { Arrive(list_->Last()); }

 private:
  PlacedIterator(void* memory, const SkipList* list, Purpose purpose)
      : OwnMemory(memory), list_(list), purpose_(purpose) {}

  static void* operator new(size_t, void* memory) { return memory; }

  void Arrive(Node* node) {
    node_ = node;
    if (node_ != nullptr && purpose_ == Purpose::kScan) {
      ReadValue(SkipList::EntryOf(node_));
    }
  }

  void ReadValue(const char* entry) const {
    const Slice value = ValueOf(entry);
    list_->ReadEntry(entry, value.data() + value.size() - entry);
  }

  const char* Encoded(const Slice& internal_key, const char* entry) {
    return entry != nullptr ? entry : Encode(internal_key, &encoded_);
  }

  const SkipList* list_;
  const Purpose purpose_;
  Node* node_ = nullptr;
  Slice sought_;
  std::string encoded_;
};

// Where a lookup of this thread wants to know the iterator that it makes; null outside of lookups.
thread_local PlacedIterator** made_by_lookup = nullptr;

class PlacedMemTable final : public MemTableRep {
 public:
  PlacedMemTable(const ChimeraHeap* heap, const KeyComparator& comparator,
                 rocksdb::Allocator* allocator)
      : MemTableRep(allocator), list_(heap, comparator) {}

  rocksdb::KeyHandle Allocate(const size_t length, char** buffer) override {
    Node* node = list_.NewNode(length);
    *buffer = SkipList::EntryOf(node);
    return node;
  }

  void Insert(rocksdb::KeyHandle handle) override {
    Node* node = static_cast<Node*>(handle);
    const Slice value = ValueOf(SkipList::EntryOf(node));
    list_.StoredNode(node, value.data() + value.size());
    list_.Insert(node);
  }

  bool Contains(const char* key) const override {
    Node* node = list_.FirstFrom(key);
    return node != nullptr && list_.Compare(node, key) == 0;
  }

  // RocksDB's own lookup makes an iterator without an arena and never destroys it.
  void Get(const rocksdb::LookupKey& key, void* arguments,
           bool (*callback)(void* arguments, const char* entry)) override {
    PlacedIterator* made = nullptr;
    PlacedIterator** const outer = std::exchange(made_by_lookup, &made);
    MemTableRep::Get(key, arguments, callback);
    made_by_lookup = outer;
    delete made;
  }

  size_t ApproximateMemoryUsage() override { return list_.bytes(); }

  uint64_t ApproximateNumEntries(const Slice& start, const Slice& end) override {
    std::string buffer;
    const uint64_t before_end = list_.CountBefore(Encode(end, &buffer));
    const uint64_t before_start = list_.CountBefore(Encode(start, &buffer));
    return before_end > before_start ? before_end - before_start : 0;
  }

  Iterator* GetIterator(rocksdb::Arena*) override {
    return PlacedIterator::New(&list_, Purpose::kScan);
  }

  // RocksDB looks up keys with such an iterator, without an arena.
  Iterator* GetDynamicPrefixIterator(rocksdb::Arena* arena) override {
    PlacedIterator* iterator =
        PlacedIterator::New(&list_, arena == nullptr ? Purpose::kLookup : Purpose::kScan);
    // The first one of a lookup is the lookup's. What is made inside of its callback has another owner.
    if (made_by_lookup != nullptr && *made_by_lookup == nullptr) {
      *made_by_lookup = iterator;
    }
    return iterator;
  }

 private:
  SkipList list_;
};

}  // namespace

MemTableRep* PlacedMemTableFactory::CreateMemTableRep(
    const MemTableRep::KeyComparator& comparator, rocksdb::Allocator* allocator,
    const rocksdb::SliceTransform* /*transform*/, rocksdb::Logger* /*logger*/) {
  return new PlacedMemTable(heap_.get(), comparator, allocator);
}

}  // namespace chimera_placement
