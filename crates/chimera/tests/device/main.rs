//! Stores on a DAX device, here a file that is as strict as one: it can be locked and mapped.

#[path = "../tools/mod.rs"]
mod tools;

use chimera::{Db, Durability, Error, Options};
use chimera_pmem::Medium;

use tools::device::Device;
use tools::{assert_fails, assert_sound, contents, fill, key, small, value};

const MIB: u64 = 1 << 20;
/// Where segments begin on devices with an alignment of up to 2 MiB.
const AREA_BYTES: u64 = 2 * MIB;

/// Room for `segments` segments of a small store.
fn small_device(segments: u64, byte: u8) -> Device {
    let capacity = AREA_BYTES + segments * tools::SMALL.segment_bytes;
    let device = Device::filled(capacity, 4096, byte);
    device.write(0, &[0; 8192]);
    device
}

/// Options without sizes of pages and segments.
fn by_default() -> Options {
    Options::new().fixed_size(8, 24).populate_ahead_bytes(0).reclaim_percent(0)
}

#[test]
fn a_store_on_a_device_is_a_store() {
    let device = small_device(4, 0);
    let db = device.open(&small()).expect("a blank device");
    assert_eq!(db.stats().medium, Medium::DevDax);
    assert_eq!(db.effective_durability(), Durability::Immediate);
    let mut session = db.session();
    fill(&mut session, 0..500, 1);
    fill(&mut session, 100..200, 2);
    session.delete(key(7)).expect("it is there");
    drop(session);
    let before = contents(&db);
    assert_eq!(before.len(), 499);
    db.sync().expect("nothing to do");
    db.close().expect("nobody else has it");

    let db = device.open(&small().create(false)).expect("the same store");
    assert!(db.stats().recovery.clean);
    assert_eq!(contents(&db), before);
    assert_sound(&db);
    drop(db);
    let bytes = device.bytes();
    let db = device.open(&small().read_only(true)).expect("the same store");
    assert_eq!(contents(&db), before);
    drop(db);
    assert!(bytes == device.bytes(), "reading changes nothing");
    device.assert_alone();
}

#[test]
fn a_store_fills_a_device_and_no_more() {
    let device = small_device(3, 0xff);
    device.write(AREA_BYTES + 3 * tools::SMALL.segment_bytes, b"not whole segment");
    let db = device.open(&small()).expect("a blank device");
    let mut session = db.session();
    let mut count = 0;
    let error = loop {
        match session.put(key(count), value(count, 1)) {
            Ok(_) => count += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::PoolFull { .. }), "{error}");
    let slots = u64::from(db.stats().viper().expect("Viper").records_per_block);
    assert_eq!(count, 3 * 24 * slots);
    assert!(matches!(session.put(key(count), value(0, 0)), Err(Error::PoolFull { .. })));
    drop(session);
    drop(db);
    let db = device.open(&small()).expect("the same store");
    assert_eq!(contents(&db).len() as u64, count);
    assert_sound(&db);
}

#[test]
fn segments_are_fitted_to_the_device() {
    // 62 MiB of segments below the default of 1 GiB: one.
    let device = Device::filled(64 * MIB, 2 * MIB, 0);
    let db = device.open(&by_default()).expect("a blank device");
    db.put(key(1), value(1, 1)).expect("room");
    assert_eq!(db.stats().segments, 1);
    assert_eq!(db.stats().segment_bytes, 62 * MIB, "all that is there");
    drop(db);
    let wrong = by_default().segment_bytes(MIB);
    let device = Device::filled(64 * MIB, 2 * MIB, 0);
    assert_fails(device.open(&wrong), &["multiple of 2097152 bytes on this device", "1048576"]);
    assert!(device.bytes().iter().all(|&byte| byte == 0), "nothing is made");
    device.open(&by_default().segment_bytes(8 * MIB)).expect("a multiple");
}

#[test]
fn a_device_with_something_else_is_left_alone() {
    for at in [0, 128, 1024, 4096, 8191] {
        let device = small_device(2, 0);
        device.write(at, b"x");
        let bytes = device.bytes();
        assert_fails(device.open(&small()), &["dax0.0", "holds something else", "write zeros"]);
        assert!(matches!(device.open(&small()), Err(Error::NotAStore { .. })));
        assert!(bytes == device.bytes(), "byte {at}");
    }
}

#[test]
fn a_damaged_store_is_not_taken_for_something_else() {
    let device = small_device(2, 0);
    device.open(&small()).expect("a blank device").close().expect("nobody else has it");
    for copy in [0, 4096] {
        device.write(copy + 20, b"x");
    }
    assert!(matches!(device.open(&small()), Err(Error::Corrupted { .. })));
}

#[test]
fn there_is_no_store_on_a_blank_device() {
    let device = small_device(2, 0);
    for options in [small().create(false), small().read_only(true)] {
        assert!(matches!(device.open(&options), Err(Error::NotFound { .. })));
    }
    assert!(device.bytes().iter().all(|&byte| byte == 0));
}

#[test]
fn a_device_that_is_too_small_or_was_made_smaller_is_refused() {
    let device = small_device(0, 0);
    assert_fails(device.open(&small()), &["too few for a store"]);
    let device = small_device(2, 0);
    let db = device.open(&small()).expect("a blank device");
    fill(&mut db.session(), 0..400, 1);
    assert_eq!(db.stats().segments, 2);
    drop(db);
    device.resize(AREA_BYTES + tools::SMALL.segment_bytes);
    assert_fails(device.open(&small()), &["segment 1", "made smaller"]);
}

#[test]
fn a_device_has_one_writer_or_several_readers() {
    let device = small_device(2, 0);
    let db = device.open(&small()).expect("a blank device");
    assert!(matches!(device.open(&small()), Err(Error::Locked { .. })));
    assert!(matches!(device.open(&small().read_only(true)), Err(Error::Locked { .. })));
    db.close().expect("nobody else has it");
    let reader = device.open(&small().read_only(true)).expect("free");
    device.open(&small().read_only(true)).expect("shared");
    assert!(matches!(device.open(&small()), Err(Error::Locked { .. })));
    drop(reader);
    device.open(&small()).expect("free");
}

#[test]
fn a_read_only_region_is_for_reading() {
    let device = small_device(2, 0);
    let db = device.open(&small()).expect("a blank device");
    fill(&mut db.session(), 0..50, 1);
    drop(db);
    device.set_region_read_only(true);
    let bytes = device.bytes();
    assert_fails(device.open(&small()), &["dax0.0", "region is read-only"]);
    let db = device.open(&small().read_only(true)).expect("readable");
    assert_eq!(contents(&db).len(), 50);
    assert!(matches!(db.put(key(1), value(1, 2)), Err(Error::ReadOnly)));
    drop(db);
    assert!(bytes == device.bytes());
}

#[test]
fn what_is_no_device_is_not_taken_for_one() {
    let directory = tools::scratch();
    let file = directory.path().join("file");
    std::fs::write(&file, "text").expect("room");
    assert_fails(Db::open(&file, &small()), &["it is a file, not a directory"]);
    assert_fails(Db::open("/dev/null", &small()), &["neither a directory nor a DAX device"]);
    assert_fails(Db::open("/dev/dax99.99", &small()), &["there is no such device"]);
    assert_eq!(std::fs::read(&file).expect("still there"), b"text");
}
