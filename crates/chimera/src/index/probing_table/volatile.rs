//! [`VolatileTable`]: a table in DRAM, and [`Tables`], the memory of all tables of one size.
//!
//! # Protocol
//! One thread at a time changes a table; the owner sees to that. Any number may probe it meanwhile, without a lock:
//! - an entry is made by storing the hash, then the location, which publishes it;
//! - an entry changes its location only to one of the same key, and its hash never; none is removed. So a chain of slots
//!   that a reader follows only gets longer while the table is in use. Whatever was entered before a reader begins, it
//!   comes to, and the location that it loads is that of the entry at that moment or later.
//!
//! A table that is given back may be probed still, by a reader that learned of it before. The reader then gets entries of
//! whoever uses the table now, `Retry`, or nothing. It comes to an end, and its answer means nothing: the owner makes
//! readers verify, after they have probed, that the table is still the one to be probed.

use std::ops::RangeInclusive;

use chimera_pmem::prefetch_read;

use super::slot::{Found, Slot, decode_unchecked};
use super::{SLOTS_MAX, chain, home, is_behind};
use crate::index::{OutOfSpace, Probe, Resolve, TooManyCollisions};
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::sync::{Arena, ArenaRange, Mutex, lock};

/// Slots of a line of the cache.
const PER_LINE: u32 = 4;
/// Numbers of entries in the first chunk of memory.
const FIRST_TABLES: usize = 16;
/// Lines of small tables that lie on the heap, so that a small store reserves no range of addresses.
const FIRST_LINES: usize = 256;

/// A line of slots, each of which is a hash and a location.
#[derive(Debug)]
#[cfg_attr(not(loom), derive(zerocopy::FromZeros))]
#[cfg_attr(loom, derive(Default))]
#[repr(C, align(64))]
struct Line([AtomicU64; 2 * PER_LINE as usize]);

#[cfg(not(loom))]
impl chimera_pmem::AtomicWords for Line {
    fn words(&self) -> &[AtomicU64] {
        &self.0
    }
}

/// A slot that many threads use.
#[derive(Clone, Copy, Debug)]
struct SharedSlot<'t> {
    hash: &'t AtomicU64,
    /// 0 if the slot is empty.
    location: &'t AtomicU64,
}

/// What is known of a table beside its slots.
#[derive(Debug)]
#[cfg_attr(not(loom), derive(zerocopy::FromZeros))]
#[cfg_attr(loom, derive(Default))]
struct Head {
    entries: AtomicU32,
}

/// Tables of one size, which are handed out by their numbers.
///
/// # Cost
/// 16 bytes for each slot, touched when it is first used, and 4 for each table.
#[derive(Debug)]
pub(crate) struct Tables {
    lines: Arena<Line>,
    heads: Arena<Head>,
    slots: u32,
    spare: Mutex<Spare>,
}

/// Which tables nobody has.
#[derive(Debug, Default)]
struct Spare {
    /// Tables that were given back.
    returned: Vec<u32>,
    /// Those whose memory was given back to the system.
    untouched: Vec<u32>,
    /// Tables that were ever handed out: the numbers below.
    made: u32,
}

/// A table of some [`Tables`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct VolatileTable<'t> {
    lines: ArenaRange<'t, Line>,
    head: &'t Head,
    slots: u32,
}

/// What came of [entering](VolatileTable::upsert) a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upserted {
    /// There is an entry more.
    Inserted,
    /// The entry of the key had this location before.
    Replaced(u64),
    /// The entry of the key is newer, and stays.
    Kept,
}

/// Why a location was not entered. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    /// Every slot has an entry.
    #[error("the table is full")]
    Full,
    /// See [`TooManyCollisions`].
    #[error(transparent)]
    TooManyCollisions(#[from] TooManyCollisions),
}

impl Tables {
    /// No tables yet, each of so many slots.
    ///
    /// # Panics
    /// When the number of slots is 0, no multiple of 4, or larger than [`SLOTS_MAX`].
    pub(crate) fn new(slots: u32, huge_pages: bool) -> Self {
        let is_valid = 0 < slots && slots <= SLOTS_MAX && slots.is_multiple_of(PER_LINE);
        assert!(is_valid, "a table cannot have {slots} slots");
        // The first part has whole tables, so each table lies in one part.
        let table = (slots / PER_LINE) as usize;
        let first = table * (FIRST_LINES / table).max(1);
        Self {
            lines: Arena::new(first, huge_pages),
            heads: Arena::new(FIRST_TABLES, false),
            slots,
            spare: Mutex::new(Spare::default()),
        }
    }

