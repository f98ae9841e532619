//! A part of the hashes of a shard, for listings and for verification. A *position* is a hash with its bits in another order:
//! first those that choose the shard, then those that choose the slot in a table. So a part of the positions is a part of each
//! table.

use std::ops::RangeInclusive;

use chimera_pmem::Pmem;

use super::Index;
use crate::engine::chameleon::shape::{SLOT_BYTES, Shape};
use crate::index::persistent::shard_manifest::TableAt;
use crate::index::probing_table::{PersistentTable, Slot};
use crate::types::error::Result;

/// Entries of a part that is gathered at a time, about.
const PART_ENTRIES: u64 = 64;

/// What is said of a slot that is damaged.
pub(super) const DAMAGED_SLOT: &str = "a slot of a table of the index is damaged";

/// The positions that are gathered at a time.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// Of hashes that tables have, in their order.
    pub(super) positions: Vec<u64>,
    /// Offsets of slots that are damaged.
    pub(super) damages: Vec<u64>,
    /// Where the next part begins.
    pub(super) next: Option<u64>,
}

impl<P: Pmem> Index<P> {
    /// The positions of a part that begins at the latest at this one.
    fn range_of(&self, position: u64) -> RangeInclusive<u64> {
        let shape = self.shards.shape();
        let shard = self.shards.shard(shape.shard_of(position));
        let tables = shard.dumps().chain(shard.last());
        let slots = tables.map(|table| table.bytes / u64::from(SLOT_BYTES)).sum::<u64>()
            + u64::from(shape.bypass_slots())
            + u64::from(self.shards.memtable_slots());
        let parts = slots.div_ceil(PART_ENTRIES).next_power_of_two();
        let bits = shape.shard_bits + parts.ilog2().min(32);
        let rest = u64::MAX.checked_shr(bits).unwrap_or(0);
        (position & !rest)..=(position | rest)
    }

    /// Puts every position that is taken, from this one to the end of its part, into `part`.
    ///
    /// # Errors
    /// When the bypass index has to be made first, and cannot. Where there is none tables are looked at.
    pub(super) fn gather_part(&self, from: u64, part: &mut Part) -> Result<()> {
        part.positions.clear();
        part.damages.clear();
        let (shape, pmem) = (self.shards.shape(), &self.core().pool.pmem);
        let number = shape.shard_of(from);
        // Tables stay where they are, and what they have.
        let work = self.lock_work(number);
        let range = from..=*self.range_of(from).end();
        part.next = range.end().checked_add(1);
        let halves = || shape.halves_of(&range);
        let mut enter = |slot: Slot| {
            let position = shape.position_of(slot.hash);
            if range.contains(&position) {
                part.positions.push(position);
            }
        };
        {
            let _writing = self.lock_to_look(number);
            self.shards.memtable(number).for_range(halves(), &mut enter);
        }
        let has_bypass = self.shards.has_bypass();
        if has_bypass {
            self.complete_bypass(number, &work)?;
            self.shards.bypass(number).for_range(halves(), &mut enter);
        }
        let shard = self.shards.shard(number);
        let uppers = self.shards.upper_tables(number).filter(|_| !has_bypass).map(|(_, at)| at);
        for place in uppers.chain(shard.dumps()).chain(shard.last()) {
            let slots = Shape::slots_of(place.bytes);
            let Some(table) = PersistentTable::from_parts(pmem, place.at, slots) else { continue };
            table.for_range(pmem, halves(), &mut enter, |at| part.damages.push(at));
        }
        drop(work);
        part.positions.sort_unstable();
        part.positions.dedup();
        Ok(())
    }

    /// The shard that begins with this position.
    pub(super) fn shard_at(&self, position: u64) -> Option<u32> {
        let shape = self.shards.shape();
        let number = shape.shard_of(position);
        let first = u64::from(number).checked_shl(u64::BITS - shape.shard_bits).unwrap_or(0);
        (position == first).then_some(number)
    }

    /// Verifies a table as a whole: its slots are those that it was written with.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(super) fn verify_table(&self, place: TableAt, owner: u64) -> Result<()> {
        let pmem = &self.core().pool.pmem;
        PersistentTable::open(pmem, self.shards.extent(place), owner)?.verify(pmem)
    }
}
