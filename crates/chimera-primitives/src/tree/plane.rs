//! [`Plane`]: the inner nodes of NV-Tree, one after the other, found by arithmetic and not by pointers.
//!
//! The lowest are the parents of leaves, which have room for a number of them. When one is full, all inner nodes are made
//! anew, with a parent for each leaf (as HiKV reports of NVStore in section 4.7: "one parent-leaf-node per leaf node").
//! That is what makes the DRAM of this tree so much more than the other's.

/// Most leaves of a parent.
const LEAVES_MAX: usize = 32;
/// Children of a node above them.
const FAN_OUT: usize = 32;

/// See the module.
pub(super) struct Plane {
    key_words: usize,
    /// For each parent, how many leaves it has.
    counts: Vec<u16>,
    /// For each parent, room for the first keys of its leaves, and for the leaves.
    keys: Vec<u64>,
    leaves: Vec<u32>,
    /// First keys of nodes of the level below, lowest level first.
    levels: Vec<Vec<u64>>,
}

/// A leaf in its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    parent: usize,
    number: usize,
}

impl Plane {
    /// The inner nodes over leaves in their order, each with its first key; that of the first one counts as the least.
    pub(super) fn build(key_words: usize, leaves: &[(Vec<u64>, u32)]) -> Self {
        let count = leaves.len();
        let mut plane = Self {
            key_words,
            counts: vec![1; count],
            keys: vec![0; count * LEAVES_MAX * key_words],
            leaves: vec![0; count * LEAVES_MAX],
            levels: Vec::new(),
        };
        for (number, (key, leaf)) in leaves.iter().enumerate() {
            let first = number * LEAVES_MAX;
            plane.keys[first * key_words..][..key_words].copy_from_slice(key);
            plane.leaves[first] = *leaf;
        }
        let mut level: Vec<u64> = leaves.iter().flat_map(|(key, _)| key.iter().copied()).collect();
        loop {
            let nodes = level.len() / key_words;
            let above: Vec<u64> = level
                .chunks(FAN_OUT * key_words)
                .flat_map(|node| &node[..key_words])
                .copied()
                .collect();
            plane.levels.push(level);
            if nodes <= FAN_OUT {
                return plane;
            }
            level = above;
        }
    }

    /// The last of some keys that is not larger than `key`; the first where all are.
    #[inline]
    fn last_not_larger(&self, keys: &[u64], key: &[u64]) -> usize {
        let words = self.key_words;
        let (mut low, mut high) = (0, keys.len() / words);
        while low < high {
            let middle = low.midpoint(high);
            if keys[middle * words..][..words] <= *key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low.saturating_sub(1)
    }

    /// Where the leaf is that has a key.
    #[inline]
    pub(super) fn find(&self, key: &[u64]) -> Slot {
        let words = self.key_words;
        let mut node = 0;
        for level in self.levels.iter().rev() {
            let first = node * FAN_OUT * words;
            let end = (first + FAN_OUT * words).min(level.len());
            node = node * FAN_OUT + self.last_not_larger(&level[first..end], key);
        }
        let first = node * LEAVES_MAX * words;
        let count = usize::from(self.counts[node]);
        let number = self.last_not_larger(&self.keys[first..][..count * words], key);
        Slot { parent: node, number }
    }

    /// The leaf of a slot.
    #[inline]
    pub(super) fn leaf(&self, slot: Slot) -> u32 {
        self.leaves[slot.parent * LEAVES_MAX + slot.number]
    }

    /// Puts another leaf in the place of one.
    pub(super) fn replace(&mut self, slot: Slot, leaf: u32) {
        self.leaves[slot.parent * LEAVES_MAX + slot.number] = leaf;
    }

    /// Enters a leaf behind one of a slot; whether there was room. If there was none, all is to be built anew.
    pub(super) fn insert_behind(&mut self, slot: Slot, first_key: &[u64], leaf: u32) -> bool {
        let count = usize::from(self.counts[slot.parent]);
        if count == LEAVES_MAX {
            return false;
        }
        let words = self.key_words;
        let (base, at) = (slot.parent * LEAVES_MAX, slot.number + 1);
        let keys = &mut self.keys[base * words..][..(count + 1) * words];
        keys.copy_within(at * words..count * words, (at + 1) * words);
        keys[at * words..][..words].copy_from_slice(first_key);
        let leaves = &mut self.leaves[base..][..=count];
        leaves.copy_within(at..count, at + 1);
        leaves[at] = leaf;
        self.counts[slot.parent] += 1;
        true
    }

    /// All leaves in their order, with their first keys, without the one of `gone`.
    pub(super) fn list(&self, gone: Option<Slot>) -> Vec<(Vec<u64>, u32)> {
        let words = self.key_words;
        let mut all = Vec::new();
        for (parent, count) in self.counts.iter().enumerate() {
            for number in 0..usize::from(*count) {
                if gone != Some(Slot { parent, number }) {
                    let at = parent * LEAVES_MAX + number;
                    all.push((self.keys[at * words..][..words].to_vec(), self.leaves[at]));
                }
            }
        }
        all
    }

    /// Memory of all nodes.
    pub(super) fn dram_bytes(&self) -> u64 {
        let levels: usize = self.levels.iter().map(|level| level.len() * 8).sum();
        (self.counts.len() * 2 + self.keys.len() * 8 + self.leaves.len() * 4 + levels) as u64
    }
}
