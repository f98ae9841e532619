//! [`Unsorted`] and [`HashingCounted`]: entries in the order of their insertion, and how many there are.
//!
//! The count is the one word that makes an entry part of the node. Removing one moves the last one into the gap, which is
//! not atomic together with the count.

use chimera_pmem::Pmem;

use super::dirty::Dirty;
use super::node::{Node, key_hash};
use super::{Direction, Layout, LayoutKind, Place, Recovered, Scratch, Search, Split, Walk};
use super::{bytes, compaction, sites};
use crate::error::{PrimitivesError, Result};

/// Entries in the order of their insertion; `HASHED`: and a hash of each key, which is probed first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted<const HASHED: bool>;

/// A count alone (NV-Tree's leaves).
pub type Unsorted = Counted<false>;

/// A count and hashes: "hash probing without a bitmap but a size field" (I1).
pub type HashingCounted = Counted<true>;

/// The count of a node.
///
/// # Errors
/// `Corrupted` when it is more than the node has room for.
#[inline]
pub(crate) fn count<P: Pmem>(node: Node<'_, P>) -> Result<usize> {
    let count = node.load(node.geometry.count_at);
    if count > node.geometry.entries as u64 {
        return PrimitivesError::corrupted("a count is larger than the node", node.at);
    }
    Ok(count as usize)
}

/// Stores the count. Not durable yet.
#[inline]
pub(crate) fn set_count<P: Pmem>(node: Node<'_, P>, count: usize, dirty: &mut Dirty) {
    node.store(node.geometry.count_at, count as u64, dirty, sites::COMMIT);
}

/// Makes a count durable.
pub(crate) fn commit<P: Pmem>(node: Node<'_, P>, count: usize) {
    let mut dirty = node.dirty();
    set_count(node, count, &mut dirty);
    dirty.persist(node.pmem, sites::COMMIT);
}

/// The last entry of a node, which is not before `place`.
///
/// # Errors
/// `Corrupted` when there is no such place any more.
pub(crate) fn last_from<P: Pmem>(node: Node<'_, P>, place: Place) -> Result<usize> {
    match count(node)?.checked_sub(1) {
        Some(last) if place.index <= last => Ok(last),
        _ => PrimitivesError::corrupted("an entry is not there any more", node.at),
    }
}

/// Searches the first `count` entries from the first one on.
fn find_linear<P: Pmem>(node: Node<'_, P>, count: usize, key: &[u64]) -> Option<usize> {
    (0..count).find(|index| node.compare_key(*index, key).is_eq())
}

/// Probes the hashes of the first `count` entries, eight at a time.
fn find_hashed<P: Pmem>(node: Node<'_, P>, count: usize, key: &[u64]) -> Option<usize> {
    let hash = key_hash(key);
    for first in (0..count).step_by(8) {
        let mut found = bytes::matches(node.load(node.geometry.hashes_at + first as u64), hash);
        while found != 0 {
            let index = first + found.trailing_zeros() as usize / 8;
            if index < count && node.compare_key(index, key).is_eq() {
                return Some(index);
            }
            found &= found - 1;
        }
    }
    None
}

impl<const HASHED: bool> Counted<HASHED> {
    fn set_hashes<P: Pmem>(
        node: Node<'_, P>,
        range: std::ops::Range<usize>,
        dirty: &mut Dirty,
        hash: impl FnMut(usize) -> u8,
    ) {
        if HASHED {
            bytes::store(node, node.geometry.hashes_at, range, dirty, hash);
        }
    }

    /// Moves the marked entries below `left` over by those above, and their hashes.
    fn close_gaps<P: Pmem>(node: Node<'_, P>, count: usize, left: usize, scratch: &mut Scratch) {
        let mut dirty = node.dirty();
        if HASHED {
            bytes::read(node, node.geometry.hashes_at, count, &mut scratch.bytes);
        }
        for (hole, filler) in compaction::gaps(&scratch.marks, count, left) {
            compaction::fill(node, hole, filler, &mut dirty);
            if HASHED {
                scratch.bytes[hole] = scratch.bytes[filler];
            }
        }
        if HASHED {
            // Whole words that have a gap, each once.
            for first in (0..left).step_by(8) {
                let end = (first + 8).min(left);
                if scratch.marks[first..end].contains(&true) {
                    let known = &scratch.bytes;
                    Self::set_hashes(node, first..end, &mut dirty, |number| known[number]);
                }
            }
        }
        dirty.persist(node.pmem, sites::ENTRY);
    }

    /// Copies the entries that `order` names to `to..` of another node, and their hashes. Not durable yet.
    fn copy_out<P: Pmem>(
        (node, other): (Node<'_, P>, Node<'_, P>),
        order: &[usize],
        to: usize,
        dirty: &mut Dirty,
    ) {
        for (number, index) in order.iter().enumerate() {
            other.copy_entries(node, *index, to + number, 1, dirty);
        }
        Self::set_hashes(other, to..to + order.len(), dirty, |number| {
            bytes::load(node, node.geometry.hashes_at, order[number - to])
        });
    }
}

impl<const HASHED: bool> Layout for Counted<HASHED> {
    const KIND: LayoutKind = if HASHED { LayoutKind::HashingCounted } else { LayoutKind::Unsorted };

    #[inline]
    fn count<P: Pmem>(node: Node<'_, P>) -> Result<usize> {
        count(node)
    }

    #[inline]
    fn search<P: Pmem>(node: Node<'_, P>, key: &[u64], _: Search) -> Result<Option<Place>> {
        let count = count(node)?;
        let found =
            if HASHED { find_hashed(node, count, key) } else { find_linear(node, count, key) };
        Ok(found.map(|index| Place { rank: index, index }))
    }

