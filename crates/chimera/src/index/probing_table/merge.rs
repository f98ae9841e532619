//! [`merge`]: several tables into one, where of each key the newest entry stays.
//!
//! The entries come in the order from the newest table to the oldest, and each is looked for in the image of the new
//! table: where the key has an entry already, that one is newer. So no more memory is needed than the image has, and
//! the entries of a table come nearly in the order of their places there ([`home`](super::home)).
//!
//! Two entries of one hash are nearly always of one key, but only their records tell. Records lie anywhere. So an entry
//! passes some others on its way: when it comes the line of the image is loaded, half of the way on its record and the
//! one that it may supersede, and at the end it is placed.
//!
//! How many keys have the same hash is not limited here: their entries were acknowledged. Placing one asks about all
//! that have it, so the owner keeps their number low when keys are put.

use chimera_pmem::Pmem;

use super::image::{Image, Placed};
use super::persistent::PersistentTable;
use super::slot::Slot;
use super::volatile::VolatileTable;
use crate::types::error::Result;

/// Entries on their way at a time: a power of two.
const AHEAD: usize = 16;

/// A table to be merged.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source<'t> {
    /// In DRAM. Nobody changes it meanwhile.
    Volatile(VolatileTable<'t>),
    /// In persistent memory.
    Persistent(PersistentTable),
}

/// What the owner of the tables knows of records.
pub(crate) trait MergeOwner {
    /// Starts loading what [`is_same_key`](Self::is_same_key) reads of a record. It is asked about the slot soon,
    /// probably.
    fn prefetch(&mut self, slot: Slot);

    /// Whether the records of two slots of one hash are of the same key.
    ///
    /// # Errors
    /// When a record is damaged. The merge ends with it.
    fn is_same_key(&mut self, newer: Slot, older: Slot) -> Result<bool>;

    /// A slot is not in the new table, because its key has a newer one, or because the table is the last one and the
    /// slot a tombstone. Called once for each, also in a merge that fails later: the owner acts on it when the new
    /// table is in force.
    fn dropped(&mut self, slot: Slot);
}

/// Merges tables, the newest one first, into a new one of so many slots: at least as many as all of them have entries
/// together. Tombstones are kept.
///
/// # Errors
/// `Corrupted` when a table in persistent memory is damaged. An error of the owner. The image is of no use then.
///
/// # Panics
/// When there are too few slots.
///
/// # Cost
/// All lines of the tables, in their order, and a random line of the image for each entry. Two records for each two
/// entries of one hash.
pub(crate) fn merge<P: Pmem>(
    pmem: &P,
    sources: &[Source<'_>],
    slots: u32,
    image: &mut Image,
    owner: &mut impl MergeOwner,
) -> Result<()> {
    image.begin(slots);
    let mut merging = Merging { image, owner, ahead: [Slot::EMPTY; AHEAD], at: 0 };
    for source in sources {
        match source {
            Source::Volatile(table) => table.iter().try_for_each(|slot| merging.pass(slot))?,
            Source::Persistent(table) => table.for_each(pmem, |slot| merging.pass(slot))?,
        }
    }
    (0..AHEAD).try_for_each(|_| merging.pass(Slot::EMPTY))
}

/// As [`merge`], into the last table of a shard, below which there is no other: tombstones vanish, once they have
/// superseded what they delete. The new table has as many slots as `slots_for` says for its number of entries.
/// `scratch` is a second buffer, with at least as many slots as all tables have entries together.
///
/// # Errors
/// As [`merge`].
///
/// # Panics
/// As [`merge`], and when `slots_for` says too few.
///
/// # Cost
/// As [`merge`], and all lines of both buffers once more.
pub(crate) fn merge_last<P: Pmem>(
    pmem: &P,
    sources: &[Source<'_>],
    slots: u32,
    slots_for: impl FnOnce(u32) -> u32,
    [image, scratch]: [&mut Image; 2],
    owner: &mut impl MergeOwner,
) -> Result<()> {
    merge(pmem, sources, slots, scratch, owner)?;
    let tombstones = scratch.iter().filter(|slot| is_tombstone(*slot)).count() as u32;
    let slots = slots_for(scratch.len() - tombstones);
    let has_room = image.rebuild(slots, scratch, |slot| {
        if is_tombstone(slot) {
            owner.dropped(slot);
        }
        !is_tombstone(slot)
    });
    assert!(has_room, "{slots} slots are too few for the last table");
    Ok(())
}

/// A merge at work.
struct Merging<'m, O> {
    image: &'m mut Image,
    owner: &'m mut O,
    /// Entries on their way, in a ring; empty slots where there is none.
    ahead: [Slot; AHEAD],
    /// The next one's place there.
    at: usize,
}

impl<O: MergeOwner> Merging<'_, O> {
    /// Sends an entry on its way, and places the one that is at its end.
    #[inline]
    fn pass(&mut self, slot: Slot) -> Result<()> {
        let last = std::mem::replace(&mut self.ahead[self.at], slot);
        self.at = (self.at + 1) % AHEAD;
        if !slot.is_empty() {
            self.image.prefetch(slot.hash);
        }
        let halfway = self.ahead[(self.at + AHEAD / 2) % AHEAD];
        if !halfway.is_empty()
            && let Some(newer) = self.image.first(halfway.hash)
        {
            self.owner.prefetch(newer);
            self.owner.prefetch(halfway);
        }
        if last.is_empty() { Ok(()) } else { self.place(last) }
    }

    fn place(&mut self, older: Slot) -> Result<()> {
        let owner = &mut *self.owner;
        match self.image.place(older, |newer| owner.is_same_key(newer, older))? {
            Placed::Entered => {}
            Placed::Superseded => self.owner.dropped(older),
            Placed::Full => panic!("{} slots are too few for a merge", self.image.slots()),
        }
        Ok(())
    }
}

fn is_tombstone(slot: Slot) -> bool {
    slot.found().is_some_and(|found| found.is_tombstone)
}
