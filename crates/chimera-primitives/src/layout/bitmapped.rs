//! [`Hashing`] and [`BitmapOnly`]: entries anywhere, and a bitmap of which are there.
//!
//! An entry is stored to a free place and made durable; then its bit, in the one word that makes it part of the node.
//! Removing it clears the bit. So both are failure-atomic (wB+-Tree, FPTree).

use chimera_pmem::Pmem;

use super::dirty::Dirty;
use super::node::{Node, key_hash};
use super::{Direction, Layout, LayoutKind, Place, Recovered, Scratch, Search, Split, Walk};
use super::{bitmap, bytes, compaction, sites};
use crate::error::{PrimitivesError, Result};

/// A bitmap; `HASHED`: and a hash of each key that is probed before the key.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bitmapped<const HASHED: bool>;

/// A bitmap and hashes (FPTree's fingerprints).
pub type Hashing = Bitmapped<true>;

/// A bitmap alone.
pub type BitmapOnly = Bitmapped<false>;

/// Looks at the keys of all entries that are there.
fn find_linear<P: Pmem>(node: Node<'_, P>, key: &[u64]) -> Result<Option<usize>> {
    for number in 0..node.geometry.bitmap_words {
        let mut left = bitmap::word(node, number)?;
        while left != 0 {
            let index = 64 * number + left.trailing_zeros() as usize;
            if node.compare_key(index, key).is_eq() {
                return Ok(Some(index));
            }
            left &= left - 1;
        }
    }
    Ok(None)
}

/// Looks at the keys of entries that are there and have the key's hash.
fn find_hashed<P: Pmem>(node: Node<'_, P>, key: &[u64]) -> Result<Option<usize>> {
    let hash = key_hash(key);
    for number in 0..node.geometry.bitmap_words {
        let live = bitmap::word(node, number)?;
        for part in 0..8 {
            let live = live >> (8 * part) & 0xFF;
            if live == 0 {
                continue;
            }
            let first = 64 * number + 8 * part;
            let word = node.load(node.geometry.hashes_at + first as u64);
            let mut found = bytes::matches(word, hash);
            while found != 0 {
                let nth = found.trailing_zeros() as usize / 8;
                if live >> nth & 1 != 0 && node.compare_key(first + nth, key).is_eq() {
                    return Ok(Some(first + nth));
                }
                found &= found - 1;
            }
        }
    }
    Ok(None)
}

impl<const HASHED: bool> Bitmapped<HASHED> {
    /// Makes the bit of an entry durable.
    fn commit<P: Pmem>(node: Node<'_, P>, index: usize, is_there: bool) -> Result<()> {
        let mut dirty = node.dirty();
        bitmap::set(node, index, is_there, &mut dirty)?;
        dirty.persist(node.pmem, sites::COMMIT);
        Ok(())
    }

    /// The indices of a donor's entries, in `scratch.order`; its bitmap in `scratch.words`.
    fn list<P: Pmem>(node: Node<'_, P>, scratch: &mut Scratch) -> Result<()> {
        bitmap::read(node, &mut scratch.words)?;
        scratch.order.clear();
        scratch.order.extend(bitmap::bits(&scratch.words));
        Ok(())
    }

    fn move_half<P: Pmem>(node: Node<'_, P>, new: Node<'_, P>, keep: usize, scratch: &Scratch) {
        let moved = &scratch.order[keep..];
        let mut dirty = new.dirty();
        for (to, from) in moved.iter().enumerate() {
            new.copy_entries(node, *from, to, 1, &mut dirty);
        }
        if HASHED {
            let at = node.geometry.hashes_at;
            bytes::store(new, at, 0..moved.len(), &mut dirty, |to| {
                bytes::load(node, at, moved[to])
            });
        }
        fill_bitmap(new, moved.len(), &mut dirty);
        new.set_next(node.next(), &mut dirty);
        new.set_prev(node.at, &mut dirty);
        dirty.persist(new.pmem, sites::ENTRY);
    }

