//! [`FpTree`]: leaves with a bitmap and fingerprints in persistent memory, inner nodes in DRAM.
//!
//! # Protocol
//! A record goes to a free place of its leaf and is persisted; then its fingerprint; then the bitmap, which is one word. An
//! update writes the record to another place, and the same word drops the old one. Three persists each. A delete is one:
//! of the bitmap.
//!
//! A full leaf is split under a micro-log, which names it and the new one: the leaf is copied, with the bitmap of the upper
//! half; the old one's bitmap loses that half; it is linked to the new one. If a crash comes while the old leaf is still full,
//! recovery copies again; later, it goes on from the bitmap.
//!
//! An empty leaf leaves the chain by one word.

use chimera_pmem::{Extent, Operation, Pmem};

use super::base::{Base, HEAD_AT, LOG_AT, NONE};
use super::inner::Inner;
use super::{Tree, TreeFootprint, TreeShape, sites};
use crate::error::{PrimitivesError, Result};
use crate::layout::{
    Geometry, Hashing, Layout, LayoutKind, Node, NodeShape, Place, Scratch, Search, Walk, bitmap,
    bitmapped, bytes, compaction, key_bytes, key_hash,
};

const KIND: u64 = 1;

/// See the module.
pub struct FpTree<P: Pmem> {
    base: Base<P>,
    inner: Inner,
    scratch: Scratch,
}

impl<P: Pmem> std::fmt::Debug for FpTree<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FpTree").field("records", &self.base.records).finish_non_exhaustive()
    }
}

fn geometry(shape: TreeShape) -> Result<Geometry> {
    let TreeShape { key_bytes, value_bytes, leaf_entries } = shape;
    let node = NodeShape { kind: LayoutKind::Hashing, key_bytes, value_bytes, node_bytes: 0 };
    Geometry::of_entries(node, leaf_entries)
}

/// The bitmap with all entries.
fn full(geometry: &Geometry) -> u64 {
    geometry.bitmap_mask(0)
}

/// Stores the bitmap of a leaf, durably.
fn commit<P: Pmem>(node: Node<'_, P>, word: u64, depends_on: &[Extent]) {
    let at = node.at + node.geometry.bitmap_at;
    node.pmem.publish(at, word, depends_on, sites::COMMIT);
    node.pmem.flush(Extent::new_checked(at, 8), sites::COMMIT);
    node.pmem.fence(sites::COMMIT);
}

impl<P: Pmem> FpTree<P> {
    #[inline]
    fn find(&self, key: &[u64]) -> Result<(Node<'_, P>, Option<Place>)> {
        let node = self.base.leaf(self.inner.find(key))?;
        Ok((node, Hashing::search(node, key, Search::Linear)?))
    }

    /// Stores a record that may be there, or only one that is; whether it was there.
    fn store(&mut self, key: &[u8], value: &[u8], only_if_there: bool) -> Result<bool> {
        self.base.check_value(value)?;
        let words = self.base.key(key)?;
        let words = words.get();
        let (_, found) = self.find(words)?;
        if only_if_there && found.is_none() {
            return Ok(false);
        }
        let mut leaf = self.inner.find(words);
        if bitmap::word(self.base.leaf(leaf)?, 0)? == full(&self.base.geometry) {
            self.split(leaf)?;
            leaf = self.inner.find(words);
        }
        let node = self.base.leaf(leaf)?;
        let found = Hashing::search(node, words, Search::Linear)?;
        Self::write(node, words, value, found)?;
        self.base.records += u64::from(found.is_none());
        Ok(found.is_some())
    }

