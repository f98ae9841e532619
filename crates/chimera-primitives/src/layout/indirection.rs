//! [`Indirection`]: entries anywhere, a bitmap of which are there, and slots that name them in the order of their keys.
//!
//! The bitmap says what is there. The slots, whose first byte is their count, follow from it: a crash may leave them behind,
//! and recovery makes them anew (wB+-Tree).

use chimera_pmem::Pmem;

use super::bitmapped::{fill_bitmap, finish_split, free_bit, read_image, store_image};
use super::dirty::Dirty;
use super::node::Node;
use super::search::Ranked;
use super::{Direction, Layout, LayoutKind, Place, Recovered, Scratch, Search, Split, Walk};
use super::{bitmap, bytes, compaction, sites};
use crate::error::{PrimitivesError, Result};

/// Slots over a bitmap (wB+-Tree's leaves).
#[derive(Clone, Copy, Debug, Default)]
pub struct Indirection;

/// How many slots there are.
#[inline]
fn slots<P: Pmem>(node: Node<'_, P>) -> Result<usize> {
    let count = usize::from(bytes::load(node, node.geometry.slots_at, 0));
    if count > node.geometry.entries {
        return PrimitivesError::corrupted("there are more slots than entries", node.at);
    }
    Ok(count)
}

/// The index that a slot names, kept inside of the node.
#[inline]
fn slot<P: Pmem>(node: Node<'_, P>, rank: usize) -> usize {
    let index = usize::from(bytes::load(node, node.geometry.slots_at, 1 + rank));
    index.min(node.geometry.entries - 1)
}

#[inline]
fn ranked<P: Pmem>(
    node: Node<'_, P>,
    key: &[u64],
    how: Search,
) -> Result<std::result::Result<usize, usize>> {
    let mut keys = Ranked {
        count: slots(node)?,
        compare: |rank| node.compare_key(slot(node, rank), key),
        first: |rank| node.key_first(slot(node, rank)),
    };
    Ok(keys.search(key[0], how))
}

/// Reads the indices of all slots, in the order of keys, into `scratch.order`.
fn list<P: Pmem>(node: Node<'_, P>, scratch: &mut Scratch) -> Result<()> {
    let count = slots(node)?;
    bytes::read(node, node.geometry.slots_at, count + 1, &mut scratch.bytes);
    scratch.order.clear();
    for index in &scratch.bytes[1..] {
        let index = usize::from(*index);
        if index >= node.geometry.entries {
            return PrimitivesError::corrupted("a slot names no entry", node.at);
        }
        scratch.order.push(index);
    }
    Ok(())
}

/// Stores the slots from `rank` on, and their count: those that `order` names. Slots before `rank` are as they were.
fn set_slots<P: Pmem>(node: Node<'_, P>, order: &[usize], rank: usize, dirty: &mut Dirty) {
    let byte = |number: usize| match number {
        0 => order.len() as u8,
        number => order[number - 1] as u8,
    };
    let at = node.geometry.slots_at;
    let end = order.len() + 1;
    if rank + 1 < 8 {
        bytes::store(node, at, 0..end, dirty, byte);
    } else {
        bytes::store(node, at, 0..1, dirty, byte);
        bytes::store(node, at, rank + 1..end, dirty, byte);
    }
}

/// Copies entries of another node to free places of this one; their new indices are appended to `indices`, bits are set in
/// `words`. The entries are durable then, and not yet there.
fn take_in<P: Pmem>(
    (receiver, donor): (Node<'_, P>, Node<'_, P>),
    entries: &[usize],
    words: &mut [u64],
    indices: &mut Vec<usize>,
) -> Result<()> {
    let mut dirty = receiver.dirty();
    for from in entries {
        let Some(to) = free_bit(words, receiver.geometry.entries) else {
            return Err(PrimitivesError::Full);
        };
        receiver.copy_entries(donor, *from, to, 1, &mut dirty);
        words[to / 64] |= 1 << (to % 64);
        indices.push(to);
    }
    dirty.persist(receiver.pmem, sites::ENTRY);
    Ok(())
}

/// Stores the words of a bitmap that are different now.
fn set_changed<P: Pmem>(node: Node<'_, P>, words: &[u64], dirty: &mut Dirty) -> Result<()> {
    for (number, word) in words.iter().enumerate() {
        if bitmap::word(node, number)? != *word {
            bitmap::set_word(node, number, *word, dirty);
        }
    }
    Ok(())
}

