//! HiKV writes its order of keys when it is closed, and reads it when it is opened again; it relies on nothing of it.

#[path = "../tools/mod.rs"]
mod tools;

use std::collections::BTreeMap;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use chimera::{Db, EngineInspect, EngineKind, ErrorKind, Options};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use tools::{
    assert_sound, bytes_of, contents, copy_store, fill, key, open, restore, scratch, value,
};

fn options() -> Options {
    Options::new()
        .engine(EngineKind::Hikv)
        .segment_bytes(64 << 10)
        .populate_ahead_bytes(0)
        .hikv(|hikv| hikv.partitions(4).index_segment_bytes(1024).heap_run_bytes(4096))
        .ordered(true)
        .order(|order| order.node_bytes(256))
}

fn is_loaded(db: &Db) -> bool {
    let order = db.stats().order.expect("ordered");
    assert!(!order.is_loaded || order.is_ready && order.keys_gathered == 0);
    order.is_loaded
}

/// Scans give what the store has.
fn assert_ordered(db: &Db) {
    let scanned: BTreeMap<_, _> =
        db.scan(..).expect("ordered").collect::<Result<_, _>>().expect("no damage");
    assert!(scanned == contents(db), "{} keys are scanned", scanned.len());
    assert_sound(db);
}

/// A closed store with these keys.
fn closed(path: &Path, keys: Range<u64>) {
    let db = open(path, &options());
    fill(&mut db.session(), keys, 1);
    db.close().expect("nobody else has it");
}

fn runs(db: &Db) -> u64 {
    let inspected = db.inspect(None);
    let EngineInspect::Hikv(hikv) = inspected.details else { panic!("another engine") };
    hikv.runs.kinds.iter().find(|kind| kind.kind == "hikv.order").expect("a kind").runs
}

#[test]
fn a_store_that_is_opened_again_has_its_order_at_once() {
    let directory = scratch();
    for dump_bytes in [1 << 20, 512] {
        let options = options().order(|order| order.dump_bytes(dump_bytes).wait(false));
        for round in 0..3 {
            let db = open(directory.path(), &options);
            assert!(is_loaded(&db) == (round > 0 || dump_bytes == 512));
            assert_ordered(&db);
            assert_eq!(runs(&db), 0, "it is used once");
            fill(&mut db.session(), round * 100..round * 100 + 150, 1);
            (0..20).for_each(|number| assert!(db.delete(key(number)).is_ok()));
            db.close().expect("nobody else has it");
        }
    }
    let before = bytes_of(directory.path());
    let db = open(directory.path(), &options().read_only(true));
    assert!(is_loaded(&db) && runs(&db) >= 3, "{} runs", runs(&db));
    assert_ordered(&db);
    drop(db);
    assert!(bytes_of(directory.path()) == before, "a reader has changed the store");
    assert!(is_loaded(&open(directory.path(), &options())));
}

#[test]
fn an_empty_store_has_its_order_at_once() {
    let directory = scratch();
    for round in 0..3 {
        let db = open(directory.path(), &options());
        assert_eq!(is_loaded(&db), round > 0);
        assert_ordered(&db);
        assert!(db.put(key(1), value(1, 1)).expect("put") && db.delete(key(1)).expect("delete"));
    }
}

#[test]
fn a_store_that_was_not_closed_has_nothing_to_read() {
    let (directory, copy) = (scratch(), scratch());
    closed(directory.path(), 0..200);
    let db = open(directory.path(), &options());
    assert!(is_loaded(&db));
    fill(&mut db.session(), 200..210, 1);
    // As a kill leaves it.
    copy_store(directory.path(), copy.path());
    let killed = open(copy.path(), &options());
    assert!(!is_loaded(&killed) && killed.len() == 210);
    assert_ordered(&killed);
}

#[test]
fn a_life_without_order_takes_it_away() {
    let directory = scratch();
    closed(directory.path(), 0..200);
    let db = open(directory.path(), &options().ordered(false));
    assert!(runs(&db) == 0 && db.delete(key(7)).expect("delete"));
    fill(&mut db.session(), 300..301, 1);
    db.close().expect("nobody else has it");
    let db = open(directory.path(), &options());
    assert!(!is_loaded(&db) && db.len() == 200);
    assert_ordered(&db);
}