    /// Three persists: the record, its fingerprint, the bitmap.
    fn write(node: Node<'_, P>, key: &[u64], value: &[u8], old: Option<Place>) -> Result<()> {
        let index = bitmap::free_index(node)?;
        let mut dirty = node.dirty();
        node.write_entry(index, key, value, &mut dirty);
        dirty.persist(node.pmem, sites::RECORD);
        let mut dirty = node.dirty();
        let hashes_at = node.geometry.hashes_at;
        bytes::store(node, hashes_at, index..index + 1, &mut dirty, |_| key_hash(key));
        dirty.persist(node.pmem, sites::FINGERPRINT);
        let dropped = old.map_or(0, |place| 1 << place.index);
        let word = bitmap::word(node, 0)? & !dropped | 1 << index;
        commit(node, word, &node.entry_extents(index));
        Ok(())
    }

    /// Splits a full leaf.
    fn split(&mut self, leaf: u32) -> Result<()> {
        let base = &mut self.base;
        let new = base.leaves.allocate(&base.pmem)? as u32;
        let nodes = [leaf, new].map(|leaf| base.leaves.node_at(u64::from(leaf)));
        let pmem = &base.pmem;
        pmem.store_u64(LOG_AT + 8, nodes[1], sites::SPLIT_LOG);
        // In the same line after the other: while it is 0, there is no split.
        pmem.store_u64(LOG_AT, nodes[0], sites::SPLIT_LOG);
        pmem.flush(Extent::new_checked(LOG_AT, 16), sites::SPLIT_LOG);
        pmem.fence(sites::SPLIT_LOG);
        let after = base.after(leaf)?;
        Self::copy_upper_half(base.leaf(leaf)?, base.leaf(new)?, &mut self.scratch)?;
        Self::finish_split(base.leaf(leaf)?, base.leaf(new)?)?;
        base.before[new as usize] = leaf;
        if after != NONE {
            base.before[after as usize] = new;
        }
        self.inner.insert(&self.scratch.separator, new);
        Ok(())
    }

    fn copy_upper_half(node: Node<'_, P>, new: Node<'_, P>, scratch: &mut Scratch) -> Result<()> {
        scratch.order.clear();
        Hashing::iterate(node, Walk::Bitmap, |index| scratch.order.push(index))?;
        let count = scratch.order.len();
        if count < 2 {
            return PrimitivesError::corrupted("a leaf that is split is not full", node.at);
        }
        let keep = count - count / 2;
        compaction::halve(node, keep, scratch);
        bitmapped::copy_half(node, new, keep, scratch);
        Ok(())
    }

    /// The rest of a split whose new leaf is durable; can be done again.
    fn finish_split(node: Node<'_, P>, new: Node<'_, P>) -> Result<()> {
        let upper = bitmap::word(new, 0)?;
        commit(node, full(node.geometry) & !upper, &[]);
        let link = node.at + node.geometry.next_at;
        node.pmem.publish(link, new.at, &[new.extent()], sites::LINK);
        node.pmem.flush(Extent::new_checked(link, 8), sites::LINK);
        node.pmem.fence(sites::LINK);
        Self::clear_log(node.pmem);
        Ok(())
    }

    fn clear_log(pmem: &P) {
        pmem.store_u64(LOG_AT, 0, sites::SPLIT_LOG);
        pmem.flush(Extent::new_checked(LOG_AT, 8), sites::SPLIT_LOG);
        pmem.fence(sites::SPLIT_LOG);
    }

    /// Finishes a split that a crash has cut off.
    fn recover_split(base: &Base<P>, scratch: &mut Scratch) -> Result<()> {
        let leaf = base.number(base.pmem.load_u64(LOG_AT))?;
        if leaf == NONE {
            return Ok(());
        }
        let new = base.number(base.pmem.load_u64(LOG_AT + 8))?;
        if new == NONE || new == leaf {
            return PrimitivesError::corrupted("the log of a split names no new leaf", LOG_AT);
        }
        let (node, new) = (base.leaf(leaf)?, base.leaf(new)?);
        if bitmap::word(node, 0)? == full(&base.geometry) {
            Self::copy_upper_half(node, new, scratch)?;
        }
        Self::finish_split(node, new)
    }

