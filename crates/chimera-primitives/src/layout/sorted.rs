//! [`Sorted`]: entries in the order of their keys, and how many there are.
//!
//! Inserting and removing move all entries behind, so neither is failure-atomic by itself.

use chimera_pmem::Pmem;

use super::compaction;
use super::counted::{commit, count, last_from, merge_counted, set_count};
use super::node::Node;
use super::search::Ranked;
use super::sites;
use super::{Direction, Layout, LayoutKind, Place, Recovered, Scratch, Search, Split, Walk};
use crate::error::{PrimitivesError, Result};

/// Entries in the order of their keys (the leaf of a B+-tree).
#[derive(Clone, Copy, Debug, Default)]
pub struct Sorted;

#[inline]
fn ranked<P: Pmem>(
    node: Node<'_, P>,
    key: &[u64],
    how: Search,
) -> Result<std::result::Result<usize, usize>> {
    let mut keys = Ranked {
        count: count(node)?,
        compare: |rank| node.compare_key(rank, key),
        first: |rank| node.key_first(rank),
    };
    Ok(keys.search(key[0], how))
}

impl Layout for Sorted {
    const KIND: LayoutKind = LayoutKind::Sorted;

    fn count<P: Pmem>(node: Node<'_, P>) -> Result<usize> {
        count(node)
    }

    #[inline]
    fn search<P: Pmem>(node: Node<'_, P>, key: &[u64], how: Search) -> Result<Option<Place>> {
        let found = ranked(node, key, how)?.ok();
        Ok(found.map(|index| Place { rank: index, index }))
    }

    fn rank_of<P: Pmem>(node: Node<'_, P>, key: &[u64]) -> Result<usize> {
        Ok(ranked(node, key, Search::Binary)?.unwrap_or_else(|rank| rank))
    }

    fn insert<P: Pmem>(
        node: Node<'_, P>,
        rank: usize,
        key: &[u64],
        value: &[u8],
        _: &mut Scratch,
    ) -> Result<()> {
        let count = count(node)?;
        if count == node.geometry.entries {
            return Err(PrimitivesError::Full);
        }
        let rank = rank.min(count);
        let mut dirty = node.dirty();
        node.copy_entries(node, rank, rank + 1, count - rank, &mut dirty);
        node.write_entry(rank, key, value, &mut dirty);
        dirty.persist(node.pmem, sites::ENTRY);
        commit(node, count + 1);
        Ok(())
    }

    fn erase<P: Pmem>(node: Node<'_, P>, place: Place, _: &mut Scratch) -> Result<()> {
        let last = last_from(node, place)?;
        let mut dirty = node.dirty();
        node.copy_entries(node, place.index + 1, place.index, last - place.index, &mut dirty);
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
        scratch.separator.clear();
        node.read_key(keep, &mut scratch.separator);
        let mut dirty = new.dirty();
        new.copy_entries(node, keep, 0, count - keep, &mut dirty);
        set_count(new, count - keep, &mut dirty);
        new.set_next(node.next(), &mut dirty);
        new.set_prev(node.at, &mut dirty);
        dirty.persist(new.pmem, sites::ENTRY);
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
        _: &mut Scratch,
    ) -> Result<()> {
        let (has, room) = (count(donor)?, count(receiver)?);
        if moved > has || room + moved > receiver.geometry.entries {
            return Err(PrimitivesError::Full);
        }
        let mut dirty = receiver.dirty();
        match direction {
            Direction::ToSmaller => receiver.copy_entries(donor, 0, room, moved, &mut dirty),
            Direction::ToLarger => {
                receiver.copy_entries(receiver, 0, moved, room, &mut dirty);
                receiver.copy_entries(donor, has - moved, 0, moved, &mut dirty);
            }
        }
        dirty.persist(receiver.pmem, sites::ENTRY);
        commit(receiver, room + moved);
        if direction == Direction::ToSmaller {
            let mut dirty = donor.dirty();
            donor.copy_entries(donor, moved, 0, has - moved, &mut dirty);
            dirty.persist(donor.pmem, sites::ENTRY);
        }
        commit(donor, has - moved);
        Ok(())
    }

    fn merge<P: Pmem>(receiver: Node<'_, P>, donor: Node<'_, P>, _: &mut Scratch) -> Result<()> {
        merge_counted(receiver, donor, |_, _, _| {})
    }

    /// Nothing of it can be made anew: keys that are not in order are damage.
    fn recover<P: Pmem>(node: Node<'_, P>, scratch: &mut Scratch) -> Result<Recovered> {
        let entries = count(node)?;
        scratch.keys.clear();
        for index in 0..entries {
            node.read_key(index, &mut scratch.keys);
        }
        let words = node.geometry.key_words;
        let mut keys = scratch
            .keys
            .chunks(words)
            .zip(scratch.keys[words.min(scratch.keys.len())..].chunks(words));
        if keys.any(|(key, next)| key >= next) {
            return PrimitivesError::corrupted("keys of a sorted node are not in order", node.at);
        }
        Ok(Recovered { entries, repaired: false })
    }
}
