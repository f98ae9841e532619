//! Listings and verification: every record, in the order of the hashes of keys. A *position* is a hash.

use chimera_pmem::Pmem;

use super::alike::DAMAGED_RECORD;
use super::index::LogIndex;
use super::{LogHash, LogHashClient};
use crate::engine::contract::listed::{Listed, hand_out};
use crate::engine::contract::upkeep::{Point, Scrubbed};
use crate::index::persistent::buckets::Batch;
use crate::types::check::CheckReport;
use crate::types::error::Result;

/// Hashes after which a step of verification ends.
const STEP_HASHES: usize = 64;

/// All records of a store.
pub(super) struct Listing<'a, P: Pmem, I>(pub(super) &'a LogHash<P, I>);

impl<P: Pmem, I: LogIndex<P>> Listing<'_, P, I> {
    /// See [`Engine::list`](crate::engine::Engine::list). What of a part was there when the listing came to it is read
    /// hash by hash; a key that is gone by then is left out.
    pub(super) fn list_from(
        &self,
        client: &mut LogHashClient,
        from: u64,
        mut take: impl FnMut(&Listed<'_>) -> bool,
    ) -> Result<()> {
        let (mut batch, mut next) = (Batch::default(), Some(from));
        while let Some(from) = next {
            self.0.index.list(from, &mut batch);
            next = batch.next;
            for at in &batch.damages {
                self.0.pass_over("a part of the index is damaged", *at)?;
            }
            for alike in batch.entries.chunk_by(|one, other| one.0 == other.0) {
                if !self.list_hash(client, alike[0].0, &mut take)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Hands the records of all keys of a hash to `take`, as long as it says `true`.
    fn list_hash(
        &self,
        client: &mut LogHashClient,
        hash: u64,
        take: &mut impl FnMut(&Listed<'_>) -> bool,
    ) -> Result<bool> {
        let mut damages = Vec::new();
        let records =
            self.0.read_same_hash(&mut client.shared.value, hash, |at| damages.push(at))?;
        damages.into_iter().try_for_each(|at| self.0.pass_over(DAMAGED_RECORD, at))?;
        Ok(hand_out(hash, records, &mut client.shared.value, take))
    }

    /// Verifies some entries, with their records; at the end of a part of the index also what of it is no entry.
    pub(super) fn check_step(&self, from: Point, report: &mut CheckReport) -> Scrubbed {
        let (mut batch, mut buffer) = (Batch::default(), Vec::new());
        self.0.index.list(from.next, &mut batch);
        let mut next = batch.next;
        for (number, alike) in batch.entries.chunk_by(|one, other| one.0 == other.0).enumerate() {
            if number == STEP_HASHES {
                next = Some(alike[0].0);
                break;
            }
            self.check_hash(alike[0].0, &mut buffer, report);
        }
        if next == batch.next {
            for at in batch.damages {
                report.damage(at, "a part of the index is damaged".to_owned());
            }
        }
        let Some(next) = next else {
            report.blocks += self.0.core.pool.used_blocks();
            return Scrubbed::Done;
        };
        let done = report.index_entries;
        Scrubbed::More { next: Point { part: 0, next }, done, whole: self.0.index.len().max(done) }
    }

    /// Verifies the entries of a hash.
    fn check_hash(&self, hash: u64, buffer: &mut Vec<u8>, report: &mut CheckReport) {
        let mut damages = Vec::new();
        // A damaged slot is reported with its part of the index.
        let records =
            self.0.read_same_hash(buffer, hash, |at| damages.push(at)).unwrap_or_default();
        report.records += records.len() as u64;
        report.index_entries += (records.len() + damages.len()) as u64;
        for (key, value) in records {
            report.bytes += (key.len() + value.len()) as u64;
            *buffer = value;
        }
        for at in damages {
            report.damage(at, DAMAGED_RECORD.to_owned());
        }
    }
}