    /// Makes inner nodes over the chain. Empty leaves leave it.
    fn build(base: &mut Base<P>, scratch: &mut Scratch) -> Result<Inner> {
        let mut leaves: Vec<(Vec<u64>, u32)> = Vec::new();
        base.records = 0;
        let chain = base.walk()?;
        for leaf in &chain {
            let node = base.leaf(*leaf)?;
            let records = Hashing::recover(node, scratch)?.entries as u64;
            let (at, least) = (node.at, least_key(node, scratch)?);
            base.records += records;
            let Some(least) = least else {
                if chain.len() > 1 {
                    base.unlink(*leaf)?;
                }
                continue;
            };
            if leaves.last().is_some_and(|(before, _)| *before >= least) {
                return PrimitivesError::corrupted("leaves are not in the order of their keys", at);
            }
            leaves.push((least, *leaf));
        }
        if leaves.is_empty() {
            let words = base.geometry.key_words;
            leaves.push((vec![0; words], base.head()?));
        }
        Ok(Inner::build(base.geometry.key_words, &leaves))
    }

    fn create(base: &mut Base<P>) -> Result<()> {
        let first = base.leaves.allocate(&base.pmem)? as u32;
        Hashing::format(base.leaf(first)?);
        base.finish_creation(KIND, first);
        Ok(())
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool> {
        let words = self.base.key(key)?;
        let words = words.get();
        let (node, found) = self.find(words)?;
        let Some(place) = found else { return Ok(false) };
        let word = bitmap::word(node, 0)? & !(1 << place.index);
        commit(node, word, &[]);
        self.base.records -= 1;
        let leaf = self.inner.find(words);
        if word == 0 && !self.base.is_only(leaf)? {
            self.inner.remove(words);
            self.base.unlink(leaf)?;
        }
        Ok(true)
    }

    /// Hands the entries of one leaf from `from` on to `take`, in their order; whether it wants more.
    fn scan_leaf(
        &self,
        node: Node<'_, P>,
        from: &[u64],
        take: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<bool> {
        let words = self.base.geometry.key_words;
        let (mut keys, mut order) = (Vec::new(), Vec::new());
        Hashing::iterate(node, Walk::Bitmap, |index| {
            order.push((keys.len(), index));
            node.read_key(index, &mut keys);
        })?;
        order.retain(|(at, _)| keys[*at..][..words] >= *from);
        order.sort_unstable_by(|(a, _), (b, _)| keys[*a..][..words].cmp(&keys[*b..][..words]));
        let mut key = vec![0; self.base.shape.key_bytes as usize];
        let mut value = vec![0; self.base.shape.value_bytes as usize];
        for (at, index) in order {
            key_bytes(&keys[at..][..words], &mut key);
            node.read_value(index, &mut value);
            if !take(&key, &value) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// As [`scan`](Tree::scan), booked by the caller.
    fn scan_from(
        &self,
        from: &[u8],
        count: usize,
        mut take: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize> {
        let words = self.base.key(from)?;
        let mut leaf = self.inner.find(words.get());
        let mut taken = 0;
        let mut one = |key: &[u8], value: &[u8]| {
            if taken < count {
                take(key, value);
                taken += 1;
            }
            taken < count
        };
        for _ in 0..self.base.leaves.nodes() {
            let node = self.base.leaf(leaf)?;
            if count == 0 || !self.scan_leaf(node, words.get(), &mut one)? {
                break;
            }
            leaf = self.base.after(leaf)?;
            if leaf == NONE {
                break;
            }
        }
        Ok(taken)
    }
}

/// The smallest key of a leaf.
fn least_key<P: Pmem>(node: Node<'_, P>, scratch: &mut Scratch) -> Result<Option<Vec<u64>>> {
    let mut least: Option<Vec<u64>> = None;
    Hashing::iterate(node, Walk::Bitmap, |index| {
        scratch.separator.clear();
        node.read_key(index, &mut scratch.separator);
        if least.as_ref().is_none_or(|least| scratch.separator < *least) {
            least = Some(scratch.separator.clone());
        }
    })?;
    Ok(least)
}

impl<P: Pmem> Tree<P> for FpTree<P> {
    const NAME: &'static str = "fptree";

    fn bytes_for(shape: TreeShape, records: u64) -> Result<u64> {
        let leaves = 5 * records.div_ceil(2 * shape.leaf_entries as u64) + 4;
        Ok(Base::<P>::bytes_for(&geometry(shape)?, leaves))
    }

    fn open(pmem: P, shape: TreeShape) -> Result<Self> {
        let (mut base, is_new) = Base::open(pmem, shape, geometry(shape)?, KIND)?;
        let mut scratch = Scratch::default();
        let inner = base.operation(Operation::Recovery, |base| {
            if is_new {
                Self::create(base)?;
            }
            Self::recover_split(base, &mut scratch)?;
            Self::build(base, &mut scratch)
        })?;
        Ok(Self { base, inner, scratch })
    }

    fn pmem(&self) -> &P {
        &self.base.pmem
    }

    /// # Cost
    /// The lines of the bitmap and the fingerprints, of as many keys as have the fingerprint, and of the value.
    #[inline]
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let words = self.base.key(key)?;
        self.base.pmem.operation_begin(Operation::Get, 0);
        let found = self.find(words.get()).map(|(node, found)| {
            if let Some(place) = found {
                value.resize(self.base.shape.value_bytes as usize, 0);
                node.read_value(place.index, value);
            }
            found.is_some()
        });
        self.base.pmem.operation_acknowledge();
        found
    }

    /// # Cost
    /// Three persists.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.base.pmem.operation_begin(Operation::Insert, 0);
        let found = self.store(key, value, false);
        if matches!(found, Ok(true)) {
            self.base.pmem.operation_is(Operation::Overwrite);
        }
        self.base.pmem.operation_acknowledge();
        found.map(|was_there| !was_there)
    }

    /// # Cost
    /// Three persists.
    fn update(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.base.pmem.operation_begin(Operation::Update, 0);
        let found = self.store(key, value, true);
        self.base.pmem.operation_acknowledge();
        found
    }

    /// # Cost
    /// One persist; two more when the leaf is empty then.
    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        self.base.pmem.operation_begin(Operation::Delete, 0);
        let removed = self.remove(key);
        self.base.pmem.operation_acknowledge();
        removed
    }

    fn scan(&self, from: &[u8], count: usize, take: impl FnMut(&[u8], &[u8])) -> Result<usize> {
        self.base.pmem.operation_begin(Operation::Get, 0);
        let taken = self.scan_from(from, count, take);
        self.base.pmem.operation_acknowledge();
        taken
    }

    fn footprint(&self) -> TreeFootprint {
        self.base.footprint(self.inner.dram_bytes())
    }

    fn check(&self) -> Result<()> {
        let (mut leaf, mut leaves, mut records) = (self.base.head()?, 0, 0);
        while leaf != NONE && leaves <= self.base.leaves.nodes() {
            let node = self.base.leaf(leaf)?;
            let mut key = Vec::new();
            let mut is_found = true;
            Hashing::iterate(node, Walk::Bitmap, |index| {
                key.clear();
                node.read_key(index, &mut key);
                is_found &= self.inner.find(&key) == leaf;
                records += 1;
            })?;
            if !is_found {
                return PrimitivesError::corrupted("a key is not where it is looked for", node.at);
            }
            leaves += 1;
            leaf = self.base.after(leaf)?;
        }
        if records != self.base.records || leaves != self.base.leaves.taken_count() {
            return PrimitivesError::corrupted("chain and allocated leaves do not agree", HEAD_AT);
        }
        Ok(())
    }
}