    /// Slots of each table.
    pub(crate) fn slots(&self) -> u32 {
        self.slots
    }

    /// Hands out an empty table.
    ///
    /// # Errors
    /// When there is no memory for one more.
    pub(crate) fn take(&self) -> Result<u32, OutOfSpace> {
        let mut spare = lock(&self.spare);
        if let Some(number) = spare.returned.pop().or_else(|| spare.untouched.pop()) {
            return Ok(number);
        }
        let made = spare.made.checked_add(1).ok_or(OutOfSpace)?;
        let lines = u64::from(made) * u64::from(self.slots / PER_LINE);
        self.lines.ensure(lines).map_err(|_| OutOfSpace)?;
        self.heads.ensure(made.into()).map_err(|_| OutOfSpace)?;
        let number = std::mem::replace(&mut spare.made, made);
        Ok(number)
    }

    /// Takes a table back. Nobody changes it any more.
    ///
    /// # Cost
    /// As [`clear`](VolatileTable::clear).
    pub(crate) fn give_back(&self, number: u32) {
        self.table(number).clear();
        lock(&self.spare).returned.push(number);
    }

    /// As [`give_back`](Self::give_back), where few tables of this size will be asked for from now on: its memory goes back to the
    /// system, unless it lies on the heap.
    pub(crate) fn give_back_memory(&self, number: u32) {
        let lines = u64::from(self.slots / PER_LINE);
        if !self.lines.give_back(u64::from(number) * lines, lines) {
            return self.give_back(number);
        }
        self.table(number).head.entries.store(0, Ordering::Relaxed);
        lock(&self.spare).untouched.push(number);
    }

    /// The table with this number, which was handed out at some time.
    #[inline(always)]
    pub(crate) fn table(&self, number: u32) -> VolatileTable<'_> {
        let lines = u64::from(self.slots / PER_LINE);
        VolatileTable {
            lines: self.lines.range(u64::from(number) * lines, lines).expect("a table of these"),
            head: self.heads.get(number.into()).expect("a table of these"),
            slots: self.slots,
        }
    }

    /// Bytes of memory of all tables that were ever handed out, but for those whose memory was given back.
    pub(crate) fn bytes(&self) -> u64 {
        let untouched = lock(&self.spare).untouched.len() as u64 * u64::from(self.slots / PER_LINE);
        let lines = (self.lines.count() - untouched) * size_of::<Line>() as u64;
        lines + self.heads.count() * size_of::<Head>() as u64
    }
}

/// For readers: any number of threads, at any time.
impl<'t> VolatileTable<'t> {
    /// Asks `probe` about the entries of a hash, one after the other, until it answers anything but `NotThis`, and gives
    /// that answer: `NotThis` if it was asked about all. `Retry` also if an entry is not sound: the table was given back
    /// meanwhile and is used again.
    ///
    /// # Cost
    /// 1 line, sometimes 2; some 3 when nothing is found in a table that is three quarters full.
    #[inline(always)]
    pub(crate) fn probe<T>(self, hash: u64, mut probe: impl FnMut(Found) -> Probe<T>) -> Probe<T> {
        for number in chain(hash, self.slots) {
            let slot = self.load(number);
            if slot.location == 0 {
                break;
            }
            if slot.hash != hash {
                continue;
            }
            let Some(found) = slot.found() else { return Probe::Retry };
            match probe(found) {
                Probe::NotThis => {}
                answer => return answer,
            }
        }
        Probe::NotThis
    }

    /// Starts loading the slots where the entries of a hash are.
    #[inline(always)]
    pub(crate) fn prefetch(self, hash: u64) {
        prefetch_read(self.slot(home(hash, self.slots)).hash);
    }

    pub(crate) fn slots(self) -> u32 {
        self.slots
    }

    /// Entries.
    #[inline(always)]
    pub(crate) fn len(self) -> u32 {
        self.head.entries.load(Ordering::Relaxed)
    }

    /// Whether there are no entries.
    pub(crate) fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Whether there are at least so many entries.
    #[inline(always)]
    pub(crate) fn is_full(self, entries_max: u32) -> bool {
        self.len() >= entries_max
    }

