#include "skip_list.h"

#include <new>

namespace chimera_placement {

// A node's first word; its links and its entry lie behind it.
struct SkipList::Node {
  explicit Node(int height) : height(height) {}

  std::atomic<Node*>& Link(int level) {
    return reinterpret_cast<std::atomic<Node*>*>(this + 1)[level];
  }
  Node* Next(int level) { return Link(level).load(std::memory_order_acquire); }

  const int64_t height;
};

namespace {

// What a comparison reads of a node: the line that it begins in.
constexpr size_t kComparedBytes = 64;

}  // namespace

SkipList::SkipList(const ChimeraHeap* heap,
                   const rocksdb::MemTableRep::KeyComparator& comparator)
    : arena_(heap),
      comparator_(comparator),
      has_model_(chimera_heap_has_model(heap)),
      head_(Allocate(kHeightMax, 0)) {}

SkipList::Node* SkipList::Allocate(int height, size_t length) {
  const size_t links = sizeof(std::atomic<Node*>) * height;
  char* memory = arena_.Allocate(sizeof(Node) + links + length);
  Node* node = new (memory) Node(height);
  for (int level = 0; level < height; ++level) {
    new (&node->Link(level)) std::atomic<Node*>(nullptr);
  }
  return node;
}

SkipList::Node* SkipList::NewNode(size_t length) { return Allocate(RandomHeight(), length); }

char* SkipList::EntryOf(Node* node) { return reinterpret_cast<char*>(&node->Link(node->height)); }

int SkipList::RandomHeight() {
  int height = 1;
  while (height < kHeightMax) {
    // Xorshift (Marsaglia, 2003).
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    if ((random_ >> 32) % kBranching != 0) {
      break;
    }
    ++height;
  }
  return height;
}

int SkipList::Compare(Node* node, const char* entry) const {
  if (has_model_) {
    chimera_heap_read(arena_.heap(), node, kComparedBytes);
  }
  return comparator_(EntryOf(node), entry);
}

bool SkipList::IsBefore(Node* node, const char* entry) const {
  return node != nullptr && Compare(node, entry) < 0;
}

void SkipList::ReadEntry(const char* from, size_t length) const {
  if (has_model_) {
    chimera_heap_read(arena_.heap(), from, length);
  }
}

void SkipList::StoredNode(Node* node, const char* end) const {
  if (has_model_) {
    chimera_heap_stored(arena_.heap(), node, end - reinterpret_cast<const char*>(node));
  }
}

SkipList::Node* SkipList::Descend(const char* entry, Node** before) const {
  Node* node = head_;
  // The last node that was found not to be before the entry: it often is the next one on the level below, too.
  Node* not_before = nullptr;
  for (int level = height_.load(std::memory_order_relaxed) - 1; level >= 0; --level) {
    Node* next = node->Next(level);
    while (next != not_before && IsBefore(next, entry)) {
      node = next;
      next = node->Next(level);
    }
    not_before = next;
    before[level] = node;
  }
  return not_before;
}

void SkipList::Insert(Node* node) {
  Node* before[kHeightMax];
  const char* entry = EntryOf(node);
  Descend(entry, before);
  const int height = height_.load(std::memory_order_relaxed);
  const int node_height = static_cast<int>(node->height);
  for (int level = height; level < node_height; ++level) {
    before[level] = head_;
  }
  if (node_height > height) {
    height_.store(node_height, std::memory_order_relaxed);
  }
  for (int level = 0; level < node_height; ++level) {
    node->Link(level).store(before[level]->Next(level), std::memory_order_relaxed);
    before[level]->Link(level).store(node, std::memory_order_release);
  }
}

SkipList::Node* SkipList::FirstFrom(const char* entry) const {
  Node* before[kHeightMax];
  return Descend(entry, before);
}

SkipList::Node* SkipList::LastBefore(const char* entry) const {
  Node* before[kHeightMax];
  Descend(entry, before);
  return before[0] == head_ ? nullptr : before[0];
}

SkipList::Node* SkipList::First() const { return head_->Next(0); }

SkipList::Node* SkipList::Last() const {
  Node* node = head_;
  for (int level = height_.load(std::memory_order_relaxed) - 1; level >= 0; --level) {
    for (Node* next = node->Next(level); next != nullptr; next = node->Next(level)) {
      node = next;
    }
  }
  return node == head_ ? nullptr : node;
}

SkipList::Node* SkipList::Next(Node* node) { return node->Next(0); }

uint64_t SkipList::CountBefore(const char* entry) const {
  Node* node = head_;
  uint64_t count = 0;
  for (int level = height_.load(std::memory_order_relaxed) - 1; level >= 0; --level) {
    // Each step on a level stands for all nodes that are passed below, on average.
    count *= kBranching;
    for (Node* next = node->Next(level); IsBefore(next, entry); next = node->Next(level)) {
      node = next;
      ++count;
    }
  }
  return count;
}

}  // namespace chimera_placement
