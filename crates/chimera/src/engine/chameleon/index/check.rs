//! Verifying the store: the tables of each shard, and the records that their slots refer to, a part at a time.

use chimera_pmem::Pmem;

use super::Index;
use super::part::{DAMAGED_SLOT, Part};
use crate::engine::chameleon::records::DAMAGED_RECORD;
use crate::engine::contract::upkeep::{Point, Scrubbed};
use crate::pool::Held;
use crate::sync::atomic::Ordering;
use crate::types::check::CheckReport;
use crate::types::error::{Error, Result};

/// What is verified, and what is said of it.
struct Check<'a, P: Pmem> {
    index: &'a Index<P>,
    report: &'a mut CheckReport,
}

/// Verifies a part of a shard; at the shard's begin also its tables as a whole.
pub(crate) fn check_step<P: Pmem>(
    index: &Index<P>,
    from: Point,
    report: &mut CheckReport,
) -> Scrubbed {
    let (shape, mut part) = (index.shards.shape(), Part::default());
    if from == Point::default() {
        index.records_to_verify.store(index.count_records(), Ordering::Relaxed);
    }
    let number = shape.shard_of(from.next);
    let mut check = Check { index, report };
    if let Some(number) = index.shard_at(from.next) {
        check.tables(number);
    }
    if let Err(error) = index.gather_part(from.next, &mut part) {
        check.say(&error);
        part.next = u64::from(number + 1).checked_shl(u64::BITS - shape.shard_bits);
        part.next = part.next.filter(|_| number + 1 < shape.shards());
    }
    if index.records.salvages() {
        // The table that has them is reported as a whole. The manifest has the number of its records.
        let note = |at: &u64| index.core().pool.note_loss_of(Held::Nothing, *at, DAMAGED_SLOT);
        part.damages.iter().for_each(note);
    }
    let mut buffer = Vec::new();
    for position in &part.positions {
        check.hash(shape.hash_at(*position), &mut buffer);
    }
    let Some(next) = part.next else {
        report.blocks += index.core().pool.used_blocks();
        return Scrubbed::Done;
    };
    let done = report.index_entries;
    let whole = index.records_to_verify.load(Ordering::Relaxed).max(done);
    Scrubbed::More { next: Point { part: 0, next }, done, whole }
}

/// Verifies everything while the store is opened. How much is damaged, and how many of the records that are counted are no
/// records because of that: of a store that salvages alone. Of any other there is no damage, and what is counted too much was
/// counted by blind puts: tables of the last level will be counted anew.
///
/// # Errors
/// `Corrupted` for damage, unless the store salvages.
pub(crate) fn verify_all<P: Pmem>(index: &Index<P>) -> Result<(u64, u64)> {
    let (mut report, mut from) = (CheckReport::default(), Point::default());
    while let Scrubbed::More { next, .. } = check_step(index, from, &mut report) {
        from = next;
    }
    match report.first_damage {
        Some(first) if !index.records.salvages() => Err(Error::corrupted(first.what, first.at)),
        _ if !index.records.salvages() => Ok((report.damages, 0)),
        _ => Ok((report.damages, index.count_records().saturating_sub(report.records))),
    }
}

impl<P: Pmem> Check<'_, P> {
    /// Verifies the records of all keys of a hash.
    fn hash(&mut self, hash: u64, buffer: &mut Vec<u8>) {
        let mut damages = Vec::new();
        match self.index.read_same_hash(buffer, hash, |at| damages.push(at)) {
            Ok(records) => {
                self.report.records += records.len() as u64;
                self.report.index_entries += (records.len() + damages.len()) as u64;
                for (key, value) in records {
                    self.report.bytes += (key.len() + value.len()) as u64;
                    *buffer = value;
                }
            }
            Err(error) => self.say(&error),
        }
        for at in damages {
            self.say(&Error::corrupted(DAMAGED_RECORD, at));
        }
    }

    /// Verifies the tables of a shard, each as a whole.
    fn tables(&mut self, number: u32) {
        let index = self.index;
        let work = index.lock_work(number);
        for (place, owner) in index.shards.tables_of(number, &work.current.tables) {
            if let Err(error) = index.verify_table(place, owner) {
                self.say(&error);
            }
        }
    }

    /// Adds damage to the report. A salvaged store leaves it out.
    fn say(&mut self, error: &Error) {
        match error {
            Error::Corrupted { what, at } => self.report.damage(*at, what.clone()),
            other => self.report.damage(0, other.to_string()),
        }
        if self.index.records.salvages() {
            self.index.core().pool.note_lost_of(Held::Nothing, error, 0);
        }
    }
}
