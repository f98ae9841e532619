//! Records out of a store and into one: streams, backups; and what a store is made of.

#[path = "../tools/mod.rs"]
mod tools;

mod backup;
mod beside;
mod damage;
mod inspect;
mod resume;
mod streams;

use std::collections::BTreeMap;
use std::path::Path;

use chimera::{Db, ExportOptions, ImportOptions, ImportReport, Options, Result, StreamReader};

use tools::value_of;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Options of a small store of records of any size.
fn any_size() -> Options {
    tools::small_with(tools::SMALL)
}

/// A stream of all records, in frames of so many bytes.
fn exported(db: &Db, frame_bytes: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let report = db.export(&mut bytes, &ExportOptions::new().frame_bytes(frame_bytes));
    let report = report.expect("an export");
    assert_eq!(report.bytes, bytes.len() as u64);
    assert_eq!(report.records, report.records_written);
    bytes
}

fn import(db: &Db, bytes: &[u8]) -> Result<ImportReport> {
    db.import(&mut StreamReader::new(bytes)?, &ImportOptions::new())
}

/// A store with records of these sizes of values.
fn store_of(path: &Path, options: &Options, sizes: &[usize]) -> (Db, Model) {
    let db = tools::open(path, options);
    let mut model = Model::new();
    for (number, size) in sizes.iter().enumerate() {
        let key = format!("key {number}").into_bytes();
        let value = value_of(number as u64, 1, *size);
        db.put(&key, &value).expect("room");
        model.insert(key, value);
    }
    (db, model)
}
