//! [`NvTree`]: leaves that are appended to in persistent memory, contiguous inner nodes in DRAM.
//!
//! # Protocol
//! Every change is an entry of its leaf: a key, a flag that says whether it is there or gone, a value. The entry is persisted;
//! then the leaf's count, one word. Two persists for a put, an update and a delete alike. The last entry of a key is in force.
//!
//! A full leaf is replaced: by one leaf with the entries in force, by two where they fill more than half. The new ones are
//! durable before the one word that leads to them instead.

use chimera_pmem::{Extent, Operation, Pmem};

use super::base::{Base, HEAD_AT, NONE};
use super::plane::{Plane, Slot};
use super::{Tree, TreeFootprint, TreeShape, sites};
use crate::error::{PrimitivesError, Result};
use crate::layout::{Geometry, Layout, LayoutKind, Node, NodeShape, Unsorted, counted, key_bytes};

const KIND: u64 = 2;
/// Flags of entries.
const THERE: u64 = 1;
const GONE: u64 = 2;

/// See the module.
pub struct NvTree<P: Pmem> {
    base: Base<P>,
    plane: Plane,
    entry: Vec<u8>,
}

impl<P: Pmem> std::fmt::Debug for NvTree<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NvTree").field("records", &self.base.records).finish_non_exhaustive()
    }
}

fn geometry(shape: TreeShape) -> Result<Geometry> {
    let TreeShape { key_bytes, value_bytes, leaf_entries } = shape;
    let value_bytes = value_bytes.saturating_add(8);
    let node = NodeShape { kind: LayoutKind::Unsorted, key_bytes, value_bytes, node_bytes: 0 };
    Geometry::of_entries(node, leaf_entries)
}

/// The last entry of a key, from the end on; its index if it is there.
#[inline]
fn find_last<P: Pmem>(node: Node<'_, P>, key: &[u64]) -> Result<Option<usize>> {
    let count = counted::count(node)?;
    let last = (0..count).rev().find(|index| node.compare_key(*index, key).is_eq());
    last.map(|index| is_there(node, index).map(|there| there.then_some(index)))
        .transpose()
        .map(Option::flatten)
}

/// Whether an entry says that its key is there.
#[inline]
fn is_there<P: Pmem>(node: Node<'_, P>, index: usize) -> Result<bool> {
    match node.value_first(index) {
        THERE => Ok(true),
        GONE => Ok(false),
        _ => PrimitivesError::corrupted("an entry is neither there nor gone", node.at),
    }
}

/// Keys and indices of the entries in force, in the order of keys.
fn in_force<P: Pmem>(node: Node<'_, P>) -> Result<Vec<(Vec<u64>, usize)>> {
    let mut entries = Vec::new();
    for index in (0..counted::count(node)?).rev() {
        let mut key = Vec::with_capacity(node.geometry.key_words);
        node.read_key(index, &mut key);
        entries.push((key, index));
    }
    // Stable: of equal keys the last entry stays first.
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    entries.dedup_by(|(later, _), (kept, _)| later == kept);
    let mut there = Vec::with_capacity(entries.len());
    for (key, index) in entries {
        if is_there(node, index)? {
            there.push((key, index));
        }
    }
    Ok(there)
}

impl<P: Pmem> NvTree<P> {
    #[inline]
    fn find(&self, key: &[u64]) -> Result<(Node<'_, P>, Option<usize>)> {
        let node = self.base.leaf(self.plane.leaf(self.plane.find(key)))?;
        Ok((node, find_last(node, key)?))
    }

    /// Appends an entry, if the key's being there is as wanted; whether it was there.
    fn append(&mut self, key: &[u8], flag: u64, value: &[u8], only_if_there: bool) -> Result<bool> {
        let words = self.base.key(key)?;
        let words = words.get();
        let was_there = self.find(words)?.1.is_some();
        if only_if_there && !was_there {
            return Ok(false);
        }
        // Replacing a leaf makes room, since the entries in force fill no more than half of what comes.
        let slot = self.plane.find(words);
        if counted::count(self.base.leaf(self.plane.leaf(slot))?)? == self.base.geometry.entries {
            self.replace(slot)?;
        }
        self.entry.clear();
        self.entry.extend_from_slice(&flag.to_le_bytes());
        self.entry.extend_from_slice(value);
        self.entry.resize(self.base.geometry.value_stride as usize, 0);
        let node = self.base.leaf(self.plane.leaf(self.plane.find(words)))?;
        let index = counted::count(node)?;
        let mut dirty = node.dirty();
        node.write_entry(index, words, &self.entry, &mut dirty);
        dirty.persist(node.pmem, sites::RECORD);
        node.pmem.publish(node.at, index as u64 + 1, &node.entry_extents(index), sites::COMMIT);
        node.pmem.flush(Extent::new_checked(node.at, 8), sites::COMMIT);
        node.pmem.fence(sites::COMMIT);
        self.base.records += u64::from(flag == THERE && !was_there);
        self.base.records -= u64::from(flag == GONE && was_there);
        Ok(was_there)
    }