    /// Every entry, in the order of the slots, from an empty one on: those of one hash as a probe comes to them.
    pub(crate) fn iter(self) -> impl Iterator<Item = Slot> + 't {
        let first = (0..self.slots).find(|number| self.load(*number).location == 0).unwrap_or(0);
        let numbers = (first..self.slots).chain(0..first);
        numbers.map(move |number| self.load(number)).filter(|slot| slot.location != 0)
    }

    /// Hands the entries whose hashes have their lower half in this range to `visit`.
    pub(crate) fn for_range(self, halves: RangeInclusive<u32>, mut visit: impl FnMut(Slot)) {
        for (step, number) in (0..).zip(chain((*halves.start()).into(), self.slots)) {
            let slot = self.load(number);
            if slot.location == 0 {
                if is_behind(&halves, self.slots, step) {
                    break;
                }
            } else if halves.contains(&(slot.hash as u32)) {
                visit(slot);
            }
        }
    }

    /// Acquire: with a location comes the hash that was stored before it.
    #[inline(always)]
    fn load(self, number: u32) -> Slot {
        let slot = self.slot(number);
        let location = slot.location.load(Ordering::Acquire);
        Slot { location, hash: slot.hash.load(Ordering::Acquire) }
    }

    #[inline(always)]
    fn slot(self, number: u32) -> SharedSlot<'t> {
        let line = self.lines.get((number / PER_LINE) as usize).expect("a line of the table");
        let at = 2 * (number % PER_LINE) as usize;
        SharedSlot { hash: &line.0[at], location: &line.0[at + 1] }
    }
}

/// For the writer: one thread at a time.
impl VolatileTable<'_> {
    /// Makes the location of a slot that of its key, unless the key has a newer one. `resolve` is asked about the
    /// entries of the same hash, one after the other. At most `collisions_max` other keys may have the hash.
    ///
    /// # Errors
    /// When there is no room, or there are too many entries of the hash.
    ///
    /// # Cost
    /// 1 line, sometimes 2.
    #[inline]
    pub(crate) fn upsert(
        self,
        new: Slot,
        collisions_max: u32,
        mut resolve: impl FnMut(Found) -> Resolve,
    ) -> Result<Upserted, Refused> {
        let mut alike = 0;
        for number in chain(new.hash, self.slots) {
            let slot = self.load(number);
            if slot.location == 0 {
                self.fill(number, new);
                return Ok(Upserted::Inserted);
            }
            if slot.hash != new.hash {
                continue;
            }
            match resolve(decode_unchecked(slot.location)) {
                Resolve::OtherKey => alike += 1,
                Resolve::KeepOld => return Ok(Upserted::Kept),
                Resolve::KeepNew => {
                    self.slot(number).location.store(new.location, Ordering::Release);
                    return Ok(Upserted::Replaced(slot.location));
                }
            }
            if alike > collisions_max {
                return Err(TooManyCollisions.into());
            }
        }
        Err(Refused::Full)
    }

    /// Makes an entry of a key that has none.
    ///
    /// # Errors
    /// As [`upsert`](Self::upsert).
    #[inline]
    pub(crate) fn insert(self, new: Slot, collisions_max: u32) -> Result<(), Refused> {
        self.upsert(new, collisions_max, |_| Resolve::OtherKey).map(|_| ())
    }

    /// Makes the entry of a hash that has the location `old` have another one, of the same key. `false`, with nothing
    /// done, when there is none.
    #[inline]
    pub(crate) fn replace(self, hash: u64, old: u64, new: u64) -> bool {
        for number in chain(hash, self.slots) {
            let slot = self.load(number);
            if slot.location == 0 {
                break;
            }
            if slot == (Slot { hash, location: old }) {
                self.slot(number).location.store(new, Ordering::Release);
                return true;
            }
        }
        false
    }

    /// Removes all entries. Readers that probe the table still get answers that mean nothing.
    ///
    /// # Cost
    /// All lines, unless there are no entries.
    pub(crate) fn clear(self) {
        if self.is_empty() {
            return;
        }
        for number in 0..self.slots {
            self.slot(number).location.store(0, Ordering::Release);
        }
        self.head.entries.store(0, Ordering::Relaxed);
    }

    /// Release: whoever sees the location sees the hash.
    fn fill(self, number: u32, new: Slot) {
        let slot = self.slot(number);
        slot.hash.store(new.hash, Ordering::Release);
        slot.location.store(new.location, Ordering::Release);
        self.head.entries.store(self.len() + 1, Ordering::Relaxed);
    }
}
