//! What stores take on disk, with default options: little for one record, and as records come.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use chimera::{Db, EngineKind, Options};

use super::GROUP;
use super::is_plain;
use super::tools::{key, scratch_on_disk};

const ENGINES: [EngineKind; 3] = [EngineKind::Viper, EngineKind::Hikv, EngineKind::Chameleon];
/// Most bytes for one record.
const ONE_RECORD_MAX: u64 = 1 << 20;
/// Records of a grown store, and bytes of a value.
const RECORDS: u64 = 8000;
const VALUE_BYTES: u64 = 1000;

/// Bytes of storage of the files of a store.
fn allocated(path: &Path) -> u64 {
    let files = std::fs::read_dir(path).expect("a directory");
    let blocks = |file: std::io::Result<std::fs::DirEntry>| {
        file.and_then(|file| file.metadata()).map_or(0, |file| file.blocks())
    };
    files.map(blocks).sum::<u64>() * 512
}

/// A directory for a store of an engine, and what it is opened with.
fn on_disk(engine: EngineKind) -> (tempfile::TempDir, Options) {
    (scratch_on_disk(), Options::new().engine(engine).durability(GROUP))
}

#[test]
fn a_store_takes_little_for_one_record_and_what_it_needs_for_more() {
    for engine in ENGINES {
        let (directory, options) = on_disk(engine);
        let path = directory.path();
        let db = Db::open(path, &options).expect("opens");
        if !is_plain(&db) {
            return;
        }
        db.put(b"key", b"value").expect("put");
        let one = allocated(path);
        assert!(one <= ONE_RECORD_MAX, "{engine:?} takes {one} bytes for one record");
        db.close().expect("nobody else has it");
        let db = Db::open(path, &options).expect("opens");
        let again = allocated(path);
        assert!(again <= ONE_RECORD_MAX, "{engine:?} takes {again} bytes when it is opened again");
        let value = vec![7; VALUE_BYTES as usize];
        for number in 0..RECORDS {
            db.put(key(number), &value).expect("put");
        }
        db.close().expect("nobody else has it");
        // Engines have up to half of it for their structure, and up to 4 MiB for what is not full.
        let most = RECORDS * VALUE_BYTES * 3 / 2 + (4 << 20);
        let grown = allocated(path);
        assert!(grown <= most, "{engine:?} takes {grown} bytes when it has grown");
    }
}

#[test]
fn storage_comes_back_when_everything_is_deleted_and_compacted() {
    for engine in ENGINES {
        let (directory, options) = on_disk(engine);
        let path = directory.path();
        let db = Db::open(path, &options).expect("opens");
        if !is_plain(&db) {
            return;
        }
        let value = vec![7; VALUE_BYTES as usize];
        for number in 0..RECORDS {
            db.put(key(number), &value).expect("put");
        }
        let full = allocated(path);
        for number in 0..RECORDS {
            assert!(db.delete(key(number)).expect("delete"));
        }
        db.compact(1, None).expect("compacts");
        let left = allocated(path);
        println!("{engine:?}: {full} bytes on disk when filled, {left} when deleted and compacted");
        assert!(left <= full / 10 + (2 << 20), "{engine:?} keeps {left} bytes of {full}");
        db.close().expect("nobody else has it");
        let db = Db::open(path, &options).expect("opens");
        let again = allocated(path);
        assert!(again <= left + (1 << 20), "{engine:?} takes {again} bytes once it is opened");
        // Blocks without storage get some when they are used again.
        for number in 0..RECORDS {
            db.put(key(number), &value).expect("put");
        }
        db.close().expect("nobody else has it");
        let db = Db::open(path, &options).expect("opens");
        assert_eq!(db.len(), RECORDS);
        assert_eq!(db.get(key(RECORDS - 1)).expect("a get"), Some(value));
    }
}

/// Every record is written twice, in another order, and every second one is deleted.
#[test]
fn storage_comes_back_when_half_is_deleted_and_compacted() {
    const RECORDS: u64 = 48_000;
    // Of 4 KiB; a record takes 1032 bytes there.
    const RECORDS_OF_A_VPAGE: u64 = 3;
    let live = RECORDS / 2;
    for engine in ENGINES {
        let (directory, options) = on_disk(engine);
        let path = directory.path();
        let db = Db::open(path, &options).expect("opens");
        if !is_plain(&db) {
            return;
        }
        let value = vec![7; VALUE_BYTES as usize];
        let again = (0..RECORDS).map(|number| number * 7 % RECORDS);
        for number in (0..RECORDS).chain(again) {
            db.put(key(number), &value).expect("put");
        }
        let full = allocated(path);
        for number in (0..live).map(|number| 2 * number) {
            assert!(db.delete(key(number)).expect("delete"));
        }
        db.compact(10, None).expect("compacts");
        let left = allocated(path);
        println!(
            "{engine:?}: {full} bytes on disk when filled, {left} when half is deleted and compacted"
        );
        let needed = match engine {
            EngineKind::Viper => live.div_ceil(RECORDS_OF_A_VPAGE) * 4096,
            _ => live * (8 + VALUE_BYTES),
        };
        assert!(left <= needed * 11 / 10 + (2 << 20), "{engine:?} keeps {left} bytes of {full}");
        assert_eq!(db.len(), live);
        assert!(db.check(None).is_sound());
        db.close().expect("nobody else has it");
        let again = allocated(path);
        assert!(again <= left, "{engine:?} takes {again} bytes when it is closed");
        let db = Db::open(path, &options).expect("opens");
        assert!(db.check(None).is_sound());
        assert_eq!(db.get(key(RECORDS - 1)).expect("a get"), Some(value));
    }
}