impl Indirection {
    fn move_half<P: Pmem>(node: Node<'_, P>, new: Node<'_, P>, keep: usize, scratch: &Scratch) {
        let moved = &scratch.order[keep..];
        let mut dirty = new.dirty();
        for (to, from) in moved.iter().enumerate() {
            new.copy_entries(node, *from, to, 1, &mut dirty);
        }
        let order: Vec<usize> = (0..moved.len()).collect();
        set_slots(new, &order, 0, &mut dirty);
        fill_bitmap(new, moved.len(), &mut dirty);
        new.set_next(node.next(), &mut dirty);
        new.set_prev(node.at, &mut dirty);
        dirty.persist(new.pmem, sites::ENTRY);
    }

    fn copy_half<P: Pmem>(node: Node<'_, P>, new: Node<'_, P>, keep: usize, scratch: &mut Scratch) {
        read_image(node, &mut scratch.image);
        let (image, moved) = (&mut scratch.image, &scratch.order[keep..]);
        let (slots_at, bitmap_at) =
            (node.geometry.slots_at as usize, node.geometry.bitmap_at as usize);
        image[slots_at] = moved.len() as u8;
        image[bitmap_at..][..8 * node.geometry.bitmap_words].fill(0);
        for (rank, index) in moved.iter().enumerate() {
            image[slots_at + 1 + rank] = *index as u8;
            image[bitmap_at + index / 8] |= 1 << (index % 8);
        }
        store_image(node, new, scratch);
    }

    /// Makes slots and bitmap durable.
    fn commit<P: Pmem>(
        node: Node<'_, P>,
        order: &[usize],
        from_rank: usize,
        words: &[u64],
    ) -> Result<()> {
        let mut dirty = node.dirty();
        set_slots(node, order, from_rank, &mut dirty);
        set_changed(node, words, &mut dirty)?;
        dirty.persist(node.pmem, sites::COMMIT);
        Ok(())
    }

    /// Takes `scratch.order[range]`, which another node has now, out of a node.
    fn drop_ranks<P: Pmem>(
        node: Node<'_, P>,
        range: std::ops::Range<usize>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        bitmap::read(node, &mut scratch.words)?;
        for index in &scratch.order[range.clone()] {
            scratch.words[index / 64] &= !(1 << (index % 64));
        }
        scratch.order.drain(range.clone());
        Self::commit(node, &scratch.order, range.start, &scratch.words)
    }
}

impl Layout for Indirection {
    const KIND: LayoutKind = LayoutKind::Indirection;

    fn count<P: Pmem>(node: Node<'_, P>) -> Result<usize> {
        bitmap::count(node)
    }

    #[inline]
    fn search<P: Pmem>(node: Node<'_, P>, key: &[u64], how: Search) -> Result<Option<Place>> {
        let found = ranked(node, key, how)?.ok();
        Ok(found.map(|rank| Place { rank, index: slot(node, rank) }))
    }

    fn rank_of<P: Pmem>(node: Node<'_, P>, key: &[u64]) -> Result<usize> {
        Ok(ranked(node, key, Search::Binary)?.unwrap_or_else(|rank| rank))
    }

    fn insert<P: Pmem>(
        node: Node<'_, P>,
        rank: usize,
        key: &[u64],
        value: &[u8],
        scratch: &mut Scratch,
    ) -> Result<()> {
        let index = bitmap::free_index(node)?;
        let mut dirty = node.dirty();
        node.write_entry(index, key, value, &mut dirty);
        dirty.persist(node.pmem, sites::ENTRY);
        list(node, scratch)?;
        let rank = rank.min(scratch.order.len());
        if scratch.order.len() == node.geometry.entries {
            return PrimitivesError::corrupted("slots and bitmap do not agree", node.at);
        }
        scratch.order.insert(rank, index);
        let mut dirty = node.dirty();
        set_slots(node, &scratch.order, rank, &mut dirty);
        bitmap::set(node, index, true, &mut dirty)?;
        dirty.persist(node.pmem, sites::COMMIT);
        Ok(())
    }

    fn erase<P: Pmem>(node: Node<'_, P>, place: Place, scratch: &mut Scratch) -> Result<()> {
        list(node, scratch)?;
        if scratch.order.get(place.rank) != Some(&place.index) {
            return PrimitivesError::corrupted("an entry is not there any more", node.at);
        }
        scratch.order.remove(place.rank);
        let mut dirty = node.dirty();
        set_slots(node, &scratch.order, place.rank, &mut dirty);
        bitmap::set(node, place.index, false, &mut dirty)?;
        dirty.persist(node.pmem, sites::COMMIT);
        Ok(())
    }

