//! [`Image`]: a table that is being made, in DRAM, as it will lie in persistent memory.

use chimera_pmem::{Extent, Pmem, Site};
use zerocopy::IntoBytes;

use super::header::{Checksum, HEADER_BYTES, Header, SLOT_BYTES, TABLE_ALIGN, is_slot_count};
use super::persistent::PersistentTable;
use super::slot::Slot;
use super::{begins_chain, chain, distance, home};
use crate::types::error::Result;

/// Words of a header.
const HEADER_WORDS: usize = HEADER_BYTES as usize / 8;

/// A buffer with a table. It is used for one table after the other, and keeps its memory.
#[derive(Debug, Default)]
pub(crate) struct Image {
    /// The header, then the slots, not combined with their places.
    words: Vec<u64>,
    slots: u32,
    entries: u32,
}

/// What came of [placing](Image::place) a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placed {
    Entered,
    /// The key has an entry already, which stays.
    Superseded,
    /// Nothing: there is no empty slot.
    Full,
}

impl Image {
    /// Begins a table of so many slots, all empty.
    ///
    /// # Panics
    /// When there can be no such table: their number is a multiple of [`SLOTS_UNIT`](super::SLOTS_UNIT).
    ///
    /// # Cost
    /// All lines. Memory is allocated when no table before had as many.
    pub(crate) fn begin(&mut self, slots: u32) {
        assert!(is_slot_count(slots), "a table cannot have {slots} slots");
        (self.slots, self.entries) = (slots, 0);
        self.words.clear();
        self.words.resize(HEADER_WORDS + 2 * slots as usize, 0);
        let empty = Slot::EMPTY.to_media(0);
        self.words[HEADER_WORDS..].as_chunks_mut::<2>().0.fill(empty);
    }

    /// As [`begin`](Self::begin), and enters slots, of different keys. `false` when there is no room for all.
    pub(crate) fn fill(&mut self, slots: u32, entries: impl IntoIterator<Item = Slot>) -> bool {
        self.begin(slots);
        entries.into_iter().all(|slot| self.enter(slot))
    }

    /// Makes this the table of so many slots with those entries of another image for which `keep` says so. `false` when
    /// there is no room for all.
    ///
    /// # Cost
    /// All lines of both.
    pub(crate) fn rebuild(
        &mut self,
        slots: u32,
        from: &Self,
        mut keep: impl FnMut(Slot) -> bool,
    ) -> bool {
        self.fill(slots, from.iter().filter(|slot| keep(*slot)))
    }

    /// Enters the slot of a key that has no entry. `false` when there is no room.
    pub(crate) fn enter(&mut self, slot: Slot) -> bool {
        matches!(self.place(slot, |_| Ok(false)), Ok(Placed::Entered))
    }

    /// Enters the slot of a key, unless it has an entry already. `is_same` says whether that of an entry of the same
    /// hash is the same key.
    pub(super) fn place(
        &mut self,
        new: Slot,
        mut is_same: impl FnMut(Slot) -> Result<bool>,
    ) -> Result<Placed> {
        for (step, number) in (0..).zip(chain(new.hash, self.slots)) {
            let slot = self.slot(number);
            if self.is_behind(number, slot, step) {
                return Ok(self.insert_at(number, new));
            }
            if slot.hash == new.hash && is_same(slot)? {
                return Ok(Placed::Superseded);
            }
        }
        Ok(Placed::Full)
    }

    /// Whether no entry of a hash lies in this slot or behind it, `step` slots behind the home of that hash.
    #[inline(always)]
    fn is_behind(&self, number: u32, slot: Slot, step: u32) -> bool {
        slot.is_empty() || distance(number, slot.hash, self.slots) < step
    }

    /// Puts a slot here. What lies here and behind it, up to the first empty slot, goes one slot further.
    fn insert_at(&mut self, number: u32, new: Slot) -> Placed {
        if self.entries == self.slots {
            return Placed::Full;
        }
        self.entries += 1;
        let mut carried = new;
        for number in (number..self.slots).chain(0..number) {
            let before = self.slot(number);
            self.words_of(number).copy_from_slice(&carried.to_media(0));
            if before.is_empty() {
                break;
            }
            carried = before;
        }
        Placed::Entered
    }

