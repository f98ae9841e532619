//! The log with one hash table in persistent memory: its segments split and its directory doubles, beside puts, gets and deletes
//! of the same keys.

use chimera::EngineKind;

use super::*;

fn tiny() -> Options {
    Options::new()
        .engine(EngineKind::PmemHash)
        .segment_bytes(8192)
        .populate_ahead_bytes(0)
        .huge_pages(false)
        .log_hash(|log_hash| log_hash.index_segment_bytes(256).log_run_bytes(1024))
}

#[test]
fn segments_split_beside_sessions() {
    let grown = |db: &Db<Yielding>| {
        let stats = db.stats();
        let index = stats.log_hash().expect("that engine");
        vec![
            ("splits", index.index_segments.saturating_sub(1)),
            ("doublings", index.directory_depth.into()),
        ]
    };
    let abilities = Abilities { in_place: false, reclaim: false, ..Abilities::ALL };
    for scheduling in [Scheduling::Random, Scheduling::Priorities(8), Scheduling::Stalls(150)] {
        let workload = Workload { abilities, ..workload(4, 60, 41) };
        all_lives_are_linearizable(2, workload, scheduling, &tiny(), grown);
    }
}
