//! How often the index is written, against the paper's formulas.

use std::path::Path;

use chimera::baselines::Compaction;
use chimera::{Db, EngineKind, IndexWritten};
use chimera_pmem::Hardware;

use crate::driver::engine::EngineChoice;
use crate::driver::pass::demand;
use crate::driver::phase::{Action, Phase};
use crate::driver::setup::{Reclaim, Setup};
use crate::driver::store::{Create, Store};
use crate::driver::tuning::Tuning;
use crate::driver::worker::{Data, Worker};
use crate::error::Result;
use crate::report::chameleon::AmplificationRow;
use crate::results::statistics::ratio;

const SLOT_BYTES: u64 = 16;
/// How often each key is overwritten.
const ROUNDS: u64 = 3;

/// A way of putting tables together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) name: &'static str,
    compaction: Compaction,
    /// Bytes written for each byte of an entry, by levels, ratio and load factor.
    formula: fn(f64, f64, f64) -> f64,
}

pub(super) const CASES: [Case; 2] = [
    Case {
        name: "level by level",
        compaction: Compaction::LevelByLevel,
        formula: |levels, ratio, load| (levels - 1.0 + ratio) / load,
    },
    Case {
        name: "direct",
        compaction: Compaction::Direct,
        formula: |levels, ratio, load| {
            (1.0 + (levels - 2.0) * (ratio - 1.0) / ratio + ratio) / load
        },
    },
];

/// Puts as many keys as the ratio times the capacity of the bypass indexes, and overwrites them one after the other: a row
/// for each.
pub(super) fn amplification(
    setup: &Setup,
    tuning: Tuning,
    case: Case,
) -> Result<[AmplificationRow; 2]> {
    // Slots that a MemTable uses before it is full: the same in all shards, as in the formulas.
    let load = Tuning::mean_load();
    let tuning =
        Tuning { load_factor: Some(load), compaction: case.compaction, batch_bytes: 0, ..tuning };
    let keys = u64::from(tuning.ratio) * tuning.bypass_keys() * u64::from(tuning.shards);
    let setup = Setup {
        engine: EngineChoice::Store(EngineKind::Chameleon),
        tuning: Some(tuning),
        records: keys,
        operations: ROUNDS * keys,
        key_bytes: 8,
        value_bytes: 8,
        // It would write tables of its own.
        reclaim: Some(Reclaim { percent: 0, bytes_per_second: 1 }),
        ..setup.for_counting()
    };
    let data = Data::new(&setup);
    let phases = [Phase::new("overwrite", Action::Overwrite)];
    let db = Db::<Hardware>::create(&setup, Path::new(""), &demand(&setup, &phases, 1))?;
    let written = || *db.stats().chameleon().expect("of ChameleonDB").written;
    let row = |what: &str, puts: u64, before: &IndexWritten, formula| {
        let after = written();
        let amplification = |bytes: u64| ratio(bytes as f64, (puts * SLOT_BYTES) as f64);
        AmplificationRow {
            compaction: case.name.to_owned(),
            puts_of: what.to_owned(),
            shards: tuning.shards,
            keys,
            puts,
            amplification: amplification(after.table_bytes() - before.table_bytes()),
            manifest: amplification(after.manifest.bytes - before.manifest.bytes),
            formula,
        }
    };
    let mut writer = Worker::new(&db, &data, 0..keys, 1);
    let empty = written();
    for _ in 0..keys {
        writer.insert(0)?;
    }
    let inserts = row("new keys", keys, &empty, None);
    let full = written();
    for put in 0..setup.operations {
        writer.overwrite(put % keys)?;
    }
    let (levels, ratio) = (f64::from(tuning.levels), f64::from(tuning.ratio));
    let formula = Some((case.formula)(levels, ratio, load));
    let overwrites = row("the same keys", setup.operations, &full, formula);
    drop(writer);
    Store::close(db)?;
    Ok([overwrites, inserts])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::setup::Sizing;

    #[test]
    fn overwrites_are_within_a_tenth_of_the_formulas() {
        let tuning = Tuning { memtable_bytes: 4096, levels: 3, ..Tuning::published(1) };
        for (case, expected) in CASES.into_iter().zip([8.0, 7.666_666]) {
            let setup = Setup { sizing: Sizing::Any, ..Setup::small() };
            let rows = amplification(&setup, tuning, case).expect("runs");
            let [overwrites, inserts] = &rows;
            let formula = overwrites.formula.expect("there is one");
            assert!((formula - expected).abs() < 1e-3, "{formula} is not {expected}");
            let deviation = overwrites.deviation().expect("there is a formula");
            assert!(deviation.abs() < 0.1, "{overwrites:?}");
            assert!(inserts.amplification < overwrites.amplification, "the last table grows");
            assert_eq!((inserts.keys, inserts.puts, overwrites.puts), (12_288, 12_288, 36_864));
        }
    }
}