    /// Copies entries to free places and makes them part of the receiver, durably: for each, a free bit is looked for.
    fn take_in<P: Pmem>(
        receiver: Node<'_, P>,
        donor: Node<'_, P>,
        entries: impl Iterator<Item = usize>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        bitmap::read(receiver, &mut scratch.words)?;
        let (geometry, words) = (receiver.geometry, &mut scratch.words);
        let mut dirty = receiver.dirty();
        let mut commit = receiver.dirty();
        let mut changed = 0_u64;
        // A word of hashes, while entries go to its places.
        let mut hashes: Option<(usize, [u8; 8])> = None;
        let store = |(first, word): (usize, [u8; 8]), dirty: &mut Dirty| {
            let at = geometry.hashes_at + first as u64;
            receiver.store(at, u64::from_le_bytes(word), dirty, sites::SEARCH);
        };
        for from in entries {
            let Some(to) = free_bit(words, geometry.entries) else {
                return Err(PrimitivesError::Full);
            };
            receiver.copy_entries(donor, from, to, 1, &mut dirty);
            words[to / 64] |= 1 << (to % 64);
            changed |= 1 << (to / 64);
            if HASHED {
                let first = to & !7;
                if let Some(full) = hashes.take_if(|(of, _)| *of != first) {
                    store(full, &mut dirty);
                }
                let load = || receiver.load(geometry.hashes_at + first as u64).to_le_bytes();
                let (_, word) = hashes.get_or_insert_with(|| (first, load()));
                word[to & 7] = bytes::load(donor, geometry.hashes_at, from);
            }
        }
        if let Some(last) = hashes {
            store(last, &mut dirty);
        }
        dirty.persist(receiver.pmem, sites::ENTRY);
        for number in (0..words.len()).filter(|number| changed >> number & 1 != 0) {
            bitmap::set_word(receiver, number, words[number], &mut commit);
        }
        commit.persist(receiver.pmem, sites::COMMIT);
        Ok(())
    }
}

impl<const HASHED: bool> Layout for Bitmapped<HASHED> {
    const KIND: LayoutKind = if HASHED { LayoutKind::Hashing } else { LayoutKind::Bitmap };

    fn count<P: Pmem>(node: Node<'_, P>) -> Result<usize> {
        bitmap::count(node)
    }

    #[inline]
    fn search<P: Pmem>(node: Node<'_, P>, key: &[u64], _: Search) -> Result<Option<Place>> {
        let found = if HASHED { find_hashed(node, key) } else { find_linear(node, key) };
        Ok(found?.map(|index| Place { rank: index, index }))
    }

    fn insert<P: Pmem>(
        node: Node<'_, P>,
        _: usize,
        key: &[u64],
        value: &[u8],
        _: &mut Scratch,
    ) -> Result<()> {
        let index = bitmap::free_index(node)?;
        let mut dirty = node.dirty();
        node.write_entry(index, key, value, &mut dirty);
        if HASHED {
            let range = index..index + 1;
            bytes::store(node, node.geometry.hashes_at, range, &mut dirty, |_| key_hash(key));
        }
        dirty.persist(node.pmem, sites::ENTRY);
        Self::commit(node, index, true)
    }

    fn erase<P: Pmem>(node: Node<'_, P>, place: Place, _: &mut Scratch) -> Result<()> {
        Self::commit(node, place.index, false)
    }

    #[inline]
    fn iterate<P: Pmem>(node: Node<'_, P>, _: Walk, take: impl FnMut(usize)) -> Result<()> {
        bitmap::iterate(node, take)
    }

    fn split<P: Pmem>(
        node: Node<'_, P>,
        new: Node<'_, P>,
        how: Split,
        scratch: &mut Scratch,
    ) -> Result<()> {
        Self::list(node, scratch)?;
        let count = scratch.order.len();
        let keep = compaction::kept(node, count)?;
        compaction::halve(node, keep, scratch);
        match how {
            Split::Move => Self::move_half(node, new, keep, scratch),
            Split::Copy => copy_half(node, new, keep, scratch),
        }
        finish_split(node, new, keep, node.dirty(), scratch);
        Ok(())
    }

    fn balance<P: Pmem>(
        donor: Node<'_, P>,
        receiver: Node<'_, P>,
        moved: usize,
        direction: Direction,
        scratch: &mut Scratch,
    ) -> Result<()> {
        Self::list(donor, scratch)?;
        let room = receiver.geometry.entries - bitmap::count(receiver)?;
        if moved > scratch.order.len() || moved > room {
            return Err(PrimitivesError::Full);
        }
        compaction::choose(donor, moved, direction, scratch);
        let chosen = std::mem::take(&mut scratch.chosen);
        let taken = Self::take_in(receiver, donor, chosen.iter().copied(), scratch);
        scratch.chosen = chosen;
        taken?;
        let mut dirty = donor.dirty();
        bitmap::read(donor, &mut scratch.words)?;
        for (number, word) in scratch.words.iter().enumerate() {
            let marked = (0..64).filter(|bit| scratch.marks.get(64 * number + bit) == Some(&true));
            let gone = marked.fold(0_u64, |bits, bit| bits | 1 << bit);
            if gone != 0 {
                bitmap::set_word(donor, number, word & !gone, &mut dirty);
            }
        }
        dirty.persist(donor.pmem, sites::COMMIT);
        Ok(())
    }