    fn insert<P: Pmem>(
        node: Node<'_, P>,
        _: usize,
        key: &[u64],
        value: &[u8],
        _: &mut Scratch,
    ) -> Result<()> {
        let count = count(node)?;
        if count == node.geometry.entries {
            return Err(PrimitivesError::Full);
        }
        let mut dirty = node.dirty();
        node.write_entry(count, key, value, &mut dirty);
        Self::set_hashes(node, count..count + 1, &mut dirty, |_| key_hash(key));
        dirty.persist(node.pmem, sites::ENTRY);
        commit(node, count + 1);
        Ok(())
    }

    fn erase<P: Pmem>(node: Node<'_, P>, place: Place, _: &mut Scratch) -> Result<()> {
        let last = last_from(node, place)?;
        let mut dirty = node.dirty();
        if place.index != last {
            compaction::fill(node, place.index, last, &mut dirty);
            let hash = if HASHED { bytes::load(node, node.geometry.hashes_at, last) } else { 0 };
            Self::set_hashes(node, place.index..place.index + 1, &mut dirty, |_| hash);
        }
        dirty.persist(node.pmem, sites::ENTRY);
        commit(node, last);
        Ok(())
    }

    #[inline]
    fn iterate<P: Pmem>(node: Node<'_, P>, _: Walk, take: impl FnMut(usize)) -> Result<()> {
        (0..count(node)?).for_each(take);
        Ok(())
    }

    fn split<P: Pmem>(
        node: Node<'_, P>,
        new: Node<'_, P>,
        _: Split,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let count = count(node)?;
        let keep = compaction::kept(node, count)?;
        scratch.order.clear();
        scratch.order.extend(0..count);
        compaction::halve(node, keep, scratch);
        let mut dirty = new.dirty();
        Self::copy_out((node, new), &scratch.order[keep..], 0, &mut dirty);
        set_count(new, count - keep, &mut dirty);
        new.set_next(node.next(), &mut dirty);
        new.set_prev(node.at, &mut dirty);
        dirty.persist(new.pmem, sites::ENTRY);
        mark(scratch, keep, count);
        Self::close_gaps(node, count, keep, scratch);
        let mut dirty = node.dirty();
        set_count(node, keep, &mut dirty);
        node.set_next(new.at, &mut dirty);
        dirty.persist(node.pmem, sites::COMMIT);
        Ok(())
    }

    fn balance<P: Pmem>(
        donor: Node<'_, P>,
        receiver: Node<'_, P>,
        moved: usize,
        direction: Direction,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let (has, room) = (count(donor)?, count(receiver)?);
        if moved > has || room + moved > receiver.geometry.entries {
            return Err(PrimitivesError::Full);
        }
        scratch.order.clear();
        scratch.order.extend(0..has);
        compaction::choose(donor, moved, direction, scratch);
        let mut dirty = receiver.dirty();
        Self::copy_out((donor, receiver), &scratch.chosen, room, &mut dirty);
        dirty.persist(receiver.pmem, sites::ENTRY);
        commit(receiver, room + moved);
        Self::close_gaps(donor, has, has - moved, scratch);
        commit(donor, has - moved);
        Ok(())
    }

    fn merge<P: Pmem>(receiver: Node<'_, P>, donor: Node<'_, P>, _: &mut Scratch) -> Result<()> {
        merge_counted(receiver, donor, |has, more, dirty| {
            Self::set_hashes(receiver, has..has + more, dirty, |number| {
                bytes::load(donor, donor.geometry.hashes_at, number - has)
            });
        })
    }

    fn recover<P: Pmem>(node: Node<'_, P>, scratch: &mut Scratch) -> Result<Recovered> {
        let entries = count(node)?;
        if !HASHED {
            return Ok(Recovered { entries, repaired: false });
        }
        let mut dirty = node.dirty();
        let mut repaired = false;
        for index in 0..entries {
            scratch.separator.clear();
            node.read_key(index, &mut scratch.separator);
            let hash = key_hash(&scratch.separator);
            if bytes::load(node, node.geometry.hashes_at, index) != hash {
                Self::set_hashes(node, index..index + 1, &mut dirty, |_| hash);
                repaired = true;
            }
        }
        dirty.persist(node.pmem, sites::SEARCH);
        Ok(Recovered { entries, repaired })
    }
}

/// Marks the entries of `scratch.order` behind the first `keep`.
pub(crate) fn mark(scratch: &mut Scratch, keep: usize, count: usize) {
    scratch.marks.clear();
    scratch.marks.resize(count, false);
    for index in &scratch.order[keep..] {
        scratch.marks[*index] = true;
    }
}

/// Appends all entries of a counted donor; `more` stores what else there is of them.
pub(crate) fn merge_counted<P: Pmem>(
    receiver: Node<'_, P>,
    donor: Node<'_, P>,
    more: impl FnOnce(usize, usize, &mut Dirty),
) -> Result<()> {
    let (has, moved) = (count(receiver)?, count(donor)?);
    if has + moved > receiver.geometry.entries {
        return Err(PrimitivesError::Full);
    }
    let mut dirty = receiver.dirty();
    receiver.copy_entries(donor, 0, has, moved, &mut dirty);
    more(has, moved, &mut dirty);
    dirty.persist(receiver.pmem, sites::ENTRY);
    let mut dirty = receiver.dirty();
    set_count(receiver, has + moved, &mut dirty);
    receiver.set_next(donor.next(), &mut dirty);
    dirty.persist(receiver.pmem, sites::COMMIT);
    Ok(())
}
