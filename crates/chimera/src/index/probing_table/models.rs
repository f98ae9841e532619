//! Models of a table in DRAM: probes beside an entry that is made or replaced, and in a table that is used again.

use std::sync::Arc;

use loom::thread;

use super::{Found, Slot, Tables, Upserted};
use crate::index::{Probe, Resolve};
use crate::sync::under_loom::model;

/// Hashes whose entries lie one behind the other.
const FIRST: u64 = 1;
const SECOND: u64 = 2;
const THIRD: u64 = 3;
/// The hash that every slot had when the table was used before.
const EARLIER: u64 = 4;

/// The slot of version `version` of the only key with this hash.
fn slot(hash: u64, version: u64) -> Slot {
    Slot::new(hash, 8 * (hash + 16 * version), 24, false)
}

/// The version of the entry of a hash.
fn find(tables: &Tables, hash: u64) -> Probe<u64> {
    tables.table(0).probe(hash, |found: Found| {
        assert_eq!(found.offset / 8 % 16, hash, "an entry of another hash");
        Probe::Found(found.offset / 8 / 16)
    })
}

/// A table of four slots, which was used before, with the first version of an entry of each hash.
fn tables(hashes: &[u64]) -> Arc<Tables> {
    let tables = Tables::new(4, false);
    assert_eq!(tables.take(), Ok(0));
    (0..4).for_each(|version| tables.table(0).insert(slot(EARLIER, version), 4).unwrap());
    tables.give_back(0);
    assert_eq!(tables.take(), Ok(0));
    for hash in hashes {
        tables.table(0).insert(slot(*hash, 0), 1).unwrap();
    }
    Arc::new(tables)
}

/// Runs `write` beside `read`.
fn beside(
    tables: &Arc<Tables>,
    write: impl FnOnce(&Tables) + Send + 'static,
    read: impl FnOnce(&Tables),
) {
    let writer = thread::spawn({
        let tables = tables.clone();
        move || write(&tables)
    });
    read(tables);
    writer.join().unwrap();
}

#[test]
fn loom_an_entry_is_found_whole_or_not_at_all_while_it_is_made() {
    model::check(2, || {
        let tables = tables(&[FIRST]);
        let write = |tables: &Tables| {
            tables.table(0).insert(slot(SECOND, 0), 1).unwrap();
            tables.table(0).insert(slot(THIRD, 0), 1).unwrap();
        };
        beside(&tables, write, |tables| {
            // Neither is the hash of an earlier entry taken for that of the one in the making.
            assert_eq!(find(tables, EARLIER), Probe::NotThis);
            let third = find(tables, THIRD);
            assert!(matches!(third, Probe::NotThis | Probe::Found(0)), "{third:?}");
            if third == Probe::Found(0) {
                assert_eq!(find(tables, SECOND), Probe::Found(0), "it was made before");
            }
            assert_eq!(find(tables, FIRST), Probe::Found(0));
        });
        assert_eq!(find(&tables, SECOND), Probe::Found(0));
        assert_eq!(tables.table(0).len(), 3);
    });
}

#[test]
fn loom_an_entry_is_found_while_it_is_replaced_and_never_gets_older() {
    model::check(2, || {
        let tables = tables(&[FIRST, SECOND]);
        let write = |tables: &Tables| {
            let replaced = tables.table(0).upsert(slot(SECOND, 1), 1, |_| Resolve::KeepNew);
            assert_eq!(replaced, Ok(Upserted::Replaced(slot(SECOND, 0).location)));
            let [old, new] = [1, 2].map(|version| slot(SECOND, version).location);
            assert!(tables.table(0).replace(SECOND, old, new));
        };
        beside(&tables, write, |tables| {
            let mut last = 0;
            for _ in 0..2 {
                let Probe::Found(version) = find(tables, SECOND) else { panic!("it is gone") };
                assert!(version >= last);
                last = version;
            }
            assert_eq!(find(tables, FIRST), Probe::Found(0));
        });
        assert_eq!(find(&tables, SECOND), Probe::Found(2));
    });
}

#[test]
fn loom_a_probe_of_a_table_that_is_used_again_never_sees_another_hash() {
    // The check tells them apart: not chance, but the words of this model.
    for (one, other) in [(FIRST, SECOND), (FIRST, THIRD), (SECOND, THIRD)] {
        assert!(super::slot::decode(one, slot(other, 0).location).is_none());
        assert!(super::slot::decode(other, slot(one, 0).location).is_none());
    }
    model::check(2, || {
        let tables = tables(&[FIRST, SECOND]);
        let write = |tables: &Tables| {
            tables.give_back(0);
            assert_eq!(tables.take(), Ok(0));
            tables.table(0).insert(slot(SECOND, 0), 1).unwrap();
            tables.table(0).insert(slot(THIRD, 0), 1).unwrap();
        };
        beside(&tables, write, |tables| {
            // The answer means nothing; what the probe was asked about is verified.
            for hash in [FIRST, SECOND, THIRD] {
                let _: Probe<u64> = find(tables, hash);
            }
        });
        assert_eq!(find(&tables, FIRST), Probe::NotThis);
        assert_eq!(find(&tables, THIRD), Probe::Found(0));
    });
}