    fn merge<P: Pmem>(
        receiver: Node<'_, P>,
        donor: Node<'_, P>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        Self::list(donor, scratch)?;
        if scratch.order.len() + bitmap::count(receiver)? > receiver.geometry.entries {
            return Err(PrimitivesError::Full);
        }
        let order = std::mem::take(&mut scratch.order);
        let taken = Self::take_in(receiver, donor, order.iter().copied(), scratch);
        scratch.order = order;
        taken?;
        let mut dirty = receiver.dirty();
        receiver.set_next(donor.next(), &mut dirty);
        dirty.persist(receiver.pmem, sites::LINK);
        Ok(())
    }

    fn recover<P: Pmem>(node: Node<'_, P>, scratch: &mut Scratch) -> Result<Recovered> {
        Self::list(node, scratch)?;
        let entries = scratch.order.len();
        let (mut dirty, mut repaired) = (node.dirty(), false);
        for index in scratch.order.iter().copied().filter(|_| HASHED) {
            scratch.separator.clear();
            node.read_key(index, &mut scratch.separator);
            let hash = key_hash(&scratch.separator);
            if bytes::load(node, node.geometry.hashes_at, index) != hash {
                bytes::store(node, node.geometry.hashes_at, index..index + 1, &mut dirty, |_| hash);
                repaired = true;
            }
        }
        dirty.persist(node.pmem, sites::SEARCH);
        Ok(Recovered { entries, repaired })
    }
}

/// The lowest bit that is not set, of so many.
pub(crate) fn free_bit(words: &[u64], entries: usize) -> Option<usize> {
    let found = words.iter().enumerate().find(|(_, word)| **word != u64::MAX);
    let bit = found.map(|(number, word)| 64 * number + word.trailing_ones() as usize)?;
    (bit < entries).then_some(bit)
}

/// Stores a bitmap of which the first `count` bits are set.
pub(crate) fn fill_bitmap<P: Pmem>(node: Node<'_, P>, count: usize, dirty: &mut Dirty) {
    for number in 0..node.geometry.bitmap_words {
        let word = match count.saturating_sub(64 * number) {
            bits @ 0..64 => (1 << bits) - 1,
            _ => u64::MAX,
        };
        bitmap::set_word(node, number, word, dirty);
    }
}

/// The new node as a copy of the old one, its bitmap that of the moved half: made in DRAM, and stored once.
pub(crate) fn copy_half<P: Pmem>(
    node: Node<'_, P>,
    new: Node<'_, P>,
    keep: usize,
    scratch: &mut Scratch,
) {
    read_image(node, &mut scratch.image);
    let mut words = vec![0_u64; node.geometry.bitmap_words];
    for index in &scratch.order[keep..] {
        words[index / 64] |= 1 << (index % 64);
    }
    let at = node.geometry.bitmap_at as usize;
    for (number, word) in words.iter().enumerate() {
        scratch.image[at + 8 * number..][..8].copy_from_slice(&word.to_le_bytes());
    }
    store_image(node, new, scratch);
}

/// Reads all of a node.
pub(crate) fn read_image<P: Pmem>(node: Node<'_, P>, image: &mut Vec<u8>) {
    image.clear();
    image.resize(node.geometry.node_bytes() as usize, 0);
    node.pmem.read(node.extent(), image);
}

/// Makes `scratch.image` the contents of the new node behind `node`, durably.
pub(crate) fn store_image<P: Pmem>(node: Node<'_, P>, new: Node<'_, P>, scratch: &mut Scratch) {
    let prev_at = node.geometry.prev_at as usize;
    scratch.image[prev_at..][..8].copy_from_slice(&node.at.to_le_bytes());
    let mut dirty = new.dirty();
    new.pmem.copy(new.extent(), &scratch.image, sites::ENTRY);
    dirty.add(0, new.geometry.node_bytes());
    dirty.persist(new.pmem, sites::ENTRY);
}

/// Leaves the first `keep` entries of `scratch.order` in the node and links the new one behind it, durably, together with
/// what is dirty already.
pub(crate) fn finish_split<P: Pmem>(
    node: Node<'_, P>,
    new: Node<'_, P>,
    keep: usize,
    mut dirty: Dirty,
    scratch: &mut Scratch,
) {
    scratch.words.clear();
    scratch.words.resize(node.geometry.bitmap_words, 0);
    for index in &scratch.order[..keep] {
        scratch.words[index / 64] |= 1 << (index % 64);
    }
    bitmap::set_all(node, &scratch.words, &mut dirty);
    node.set_next(new.at, &mut dirty);
    dirty.persist(node.pmem, sites::COMMIT);
}