    #[inline]
    fn iterate<P: Pmem>(node: Node<'_, P>, walk: Walk, mut take: impl FnMut(usize)) -> Result<()> {
        match walk {
            // Eight slots a load; the first byte is their count.
            Walk::Slots => {
                let end = slots(node)? + 1;
                for first in (0..end).step_by(8) {
                    let slots = node.load(node.geometry.slots_at + first as u64).to_le_bytes();
                    for number in first.max(1)..(first + 8).min(end) {
                        take(usize::from(slots[number - first]).min(node.geometry.entries - 1));
                    }
                }
            }
            Walk::Bitmap => bitmap::iterate(node, take)?,
        }
        Ok(())
    }

    fn split<P: Pmem>(
        node: Node<'_, P>,
        new: Node<'_, P>,
        how: Split,
        scratch: &mut Scratch,
    ) -> Result<()> {
        list(node, scratch)?;
        let count = scratch.order.len();
        let keep = compaction::kept(node, count)?;
        scratch.separator.clear();
        node.read_key(scratch.order[keep], &mut scratch.separator);
        match how {
            Split::Move => Self::move_half(node, new, keep, scratch),
            Split::Copy => Self::copy_half(node, new, keep, scratch),
        }
        // The slots that stay are as they were: their count alone is another one.
        let mut dirty = node.dirty();
        bytes::store(node, node.geometry.slots_at, 0..1, &mut dirty, |_| keep as u8);
        finish_split(node, new, keep, dirty, scratch);
        Ok(())
    }

    fn balance<P: Pmem>(
        donor: Node<'_, P>,
        receiver: Node<'_, P>,
        moved: usize,
        direction: Direction,
        scratch: &mut Scratch,
    ) -> Result<()> {
        list(receiver, scratch)?;
        let mut own = std::mem::take(&mut scratch.order);
        list(donor, scratch)?;
        let has = scratch.order.len();
        if moved > has || own.len() + moved > receiver.geometry.entries {
            return Err(PrimitivesError::Full);
        }
        let range = match direction {
            Direction::ToSmaller => 0..moved,
            Direction::ToLarger => has - moved..has,
        };
        bitmap::read(receiver, &mut scratch.words)?;
        let mut taken = Vec::with_capacity(moved);
        let entries = &scratch.order[range.clone()];
        take_in((receiver, donor), entries, &mut scratch.words, &mut taken)?;
        let at = if direction == Direction::ToSmaller { own.len() } else { 0 };
        own.splice(at..at, taken);
        Self::commit(receiver, &own, at, &scratch.words)?;
        Self::drop_ranks(donor, range, scratch)
    }

    fn merge<P: Pmem>(
        receiver: Node<'_, P>,
        donor: Node<'_, P>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        list(receiver, scratch)?;
        let mut own = std::mem::take(&mut scratch.order);
        list(donor, scratch)?;
        let has = own.len();
        if has + scratch.order.len() > receiver.geometry.entries {
            return Err(PrimitivesError::Full);
        }
        bitmap::read(receiver, &mut scratch.words)?;
        take_in((receiver, donor), &scratch.order, &mut scratch.words, &mut own)?;
        let mut dirty = receiver.dirty();
        set_slots(receiver, &own, has, &mut dirty);
        set_changed(receiver, &scratch.words, &mut dirty)?;
        receiver.set_next(donor.next(), &mut dirty);
        dirty.persist(receiver.pmem, sites::COMMIT);
        Ok(())
    }

    fn recover<P: Pmem>(node: Node<'_, P>, scratch: &mut Scratch) -> Result<Recovered> {
        bitmap::read(node, &mut scratch.words)?;
        let words = node.geometry.key_words;
        let Scratch { keys, order, .. } = scratch;
        order.clear();
        order.extend(bitmap::bits(&scratch.words));
        keys.clear();
        keys.resize(node.geometry.entries * words, 0);
        for index in order.iter().copied() {
            scratch.separator.clear();
            node.read_key(index, &mut scratch.separator);
            keys[index * words..][..words].copy_from_slice(&scratch.separator);
        }
        order.sort_unstable_by(|a, b| keys[a * words..][..words].cmp(&keys[b * words..][..words]));
        let right = order.clone();
        let repaired = list(node, scratch).is_err() || scratch.order != right;
        if repaired {
            let mut dirty = node.dirty();
            set_slots(node, &right, 0, &mut dirty);
            dirty.persist(node.pmem, sites::SEARCH);
        }
        Ok(Recovered { entries: right.len(), repaired })
    }
}
