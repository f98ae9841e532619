//! Each step of each engine's recovery has been interrupted: by a power loss, in recoveries that follow a power loss or a kill,
//! several in a row. A table says which steps there are.

use chimera::EngineKind;
use chimera_crashlab::recoveries::interrupted;

fn every_step_is_interrupted(engine: EngineKind, epochs: u64, deep: u64, steps: &[&str]) {
    let found = interrupted(engine, 11, 1, epochs);
    println!("{engine}: {found:?}");
    assert!(found.violations.is_empty(), "{:#?}", found.violations);
    for step in steps {
        assert!(found.points.contains_key(step), "{engine}: {step} was never interrupted");
    }
    assert!(found.deepest >= deep, "{engine}: {} in a row", found.deepest);
    assert!(found.kills > epochs / 4 && found.epochs > epochs / 8, "{engine}: {found:?}");
}

#[test]
fn every_step_of_viper() {
    let steps = ["pool.superblock", "pool.found", "block.flags", "viper.found", "vpage.retire"];
    every_step_is_interrupted(EngineKind::Viper, 400, 3, &steps);
}

#[test]
fn every_step_of_hikv() {
    let steps = ["pool.superblock", "pool.found", "pool.run.found", "pool.run.free", "redo.clear"];
    every_step_is_interrupted(EngineKind::Hikv, 400, 3, &steps);
}

/// Opening makes tables where MemTables would be too full, so steps of growth are among them.
#[test]
fn every_step_of_chameleon() {
    let steps = [
        "pool.superblock",
        "pool.found",
        "pool.run.found",
        "pool.run.free",
        "pool.run.used",
        "chameleon.tables",
        "manifest.copy",
        "manifest.found",
        "storage_log.found",
        "storage_log.flushed",
        "storage_log.seal",
    ];
    every_step_is_interrupted(EngineKind::Chameleon, 160, 2, &steps);
}

/// Steps of recovery of a log with one hash table.
const OF_LOG_HASH: [&str; 5] =
    ["pool.superblock", "pool.found", "pool.run.found", "storage_log.found", "storage_log.seal"];

#[test]
fn every_step_of_pmem_hash() {
    every_step_is_interrupted(EngineKind::PmemHash, 40, 2, &OF_LOG_HASH);
}

#[test]
fn every_step_of_dram_hash() {
    every_step_is_interrupted(EngineKind::DramHash, 20, 1, &OF_LOG_HASH);
}

#[test]
fn every_step_of_teaching() {
    let steps = ["pool.superblock", "pool.found", "pool.run.found", "log.found", "log.retire"];
    every_step_is_interrupted(EngineKind::Teaching, 300, 3, &steps);
}
