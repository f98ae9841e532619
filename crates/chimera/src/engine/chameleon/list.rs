//! Listings: every record. A *position* is a hash with its bits in another order: first those that choose the shard, then those
//! that choose the slot in a table. So a part of the positions is a part of each table.

use std::ops::RangeInclusive;

use chimera_pmem::Pmem;

use super::alike::DAMAGED_RECORD;
use super::{Chameleon, ChameleonClient};
use crate::engine::shared::listing::Listed;
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

impl<P: Pmem> Chameleon<P> {
    /// See [`Engine::list`](crate::engine::Engine::list). Hashes that were there when the listing came to their part are
    /// looked up one after the other; a key that is gone by then is left out.
    pub(super) fn list_from(
        &self,
        client: &mut ChameleonClient,
        from: u64,
        mut take: impl FnMut(&Listed<'_>) -> bool,
    ) -> Result<()> {
        let (mut part, mut next) = (Part::default(), Some(from));
        while let Some(from) = next {
            self.verify_tables_from(from)?;
            self.gather_part(from, &mut part)?;
            next = part.next;
            for at in &part.damages {
                self.pass_over(DAMAGED_SLOT, *at)?;
            }
            for position in &part.positions {
                if !self.list_position(client, *position, &mut take)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The positions of a part that begins at the latest at this one.
    fn range_of(&self, position: u64) -> RangeInclusive<u64> {
        let shape = &self.index.shape;
        let shard = self.index.shard(shape.shard_of(position));
        let tables = shard.dumps().chain(shard.last());
        let slot_bytes = u64::from(super::shape::SLOT_BYTES);
        let slots = tables.map(|table| table.bytes / slot_bytes).sum::<u64>()
            + u64::from(shape.bypass_slots())
            + u64::from(self.index.memtable_slots());
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
        let (shape, pmem) = (&self.index.shape, &self.core.pool.pmem);
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
            self.index.memtable(number).for_range(halves(), &mut enter);
        }
        let has_bypass = self.index.has_bypass();
        if has_bypass {
            self.complete_bypass(number, &work)?;
            self.index.bypass(number).for_range(halves(), &mut enter);
        }
        let shard = self.index.shard(number);
        let uppers = self.index.upper_tables(number).filter(|_| !has_bypass).map(|(_, at)| at);
        for place in uppers.chain(shard.dumps()).chain(shard.last()) {
            let slots = super::shape::Shape::slots_of(place.bytes);
            let Some(table) = PersistentTable::from_parts(pmem, place.at, slots) else { continue };
            table.for_range(pmem, halves(), &mut enter, |at| part.damages.push(at));
        }
        drop(work);
        part.positions.sort_unstable();
        part.positions.dedup();
        Ok(())
    }

    /// Hands the records of all keys at a position to `take`, as long as it says `true`.
    fn list_position(
        &self,
        client: &mut ChameleonClient,
        position: u64,
        take: &mut impl FnMut(&Listed<'_>) -> bool,
    ) -> Result<bool> {
        let hash = self.index.shape.hash_at(position);
        let mut damages = Vec::new();
        let records = self.read_alike(&mut client.shared.value, hash, |at| damages.push(at))?;
        damages.into_iter().try_for_each(|at| self.pass_over(DAMAGED_RECORD, at))?;
        let count = records.len();
        for (number, (key, value)) in records.into_iter().enumerate() {
            let done_below = position.saturating_add(u64::from(number + 1 == count));
            let listed = Listed { key: &key, value: &value, position, done_below };
            let goes_on = take(&listed);
            // To be used again.
            client.shared.value = value;
            if !goes_on {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
