//! Verification finds what is wrong.

use std::path::Path;

use chimera::Db;
use chimera_pmem::Hardware;

use super::*;
use crate::driver::clock::Measure;
use crate::driver::pass::demand;
use crate::driver::phase::{self, Action, Extent, Phase};
use crate::driver::setup::MediumChoice;
use crate::driver::setup::Setup;
use crate::driver::store::{Create, Footprint};
use crate::results::rows::Facts;

/// A store with 3000 records, which have been changed in every way, and its ledger.
fn store(sizes: (u32, u32)) -> (Db<Hardware>, Data, Ledger) {
    let mut setup = Setup::small();
    (setup.key_bytes, setup.value_bytes) = sizes;
    (setup.records, setup.operations, setup.medium) = (3000, 1500, MediumChoice::Anonymous);
    let data = Data::new(&setup);
    let phases = crate::command::core::phases(&data, false);
    let demand = demand(&setup, &phases, 2);
    let db = Db::<Hardware>::create(&setup, Path::new(""), &demand).expect("opens");
    let mut ledger = Ledger::default();
    let load = Phase::new("load", Action::Insert);
    for (number, phase) in std::iter::once(&load).chain(&phases).enumerate() {
        let operations = if number == 0 { setup.records } else { setup.operations };
        let measure = Measure::Throughput;
        let extent = Extent { threads: 2, operations, duration: None, measure };
        phase::run(&db, &data, &mut ledger, phase, extent, number as u64).expect("runs");
        if number == 0 {
            ledger.settle();
        }
        if phase.action == Action::Insert {
            // With what was inserted, too.
            assert_eq!(verify(&db, &data, &ledger, 2).expect("sound"), ledger.records());
        }
    }
    (db, data, ledger)
}

fn key(data: &Data, number: u64) -> Vec<u8> {
    let mut key = Vec::new();
    data.keys.write(number, &mut key);
    key
}

fn failure(db: &Db<Hardware>, data: &Data, ledger: &Ledger) -> (u64, String) {
    match verify(db, data, ledger, 2).expect_err("something is wrong") {
        BenchError::Verification { wrong, first, .. } => (wrong, first),
        other => panic!("{other}"),
    }
}

#[test]
fn a_sound_store_is_found_sound_whatever_the_sizes() {
    for sizes in [(16, 200), (8, 8), (16, 4), (3, 0), (32, 500)] {
        let (db, data, ledger) = store(sizes);
        assert_eq!(verify(&db, &data, &ledger, 3).expect("sound"), 3000, "{sizes:?}");
    }
}

#[test]
fn an_altered_record_is_found() {
    let (db, data, ledger) = store((16, 200));
    let mut value = db.get(key(&data, 1234)).expect("readable").expect("there");
    value[199] ^= 1;
    db.put(key(&data, 1234), &value).expect("writes");
    let (wrong, first) = failure(&db, &data, &ledger);
    assert_eq!(wrong, 1);
    assert!(first.contains("record 1234"), "{first}");
}

#[test]
fn exchanged_records_are_found() {
    let (db, data, ledger) = store((16, 200));
    let value = db.get(key(&data, 1)).expect("readable").expect("there");
    db.put(key(&data, 2), &value).expect("writes");
    assert_eq!(failure(&db, &data, &ledger).0, 1);
}

#[test]
fn a_missing_record_is_found() {
    let (db, data, ledger) = store((8, 8));
    assert!(db.delete(key(&data, 77)).expect("deletes"));
    let (wrong, first) = failure(&db, &data, &ledger);
    assert_eq!((wrong, first.as_str()), (1, "record 77 is missing"));
}

#[test]
fn a_record_too_many_is_found() {
    let (db, data, ledger) = store((16, 200));
    db.put([0; 16], [0; 200]).expect("writes");
    let (wrong, first) = failure(&db, &data, &ledger);
    assert_eq!(wrong, 1);
    assert!(first.contains("3001"), "{first}");
}

/// A store that lists something else than it holds.
struct Lying(Db<Hardware>, &'static [u8]);

impl Store for Lying {
    type Session = <Db<Hardware> as Store>::Session;

    fn session(&self) -> Self::Session {
        Store::session(&self.0)
    }

    /// Names one key in the place of the first one.
    fn for_each(&self, mut take: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let mut is_first = true;
        Store::for_each(&self.0, |key, value| {
            take(if is_first { self.1 } else { key }, value);
            is_first = false;
        })
    }

    fn sync(&self) -> Result<()> {
        Store::sync(&self.0)
    }

    fn close(self) -> Result<()> {
        Store::close(self.0)
    }

    fn facts(&self) -> Facts {
        self.0.facts()
    }

    fn footprint(&self) -> Footprint {
        self.0.footprint()
    }
}

#[test]
fn a_listing_with_a_wrong_key_is_found() {
    let (db, data, ledger) = store((16, 200));
    let error = verify(&Lying(db, b"no such key here"), &data, &ledger, 2).expect_err("is wrong");
    assert!(error.to_string().contains("never written"), "{error}");
}