#[test]
fn a_full_store_closes_without_it() {
    let directory = scratch();
    let options = options().capacity_bytes(64 << 10);
    let db = open(directory.path(), &options);
    let mut session = db.session();
    let full = (0..).find_map(|number| session.put(key(number), value(number, 1)).err());
    assert_eq!(full.expect("it gets full").kind(), ErrorKind::Full);
    drop(session);
    db.close().expect("a dump is no condition");
    let db = open(directory.path(), &options);
    assert!(!is_loaded(&db));
    assert_ordered(&db);
    let count = db.len();
    (0..count / 2).for_each(|number| assert!(db.delete(key(number)).expect("delete")));
    // Or it is not known yet what is free.
    db.compact(1, None).expect("compaction");
    db.close().expect("nobody else has it");
    let db = open(directory.path(), &options);
    assert!(is_loaded(&db));
    assert_ordered(&db);
}

/// Bytes of a dump of one run, with its header.
struct Dumped {
    file: PathBuf,
    at: u64,
    bytes: Vec<u8>,
}

const HEADER_BYTES: usize = 64;

impl Dumped {
    fn find(path: &Path, keys: Range<u64>) -> Self {
        let mut keys: Vec<_> = keys.map(key).collect();
        keys.sort();
        let length = |key: &Vec<u8>| (key.len() as u32).to_le_bytes();
        let entries: Vec<u8> =
            keys.iter().flat_map(|key| [&length(key)[..], key].concat()).collect();
        let found = bytes_of(path).into_iter().find_map(|(file, bytes)| {
            let at = bytes.windows(entries.len()).position(|window| window == entries)?;
            let header = at - HEADER_BYTES;
            Some((file, header as u64, bytes[header..at + entries.len()].to_vec()))
        });
        let (file, at, bytes) = found.expect("all keys in their order");
        Self { file: path.join(file), at, bytes }
    }

    /// Stores these bytes in its place, the first ones with sums that are right.
    fn forge(&self, bytes: &[u8]) {
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let mut bytes = bytes.to_vec();
        let sum = xxh3_64_with_seed(&bytes[HEADER_BYTES..], word(0));
        bytes[32..40].copy_from_slice(&sum.to_le_bytes());
        let check = xxh3_64_with_seed(&bytes[..40], 0);
        bytes[40..48].copy_from_slice(&check.to_le_bytes());
        self.store(&bytes);
    }

    fn store(&self, bytes: &[u8]) {
        let file = std::fs::File::options().write(true).open(&self.file).expect("a file");
        file.write_all_at(bytes, self.at).expect("a write");
    }
}

#[test]
fn whatever_is_damaged_is_gathered_anew() {
    let directory = scratch();
    closed(directory.path(), 0..60);
    let before = bytes_of(directory.path());
    let dumped = Dumped::find(directory.path(), 0..60);
    for at in 0..dumped.bytes.len() {
        let mut bytes = dumped.bytes.clone();
        bytes[at] ^= 1 << (at % 8);
        dumped.store(&bytes);
        let db = open(directory.path(), &options());
        assert_eq!(is_loaded(&db), (48..HEADER_BYTES).contains(&at), "byte {at}");
        assert_eq!(db.stats().order.expect("ordered").dump_damaged, !is_loaded(&db), "byte {at}");
        assert_eq!(db.len(), 60);
        assert_ordered(&db);
        drop(db);
        restore(directory.path(), &before);
    }
}

/// What is forged of the bytes of a dump whose entries have so many bytes.
type Forgery = (&'static str, fn(&mut Vec<u8>, usize));

#[test]
fn whatever_is_forged_is_no_order() {
    let directory = scratch();
    closed(directory.path(), 0..60);
    let before = bytes_of(directory.path());
    let dumped = Dumped::find(directory.path(), 0..60);
    let entry = 4 + key(0).len();
    let forgeries: [Forgery; 7] = [
        ("out of order", |bytes, entry| {
            let (first, second) = bytes[HEADER_BYTES..].split_at_mut(entry);
            first.swap_with_slice(&mut second[..entry]);
        }),
        ("twice", |bytes, entry| {
            bytes.copy_within(HEADER_BYTES..HEADER_BYTES + entry, HEADER_BYTES + entry);
        }),
        ("too long", |bytes, _| bytes[HEADER_BYTES + 2] = 255),
        ("empty", |bytes, _| bytes[HEADER_BYTES] = 0),
        ("the second part", |bytes, _| bytes[8] = 1),
        ("too many bytes", |bytes, _| bytes[31] = 255),
        ("another number of keys", |bytes, _| bytes[16] ^= 1),
    ];
    for (about, forge) in forgeries {
        let mut bytes = dumped.bytes.clone();
        forge(&mut bytes, entry);
        dumped.forge(&bytes);
        let db = open(directory.path(), &options());
        assert!(!is_loaded(&db), "{about}");
        assert_ordered(&db);
        drop(db);
        restore(directory.path(), &before);
    }
    // What is forged as it was is right: the forgeries fail for what they are.
    dumped.forge(&dumped.bytes);
    assert!(is_loaded(&open(directory.path(), &options())));
}
