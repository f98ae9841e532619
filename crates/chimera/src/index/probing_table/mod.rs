//! Probing tables: hash tables of a fixed size with linear probing, in DRAM and in persistent memory, of which an engine
//! makes the levels of its index (ChameleonDB, EuroSys'21, sections 2.1 and 2.5).
//!
//! A table is told by its owner what it holds, and never grows. The owner decides which tables there are, in which
//! order they are probed, and when they are merged. A table sees hashes and locations, never a key: closures of the
//! owner answer whether a record is that of the key ([`Probe`](super::Probe)). Several keys may have the same hash.
//!
//! # Structure
//! ```text
//! table   [slot] [slot] ..      16 bytes each, any number of them
//! slot    [hash: 8] [location: 8]
//! ```
//! An entry lies in its *home* or behind it; behind the last slot comes the first one. The home follows from the lower half
//! of the hash ([`home`]). The upper bits are left to the owner, to choose between its shards. No entry is ever removed, so
//! the entries of a hash end where the first empty slot is.
//!
//! In DRAM an entry stays in the first slot that was empty when it was entered, because readers look on meanwhile. A table in
//! persistent memory is made in one piece, so its entries are in the *order of their homes* (ordered hash tables, Amble and
//! Knuth 1974): the entries of a hash also end where an entry lies whose home is behind that of the hash. In the paper a probe
//! goes on to an empty slot; there a key that is not in the table costs three times as much.
//!
//! # Rooms
//! - `slot`: the words of a slot, and the check that binds them.
//! - `volatile`: tables in DRAM, which many threads probe while one enters: MemTables and the bypass index.
//! - `image`: a table that is being made, in a buffer, to be written as it is.
//! - `persistent`: tables in persistent memory, which never change: the levels. `header`: what precedes the slots.
//! - `merge`: several tables into one image.
//!
//! # What a reader may rely on
//! 1. A probe comes to every entry that was there when it began, and ends after as many slots as the table has, whatever
//!    they hold.
//! 2. Nothing that is handed to a closure was damaged by a flipped bit: the check of its slot was verified. In persistent
//!    memory those of all slots on the way were, so "there is none" is not said where a damaged slot may be the entry, or
//!    end its chain. Memory that was zeroed is damage as well. Damage that its check misses (1 of 2^14) leads to a record
//!    with another key, or to none: the owner verifies the key where the record lies. Or a chain ends too early: whoever
//!    reads the whole table finds that, by its checksum.
//! 3. What is found is as old as the table. The owner verifies afterwards that the table was still in force.
//!
//! # Cost
//! With 3 of 4 slots in use a probe looks at 2.5 slots on average. One that finds nothing looks at 8.5 in DRAM, where there is
//! no order. Both words of a slot are in one line of the cache, of which 4 slots share one.

mod header;
mod image;
mod merge;
#[cfg(all(test, loom))]
mod models;
mod persistent;
mod slot;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;
mod volatile;

pub(crate) use self::header::TABLE_ALIGN;
pub(crate) use self::image::Image;
pub(crate) use self::merge::{MergeOwner, Source, merge, merge_last};
pub(crate) use self::persistent::PersistentTable;
pub(crate) use self::slot::{Found, Slot};
pub(crate) use self::volatile::{Tables, Upserted, VolatileTable};

/// Checks that a tool can leave out.
pub(crate) mod steps {
    chimera_pmem::steps! {
        /// The check of a slot in persistent memory.
        SLOT_CHECK = "probing_table.step.slot_check";
        /// The check of a header, and that the table is its owner's.
        HEADER_CHECK = "probing_table.step.header_check";
        /// The checksum of all slots, and their number of entries.
        TABLE_CHECK = "probing_table.step.table_check";
    }
}

/// Most slots of a table.
pub(crate) const SLOTS_MAX: u32 = 1 << 30;
/// Slots of a table in persistent memory are a multiple of it: 256 bytes, the unit in which such memory is written.
pub(crate) const SLOTS_UNIT: u32 = 16;

/// Slots of a table in persistent memory for so many entries, of which at most `load_percent` out of 100 are then in use.
/// None when there can be no such table.
pub(crate) fn slots_for(entries: u64, load_percent: u32) -> Option<u32> {
    let slots =
        entries.checked_mul(100)?.checked_div(load_percent.min(100).into())?.checked_add(1)?;
    let slots = slots.next_multiple_of(SLOTS_UNIT.into());
    u32::try_from(slots).ok().filter(|slots| *slots <= SLOTS_MAX)
}

/// The slot from which on the entries of a hash lie, in a table of so many slots. It never sinks from one hash to one
/// with a higher lower half: so entries come out of one table nearly in the order in which they go into another one.
#[inline(always)]
pub(crate) fn home(hash: u64, slots: u32) -> u32 {
    (((hash & u64::from(u32::MAX)) * u64::from(slots)) >> 32) as u32
}

/// All slots, in the order in which an entry of a hash is looked for.
#[inline(always)]
fn chain(hash: u64, slots: u32) -> impl Iterator<Item = u32> {
    let first = home(hash, slots);
    (first..first + slots).map(move |number| if number < slots { number } else { number - slots })
}

/// Slots between an entry of a hash, which lies in this slot, and its home.
#[inline(always)]
fn distance(number: u32, hash: u64, slots: u32) -> u32 {
    let home = home(hash, slots);
    if number >= home { number - home } else { number + (slots - home) }
}

/// Whether no chain goes on from the slot before this one to it, in a table whose entries are in the order of their homes. Of a
/// full one, too, this holds for one slot at least.
#[inline(always)]
fn begins_chain(number: u32, slot: Slot, slots: u32) -> bool {
    slot.is_empty() || distance(number, slot.hash, slots) == 0
}

/// Whether no chain of an entry in the range goes on behind an empty slot, `step` slots behind the home of the first one.
fn is_behind(halves: &std::ops::RangeInclusive<u32>, slots: u32, step: u32) -> bool {
    let [first, last] = [halves.start(), halves.end()].map(|half| home((*half).into(), slots));
    step >= last - first
}
