//! The order of keys that HiKV writes when it is closed: crashes in the middle, and of the open that reads it.

use std::collections::BTreeMap;

use chimera::{Db, EngineKind, Options};
use chimera_crashlab::rig::Rig;
use chimera_pmem::Pmem;

use crate::tools::{assert_sound, contents, fill, key};
use crate::{Model, quiet, recovered, rig};

/// A dump has several runs.
fn options() -> Options {
    Options::new()
        .engine(EngineKind::Hikv)
        .segment_bytes(8192)
        .hikv(|hikv| hikv.partitions(2).index_segment_bytes(512).heap_run_bytes(1024))
        .ordered(true)
        .order(|order| order.node_bytes(256).dump_bytes(256))
}

fn is_loaded<P: Pmem>(db: &Db<P>) -> bool {
    db.stats().order.expect("ordered").is_loaded
}

/// A store has these records, and scans give them.
fn assert_has<P: Pmem>(db: &Db<P>, records: &Model, about: &str) {
    let scanned = db.scan(..).expect("ordered").collect::<Result<BTreeMap<_, _>, _>>();
    assert!(scanned.expect("no damage") == *records, "{about}");
    assert!(contents(db) == *records, "{about}");
    assert_sound(db);
}

/// Crashes at each step since the last time leave all records; how many of them a dump that is read.
fn crashes(rig: &Rig, options: &Options, records: &Model) -> u64 {
    let mut loaded = 0;
    rig.crashes(|crash| {
        let db = recovered(crash, options);
        assert_has(&db, records, crash.before());
        let is_whole = is_loaded(&db);
        loaded += u64::from(is_whole);
        drop(db);
        // What was not used is gone, and what is written next is used.
        let db = recovered(crash, options);
        assert!(is_loaded(&db), "before {}", crash.before());
        assert_has(&db, records, crash.before());
    });
    loaded
}

#[test]
fn a_crash_while_a_store_is_closed_or_opened_again_loses_no_key() {
    let options = options();
    let (rig, db) = rig(&options);
    fill(&mut db.session(), 0..24, 1);
    let records = contents(&db);
    rig.skip();
    db.close().expect("nobody else has it");
    let loaded = crashes(&rig, &options, &records);
    assert!(loaded > 0, "a store that was closed in order has a dump");
    let db = rig.open(&quiet(&options)).expect("the store opens");
    assert!(is_loaded(&db));
    // A crash before the superblock says that the store is open leaves the dump in force; later ones do not.
    let loaded = crashes(&rig, &options, &records);
    assert!(loaded > 0);
    // Of the life that goes on nothing is lost for a dump of the one before.
    assert!(db.delete(key(3)).expect("delete"));
    fill(&mut db.session(), 30..32, 1);
    let records = contents(&db);
    rig.skip();
    db.close().expect("nobody else has it");
    assert!(crashes(&rig, &options, &records) > 0);
}
