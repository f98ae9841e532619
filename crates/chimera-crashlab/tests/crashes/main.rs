//! Tests written by hand on the lab's simulated machine: power losses at every step of chosen operations, and
//! schedules that chance hardly ever produces.
//!
//! The holes of the paper and of its public prototype that a crash opens; the others are in
//! `crates/chimera/tests/holes`.

#[path = "../../../chimera/tests/tools/mod.rs"]
mod tools;

mod backup;
mod closing;
mod creation;
mod device;
mod dump;
mod growth;
mod hikv_log;
mod operations;
mod ordering;
mod reclaim;
mod sizes;
mod staged;

use std::collections::BTreeMap;

use chimera::baselines::RecordLayout;
use chimera::{Db, Options, Session};
use chimera_crashlab::rig::{Crash, Rig, Simulated};
use chimera_pmem::Pmem;

use tools::{SMALL, assert_sound, contents, small, small_any};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Bytes of a superblock and 15 small segments.
const MEMORY_BYTES: u64 = 8192 + 15 * SMALL.segment_bytes;

/// Nothing runs in the background.
fn quiet(options: &Options) -> Options {
    options.clone().populate_ahead_bytes(0).reclaim_percent(0).recovery_threads(1)
}

/// A machine with an open store.
fn rig(options: &Options) -> (Rig, Db<Simulated>) {
    let rig = Rig::new(MEMORY_BYTES);
    let db = rig.open(&quiet(options)).expect("the store opens");
    (rig, db)
}

/// The store that a crash leaves.
fn recovered(crash: &Crash, options: &Options) -> Db<Simulated> {
    let opened = crash.open(&quiet(options));
    opened.unwrap_or_else(|error| panic!("before {}: {error}", crash.before()))
}

/// Both layouts of records of one size, and records of any size.
fn stores() -> [Options; 3] {
    [small(), small().viper(|viper| viper.layout(RecordLayout::Published)), small_any()]
}

/// Stores whose records have versions.
fn versioned() -> [Options; 2] {
    [small(), small_any()]
}

/// What an operation does.
type Work<'a> = &'a dyn Fn(&mut Session<Simulated>);

/// A crash at any step of what was done last leaves the records from before it or from after it, and at the end
/// those from after it. How many second copies were cleared in all.
fn assert_atomic<P: Pmem>(rig: &Rig, before: &Model, after: &Db<P>, options: &Options) -> u64 {
    let after = contents(after);
    let mut cleared = 0;
    let count = rig.crashes(|crash| {
        let db = recovered(crash, options);
        let found = contents(&db);
        assert!(
            found == after || found == *before && !crash.is_at_the_end(),
            "before {}: neither before nor after",
            crash.before()
        );
        assert_sound(&db);
        assert_eq!(db.stats().records, found.len() as u64);
        cleared += db.stats().recovery.duplicates_cleared;
    });
    assert!(count > 3 || *before == after, "nothing was recorded");
    cleared
}
