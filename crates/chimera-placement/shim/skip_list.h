// SkipList: an ordered set of entries of a memtable (Pugh, "Skip lists: a probabilistic alternative to balanced trees", 1990).
//
// Nodes and entries lie in a NodeArena, one behind the other: a word with the height, the links from the lowest level up, the
// entry. Nodes are never removed.
//
// Concurrency: one thread inserts, any number of threads read.
// 1. A node is complete before the first link to it is stored with release. Readers load links with acquire, so what they reach
//    is complete.
// 2. Links are set from the lowest level up. A node that is reached on any level is linked on all levels below.
// 3. The height of the list only grows. A reader that sees it too small begins lower, one that sees it too large finds null
//    links at the head.
//
// Reads of nodes in persistent memory are reported to the heap's model: each node whose entry is compared is read once for
// each comparison, its first line alone.
#pragma once

#include <rocksdb/memtablerep.h>

#include <atomic>

#include "node_arena.h"

namespace chimera_placement {

class SkipList {
 public:
  struct Node;

  SkipList(const ChimeraHeap* heap, const rocksdb::MemTableRep::KeyComparator& comparator);

  // Allocates a node whose entry has `length` bytes. The caller writes the entry, then inserts the node.
  Node* NewNode(size_t length);
  static char* EntryOf(Node* node);

  // The node's entry compares unequal to all that are there.
  void Insert(Node* node);

  // The first node whose entry is not less than `entry`; null when there is none.
  Node* FirstFrom(const char* entry) const;
  // The last node whose entry is less than `entry`; null when there is none.
  Node* LastBefore(const char* entry) const;
  Node* First() const;
  Node* Last() const;
  static Node* Next(Node* node);

  int Compare(Node* node, const char* entry) const;
  // About how many entries are less than `entry`.
  uint64_t CountBefore(const char* entry) const;
  // Says that the entry was read beyond its key.
  void ReadEntry(const char* from, size_t length) const;
  // Says that a node was written, up to the end of its entry.
  void StoredNode(Node* node, const char* end) const;
  size_t bytes() const { return arena_.bytes(); }

 private:
  static constexpr int kHeightMax = 12;
  // A node is on the next level with a probability of one in four.
  static constexpr uint32_t kBranching = 4;

  int RandomHeight();
  Node* Allocate(int height, size_t length);
  // For each level up to the height of the list, the last node whose entry is less than `entry`. Returns the first one that is
  // not less.
  Node* Descend(const char* entry, Node** before) const;
  bool IsBefore(Node* node, const char* entry) const;

  NodeArena arena_;
  const rocksdb::MemTableRep::KeyComparator& comparator_;
  const bool has_model_;
  Node* const head_;
  std::atomic<int> height_{1};
  uint64_t random_ = 0x2545f4914f6cdd1d;
};

}  // namespace chimera_placement