    /// The first entry of a hash.
    pub(super) fn first(&self, hash: u64) -> Option<Slot> {
        let slots = chain(hash, self.slots).map(|number| (number, self.slot(number)));
        let mut of_chain = (0..).zip(slots);
        let ends = |step, (number, slot)| self.is_behind(number, slot, step) || slot.hash == hash;
        let (_, (_, slot)) = of_chain.find(|(step, at)| ends(*step, *at))?;
        (!slot.is_empty() && slot.hash == hash).then_some(slot)
    }

    /// Starts loading the slots where the entries of a hash are.
    pub(super) fn prefetch(&self, hash: u64) {
        let at = HEADER_WORDS + 2 * home(hash, self.slots) as usize;
        chimera_pmem::prefetch_read(&self.words[at]);
    }

    /// Slots.
    pub(crate) fn slots(&self) -> u32 {
        self.slots
    }

    /// Entries.
    pub(crate) fn len(&self) -> u32 {
        self.entries
    }

    /// Every entry, in the order of the slots, from one on where no chain goes on: those of one hash as a probe comes to them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Slot> + '_ {
        let begins = |number: &u32| begins_chain(*number, self.slot(*number), self.slots);
        let first = (0..self.slots).find(begins).unwrap_or(0);
        let numbers = (first..self.slots).chain(0..first);
        numbers.map(|number| self.slot(number)).filter(|slot| !slot.is_empty())
    }

    /// Bytes of the table in persistent memory.
    pub(crate) fn bytes(&self) -> u64 {
        PersistentTable::bytes_of(self.slots)
    }

    /// Writes the table to the start of `to`. `owner` is what [`PersistentTable::open`] is to be told: different for
    /// any two tables that may lie in the same place one after the other.
    ///
    /// # Panics
    /// When `to` is too short, or not aligned to [`TABLE_ALIGN`].
    ///
    /// # Durability
    /// Durable after this thread's next fence, which the caller does before anything leads to the table. Nobody touches
    /// the table before that fence, by the rule of [`Pmem::copy_nt`].
    ///
    /// # Cost
    /// All lines, in one piece, past the cache.
    pub(crate) fn write<P: Pmem>(
        &mut self,
        pmem: &P,
        to: Extent,
        owner: u64,
        site: Site,
    ) -> PersistentTable {
        let at = to.offset();
        assert!(at.is_multiple_of(TABLE_ALIGN), "a table is aligned");
        let to = to.part(0, self.bytes()).expect("room for the table");
        self.combine(at + HEADER_BYTES);
        let checksum = Checksum::of(self.words[HEADER_WORDS..].as_bytes());
        let header = Header { slots: self.slots, entries: self.entries, owner, checksum };
        for (word, value) in self.words.iter_mut().zip(header.encode(at)) {
            *word = value;
        }
        pmem.copy_nt(to, self.words.as_bytes(), site);
        self.combine(at + HEADER_BYTES);
        PersistentTable::in_force(to)
    }

    /// Makes the slots those of a table whose first slot lies at `first`, or takes that back.
    fn combine(&mut self, first: u64) {
        let slots = self.words[HEADER_WORDS..].as_chunks_mut::<2>().0;
        for (slot, at) in slots.iter_mut().zip((first..).step_by(SLOT_BYTES as usize)) {
            slot[0] ^= at;
        }
    }

    #[inline(always)]
    fn slot(&self, number: u32) -> Slot {
        let at = HEADER_WORDS + 2 * number as usize;
        Slot::from_media([self.words[at], self.words[at + 1]], 0)
    }

    #[inline(always)]
    fn words_of(&mut self, number: u32) -> &mut [u64] {
        let at = HEADER_WORDS + 2 * number as usize;
        &mut self.words[at..at + 2]
    }
}

const _: () = assert!(SLOT_BYTES == size_of::<[u64; 2]>() as u64, "two words");
