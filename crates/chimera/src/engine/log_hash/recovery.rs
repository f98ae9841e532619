//! Recovery: a durable index is taken as it is, and its entries are counted; another one is made of the whole log.

use chimera_pmem::{Operation, Pmem};

use super::alike::DAMAGED_RECORD;
use super::index::LogIndex;
use super::{LOG, LogHash};
use crate::engine::{Engine, Options, Recovered};
use crate::pool::runs::FoundRun;
use crate::pool::{Compared, Held, Sums};
use crate::records::key_hash::KeyHash;
use crate::records::storage_log::StorageLog;
use crate::types::error::{Error, Result};
use crate::types::stats::RecoveryStats;

/// What was found damaged.
#[derive(Debug, Default)]
struct Damages {
    /// Parts of the pool or of the index.
    lost: u64,
    records: u64,
    first: Option<(u64, &'static str)>,
}

/// Recovery of a store.
pub(super) struct Recovery<'a, P: Pmem, I>(pub(super) &'a mut LogHash<P, I>);

impl<P: Pmem, I: LogIndex<P>> Recovery<'_, P, I> {
    /// Makes the store ready.
    pub(super) fn run(&mut self, options: &Options) -> Result<Recovered> {
        let (pool, salvage) = (self.0.core.pool.clone(), options.pool.salvage);
        let verifies = options.verify_at_open.unwrap_or(salvage);
        pool.pmem.operation_begin(Operation::Recovery, 0);
        let recovered = self.recover_all(salvage, verifies);
        pool.pmem.operation_acknowledge();
        let (Damages { lost, records, .. }, compared) = recovered?;
        if lost > 0 {
            self.0.core.poison.poison("a part of the index or of the log is missing");
        }
        if let Some(progress) = &options.progress {
            progress(pool.used_blocks(), pool.used_blocks());
        }
        let stats = RecoveryStats {
            blocks_scanned: pool.used_blocks(),
            records: self.0.index.len(),
            records_damaged: records + lost,
            threads: 1,
            ..RecoveryStats::default()
        };
        Ok(Recovered { stats, compared })
    }

    fn recover_all(&mut self, salvage: bool, verifies: bool) -> Result<(Damages, Compared)> {
        let engine = &mut *self.0;
        let (pool, mut log, mut damages) =
            (engine.core.pool.clone(), Vec::new(), Damages::default());
        pool.recover_runs(I::KINDS, salvage, |run| {
            match run {
                FoundRun::InUse(run) if run.is(LOG) => log.push(run),
                FoundRun::InUse(run) => engine.index.adopt(run),
                FoundRun::Damaged(_) => damages.lost += 1,
            }
            Ok(())
        })?;
        let found = engine.index.arrange()?;
        damages.lost += found.damages;
        let (recovered, unsettled) = engine.log.recover(log, salvage, |replayed| {
            engine.versions.note(replayed.hash, replayed.version);
            // With a durable index, what no entry leads to does not count, and replay need not look at it again.
            engine.index.replay(&engine.log, &replayed).map(|()| !I::IS_DURABLE)
        })?;
        engine.replayed_bytes = recovered.bytes;
        damages.records += recovered.damaged;
        let (log, hash, mut value) = (&engine.log, engine.core.hash, Vec::new());
        let note = |damages: &mut Damages, held, at, what| {
            damages.first.get_or_insert((at, what));
            if salvage {
                pool.note_loss_of(held, at, what);
            }
        };
        engine.index.complete(|slot_at, entry| {
            let placed = entry.filter(|(_, at)| log.has_run_at(*at));
            let Some((key_hash, at)) = placed else {
                // What an entry says that is there is added, wherever it leads.
                let held = if entry.is_none() { Held::One } else { Held::Nothing };
                damages.lost += 1;
                note(&mut damages, held, slot_at, "an entry of the index is damaged");
                return false;
            };
            let is_sound = !verifies || is_sound(log, hash, (key_hash, at), &mut value);
            if !is_sound {
                damages.records += 1;
                note(&mut damages, Held::Nothing, at, DAMAGED_RECORD);
            }
            is_sound
        });
        if let (Some((at, what)), false) = (damages.first, salvage) {
            return Err(Error::corrupted(what, at));
        }
        let compared = pool.compare_with_closing(salvage, Sums::Records, || engine.totals())?;
        engine.log.settle(unsettled);
        if !pool.read_only && damages.lost == 0 {
            engine.index.settle();
            found.orphans.into_iter().try_for_each(|run| pool.free_run(run))?;
        }
        Ok((damages, compared))
    }
}

/// Whether the record at a position is as it was written, for a key of this hash.
fn is_sound<P: Pmem>(
    log: &StorageLog<P>,
    key_hash: KeyHash,
    (hash, at): (u64, u64),
    buffer: &mut Vec<u8>,
) -> bool {
    log.decode(at).is_some_and(|record| {
        log.read_key(&record, buffer);
        key_hash.of(buffer) == hash && {
            let summed = log.read_summed(&record, buffer);
            log.is_sound(&record, hash, Some(summed))
        }
    })
}