    /// Replaces a full leaf by one or two with the entries in force.
    fn replace(&mut self, slot: Slot) -> Result<()> {
        let leaf = self.plane.leaf(slot);
        let entries = in_force(self.base.leaf(leaf)?)?;
        let half = self.base.geometry.entries / 2;
        let keep =
            if entries.len() > half { entries.len() - entries.len() / 2 } else { entries.len() };
        let (low, high) = entries.split_at(keep);
        let after = self.base.after(leaf)?;
        let first = self.base.leaves.allocate(&self.base.pmem)? as u32;
        let second = if high.is_empty() { NONE } else { self.second_leaf(first)? };
        let mut depends_on = Vec::new();
        for (new, entries, next) in
            [(second, high, after), (first, low, if high.is_empty() { after } else { second })]
        {
            if new != NONE {
                depends_on.push(self.fill(new, leaf, entries, next)?);
            }
        }
        self.base.relink(leaf, first, &depends_on)?;
        let before = self.base.before[leaf as usize];
        self.base.before[first as usize] = before;
        let last = if second == NONE { first } else { second };
        if second != NONE {
            self.base.before[second as usize] = first;
        }
        if after != NONE {
            self.base.before[after as usize] = last;
        }
        self.base.before[leaf as usize] = NONE;
        self.base.free(leaf)?;
        self.plane.replace(slot, first);
        if let Some((separator, _)) = high.first()
            && !self.plane.insert_behind(slot, separator, second)
        {
            let mut all = self.plane.list(None);
            let at = all.iter().position(|(_, leaf)| *leaf == first).map_or(0, |at| at + 1);
            all.insert(at, (separator.clone(), second));
            self.plane = Plane::build(self.base.geometry.key_words, &all);
        }
        Ok(())
    }

    /// Takes a second new leaf; the first one is given back if there is none.
    fn second_leaf(&mut self, first: u32) -> Result<u32> {
        let Base { pmem, leaves, .. } = &mut self.base;
        match leaves.allocate(pmem) {
            Ok(second) => Ok(second as u32),
            Err(error) => {
                leaves.deallocate(pmem, u64::from(first));
                Err(error)
            }
        }
    }

    /// Makes a leaf of entries of another one, durably; where it lies.
    fn fill(
        &self,
        new: u32,
        from: u32,
        entries: &[(Vec<u64>, usize)],
        next: u32,
    ) -> Result<Extent> {
        let (new, from) = (self.base.leaf(new)?, self.base.leaf(from)?);
        let mut dirty = new.dirty();
        new.clear(&mut dirty);
        for (to, (_, index)) in entries.iter().enumerate() {
            new.copy_entries(from, *index, to, 1, &mut dirty);
        }
        counted::set_count(new, entries.len(), &mut dirty);
        let next = if next == NONE { 0 } else { self.base.leaves.node_at(u64::from(next)) };
        new.set_next(next, &mut dirty);
        dirty.persist(new.pmem, sites::LEAF);
        Ok(new.extent())
    }

    /// Makes inner nodes over the chain. Leaves without entries leave it.
    fn build(base: &mut Base<P>) -> Result<Plane> {
        let mut leaves: Vec<(Vec<u64>, u32)> = Vec::new();
        base.records = 0;
        let chain = base.walk()?;
        let mut largest: Option<Vec<u64>> = None;
        for leaf in &chain {
            let node = base.leaf(*leaf)?;
            let (records, range) = (in_force(node)?.len() as u64, range(node)?);
            let at = node.at;
            base.records += records;
            let Some((least, most)) = range else {
                if chain.len() > 1 {
                    base.unlink(*leaf)?;
                }
                continue;
            };
            if largest.is_some_and(|largest| largest >= least) {
                return PrimitivesError::corrupted("leaves are not in the order of their keys", at);
            }
            largest = Some(most);
            leaves.push((least, *leaf));
        }
        if leaves.is_empty() {
            leaves.push((vec![0; base.geometry.key_words], base.head()?));
        }
        Ok(Plane::build(base.geometry.key_words, &leaves))
    }

    fn create(base: &mut Base<P>) -> Result<()> {
        let first = base.leaves.allocate(&base.pmem)? as u32;
        Unsorted::format(base.leaf(first)?);
        base.finish_creation(KIND, first);
        Ok(())
    }

