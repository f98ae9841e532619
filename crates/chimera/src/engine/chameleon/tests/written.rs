//! Bytes written to the index, against the formulas of ChameleonDB's paper (section 2.5).

use std::sync::Arc;

use chimera_pmem::{Hardware, SteppedEnvironment};

use super::*;
use crate::pool::small::small_pool;

const SLOT_BYTES: u64 = 16;
const LEVELS: u64 = 3;
const RATIO: u64 = 4;
const LOAD: f64 = 0.75;
/// Entries of 16 MemTables of 256 slots.
const CAPACITY: u64 = 3072;

fn open(compaction: Compaction) -> Chameleon<Hardware> {
    let environment = Arc::new(SteppedEnvironment::in_memory(1));
    let options = Options::new().chameleon(|chameleon| {
        let shape =
            chameleon.shards(1).memtable_bytes(4096).levels(LEVELS as u32).ratio(RATIO as u32);
        shape.load_factors(LOAD..=LOAD).compaction(compaction)
    });
    let pool = small_pool(environment, 1 << 20, 64 << 20);
    let parameters = Parameters { shape: Shape::of(&options.chameleon), log_run_blocks: 64 };
    Chameleon::open(Core::new(pool, &options), parameters, &options).expect("a new store").0
}

/// Bytes of tables for each byte of an entry that is put, and those of the manifest.
fn amplification(
    engine: &Chameleon<Hardware>,
    keys: impl Iterator<Item = u64>,
) -> (f64, f64, IndexWritten) {
    let (before, mut puts) = (engine.flusher().tables().written(), 0);
    let mut client = engine.client(0);
    for key in keys {
        engine.put(&mut client, &key.to_le_bytes(), &[7; 8]).expect("room");
        puts += 1;
    }
    engine.end(&mut client);
    let (after, bytes) = (engine.flusher().tables().written(), (puts * SLOT_BYTES) as f64);
    let tables = (after.table_bytes() - before.table_bytes()) as f64 / bytes;
    let manifest = (after.manifest.bytes - before.manifest.bytes) as f64 / bytes;
    (tables, manifest, after)
}

#[test]
fn the_index_is_written_as_often_as_the_formulas_say() {
    let (levels, ratio) = (LEVELS as f64, RATIO as f64);
    let level_by_level = (levels - 1.0 + ratio) / LOAD;
    let direct = (1.0 + (levels - 2.0) * (ratio - 1.0) / ratio + ratio) / LOAD;
    for (compaction, formula) in
        [(Compaction::LevelByLevel, level_by_level), (Compaction::Direct, direct)]
    {
        let engine = open(compaction);
        // As many keys as the last table then has: so often as the bypass index has room for.
        let keys = RATIO * CAPACITY;
        let (inserts, _, _) = amplification(&engine, 0..keys);
        let (overwrites, manifest, written) =
            amplification(&engine, (0..3 * keys).map(|put| put % keys));
        println!(
            "{compaction:?}: overwrites {overwrites:.3} (formula {formula:.3}, manifest {manifest:.3} more), inserts from \
             an empty store {inserts:.3}; {written:?}"
        );
        assert!((overwrites / formula - 1.0).abs() < 0.1, "{overwrites} is not {formula}");
        assert!(inserts < overwrites, "the last table grows");
        assert_eq!(
            written.last.tables, 15,
            "each time that the bypass index is full, and not at the end"
        );
        assert_eq!(written.dumps.tables + written.absorbed, 0);
        let (mut again, mut found) = (engine.client(1), 0);
        for key in 0..keys {
            let bytes = key.to_le_bytes();
            found +=
                u64::from(engine.get(&mut again, engine.core().hash.of(&bytes), &bytes).unwrap());
        }
        assert_eq!(found, keys);
    }
}

#[test]
fn statistics_say_what_there_is() {
    let engine = open(Compaction::Direct);
    let mut client = engine.client(0);
    for key in 0..4000_u64 {
        engine.put(&mut client, &key.to_le_bytes(), &[7; 8]).expect("room");
    }
    let report = report(&engine);
    assert_eq!(report.memtable_load_percent, (75, 75));
    let entries = report.memtable_entries + report.bypass_entries + report.last_entries;
    assert_eq!(entries, 4000);
    assert_eq!(report.written.flushes.tables, (4000 - report.memtable_entries) / 192);
    assert_eq!((report.last_tables, report.written.last.tables), (1, 1));
    assert_eq!(report.last_bytes, report.written.last.bytes);
    assert!((report.bypass_load_percent - report.bypass_entries as f64 / 40.96).abs() < 1e-9);
    assert_eq!((report.shards_ahead, report.dumps), (0, TablesWritten::default()));
    assert_eq!((report.mode, report.protect_switches), (ChameleonMode::Normal, 0));
    assert!(report.replay_log_bytes > 0 && report.replay_log_bytes < report.replay_log_bytes_max);
}
