//! Verifying the store: the tables of each shard, and the records that their slots lead to, a part at a time.

use chimera_pmem::Pmem;

use super::Chameleon;
use super::alike::DAMAGED_RECORD;
use super::list::{DAMAGED_SLOT, Part};
use crate::engine::shared::scrub::{Point, Scrubbed};
use crate::index::persistent::shard_manifest::TableAt;
use crate::index::probing_table::PersistentTable;
use crate::pool::Held;
use crate::types::check::CheckReport;
use crate::types::error::{Error, Result};

impl<P: Pmem> Chameleon<P> {
    /// Verifies a part of a shard; at the shard's begin also its tables as a whole.
    pub(super) fn check_step(&self, from: Point, report: &mut CheckReport) -> Scrubbed {
        let (shape, mut part) = (&self.index.shape, Part::default());
        let number = shape.shard_of(from.next);
        if let Some(number) = self.shard_at(from.next) {
            self.check_tables(number, report);
        }
        if let Err(error) = self.gather_part(from.next, &mut part) {
            self.say(report, &error);
            part.next = u64::from(number + 1).checked_shl(u64::BITS - shape.shard_bits);
            part.next = part.next.filter(|_| number + 1 < shape.shards());
        }
        if self.salvages {
            // The table that has them is reported as a whole. The manifest has the number of its records.
            let note = |at: &u64| {
                self.core.pool.note_loss_of(Held::Nothing, *at, DAMAGED_SLOT);
            };
            part.damages.iter().for_each(note);
        }
        let mut buffer = Vec::new();
        for position in &part.positions {
            self.check_hash(shape.hash_at(*position), &mut buffer, report);
        }
        let Some(next) = part.next else {
            report.blocks += self.core.pool.used_blocks();
            return Scrubbed::Done;
        };
        let done = report.index_entries;
        let whole = self.count_records().max(done);
        Scrubbed::More { next: Point { part: 0, next }, done, whole }
    }

    fn check_hash(&self, hash: u64, buffer: &mut Vec<u8>, report: &mut CheckReport) {
        let mut damages = Vec::new();
        match self.read_alike(buffer, hash, |at| damages.push(at)) {
            Ok(records) => {
                report.records += records.len() as u64;
                report.index_entries += (records.len() + damages.len()) as u64;
                for (key, value) in records {
                    report.bytes += (key.len() + value.len()) as u64;
                    *buffer = value;
                }
            }
            Err(error) => self.say(report, &error),
        }
        for at in damages {
            self.say(report, &Error::corrupted(DAMAGED_RECORD, at));
        }
    }

    /// Verifies the tables of a shard, each as a whole.
    fn check_tables(&self, number: u32, report: &mut CheckReport) {
        let work = self.lock_work(number);
        for (place, owner) in self.index.tables_of(number, &work.current.tables) {
            if let Err(error) = self.verify_table(place, owner) {
                self.say(report, &error);
            }
        }
    }

    /// Verifies a table as a whole: its slots are those that it was written with.
    ///
    /// # Errors
    /// `Corrupted`.
    fn verify_table(&self, place: TableAt, owner: u64) -> Result<()> {
        let pmem = &self.core.pool.pmem;
        PersistentTable::open(pmem, self.index.extent(place), owner)?.verify(pmem)
    }

    /// Verifies the tables of the shard that begins with this position, if one does: for a listing, which sees slots one by
    /// one and would not miss one.
    ///
    /// # Errors
    /// `Corrupted` for damage, unless the store salvages.
    pub(super) fn verify_tables_from(&self, position: u64) -> Result<()> {
        let Some(number) = self.shard_at(position) else { return Ok(()) };
        let work = self.lock_work(number);
        for (place, owner) in self.index.tables_of(number, &work.current.tables) {
            match self.verify_table(place, owner) {
                Err(error) if self.salvages => {
                    self.core.pool.note_lost_of(Held::Nothing, &error, place.at);
                }
                verified => verified?,
            }
        }
        Ok(())
    }

    /// The shard that begins with this position.
    fn shard_at(&self, position: u64) -> Option<u32> {
        let shape = &self.index.shape;
        let number = shape.shard_of(position);
        let first = u64::from(number).checked_shl(u64::BITS - shape.shard_bits).unwrap_or(0);
        (position == first).then_some(number)
    }

    /// Adds damage to a report. A salvaged store leaves it out.
    fn say(&self, report: &mut CheckReport, error: &Error) {
        match error {
            Error::Corrupted { what, at } => report.damage(*at, what.clone()),
            other => report.damage(0, other.to_string()),
        }
        if self.salvages {
            self.core.pool.note_lost_of(Held::Nothing, error, 0);
        }
    }

    /// Verifies everything while the store is opened. How much is damaged, and how many of the records that are counted are no
    /// records because of that.
    ///
    /// # Errors
    /// `Corrupted` for damage, unless the store salvages.
    pub(super) fn verify_all(&self) -> Result<(u64, u64)> {
        let (mut report, mut from) = (CheckReport::default(), Point::default());
        while let Scrubbed::More { next, .. } = self.check_step(from, &mut report) {
            from = next;
        }
        match report.first_damage {
            Some(first) if !self.salvages => Err(Error::corrupted(first.what, first.at)),
            _ => Ok((report.damages, self.count_records().saturating_sub(report.records))),
        }
    }
}