    /// As [`scan`](Tree::scan), booked by the caller.
    fn scan_from(
        &self,
        from: &[u8],
        count: usize,
        mut take: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize> {
        let words = self.base.key(from)?;
        let mut leaf = self.plane.leaf(self.plane.find(words.get()));
        let mut key_of = vec![0; self.base.shape.key_bytes as usize];
        let mut value = vec![0; self.base.shape.value_bytes as usize];
        let mut taken = 0;
        for _ in 0..self.base.leaves.nodes() {
            let node = self.base.leaf(leaf)?;
            for (key, index) in
                in_force(node)?.into_iter().filter(|(key, _)| key[..] >= *words.get())
            {
                if taken == count {
                    return Ok(taken);
                }
                key_bytes(&key, &mut key_of);
                node.read_value_rest(index, &mut value);
                take(&key_of, &value);
                taken += 1;
            }
            leaf = self.base.after(leaf)?;
            if leaf == NONE || taken == count {
                break;
            }
        }
        Ok(taken)
    }
}

/// The smallest and the largest key of all entries of a leaf, whether in force or not.
fn range<P: Pmem>(node: Node<'_, P>) -> Result<Option<(Vec<u64>, Vec<u64>)>> {
    let mut found: Option<(Vec<u64>, Vec<u64>)> = None;
    for index in 0..counted::count(node)? {
        let mut key = Vec::with_capacity(node.geometry.key_words);
        node.read_key(index, &mut key);
        found = Some(match found.take() {
            None => (key.clone(), key),
            Some((least, most)) if key < least => (key, most),
            Some((least, most)) if key > most => (least, key),
            Some(both) => both,
        });
    }
    Ok(found)
}

impl<P: Pmem> Tree<P> for NvTree<P> {
    const NAME: &'static str = "nvtree";

    fn bytes_for(shape: TreeShape, records: u64) -> Result<u64> {
        // A split leaves a quarter of a leaf's entries in force in each of both.
        let leaves = 4 * records.div_ceil(shape.leaf_entries as u64) + 8;
        Ok(Base::<P>::bytes_for(&geometry(shape)?, leaves))
    }

    fn open(pmem: P, shape: TreeShape) -> Result<Self> {
        let (mut base, is_new) = Base::open(pmem, shape, geometry(shape)?, KIND)?;
        let plane = base.operation(Operation::Recovery, |base| {
            if is_new {
                Self::create(base)?;
            }
            Self::build(base)
        })?;
        Ok(Self { base, plane, entry: Vec::new() })
    }

    fn pmem(&self) -> &P {
        &self.base.pmem
    }

    /// # Cost
    /// The line of the count, those of the keys from the last one on, and those of the value.
    #[inline]
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let words = self.base.key(key)?;
        self.base.pmem.operation_begin(Operation::Get, 0);
        let found = self.find(words.get()).map(|(node, found)| {
            if let Some(index) = found {
                value.resize(self.base.shape.value_bytes as usize, 0);
                node.read_value_rest(index, value);
            }
            found.is_some()
        });
        self.base.pmem.operation_acknowledge();
        found
    }

    /// # Cost
    /// Two persists.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.base.check_value(value)?;
        self.base.pmem.operation_begin(Operation::Insert, 0);
        let found = self.append(key, THERE, value, false);
        if matches!(found, Ok(true)) {
            self.base.pmem.operation_is(Operation::Overwrite);
        }
        self.base.pmem.operation_acknowledge();
        found.map(|was_there| !was_there)
    }

    /// # Cost
    /// Two persists.
    fn update(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.base.check_value(value)?;
        self.base.pmem.operation_begin(Operation::Update, 0);
        let found = self.append(key, THERE, value, true);
        self.base.pmem.operation_acknowledge();
        found
    }

    /// # Cost
    /// Two persists.
    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        self.base.pmem.operation_begin(Operation::Delete, 0);
        let found = self.append(key, GONE, &[], true);
        self.base.pmem.operation_acknowledge();
        found
    }

    /// Entries that are not in force have to be told from those that are.
    fn scan(&self, from: &[u8], count: usize, take: impl FnMut(&[u8], &[u8])) -> Result<usize> {
        self.base.pmem.operation_begin(Operation::Get, 0);
        let taken = self.scan_from(from, count, take);
        self.base.pmem.operation_acknowledge();
        taken
    }

    fn footprint(&self) -> TreeFootprint {
        self.base.footprint(self.plane.dram_bytes())
    }

    fn check(&self) -> Result<()> {
        let (mut leaf, mut leaves, mut records) = (self.base.head()?, 0, 0);
        while leaf != NONE && leaves <= self.base.leaves.nodes() {
            let node = self.base.leaf(leaf)?;
            for (key, _) in in_force(node)? {
                if self.plane.leaf(self.plane.find(&key)) != leaf {
                    return PrimitivesError::corrupted(
                        "a key is not where it is looked for",
                        node.at,
                    );
                }
                records += 1;
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
