//! Stores on a DAX device.

use chimera::{Db, Error};

use crate::tools::crash::{CrashPmem, Survives};
use crate::tools::device::Device;
use crate::tools::{assert_fails, contents, fill, key, small, value};
use crate::{hardware, tools};

/// Where segments begin.
const AREA_BYTES: u64 = 2 << 20;

fn device() -> Device {
    let device = Device::filled(AREA_BYTES + 3 * tools::SMALL.segment_bytes, 4096, 0xff);
    device.write(0, &[0; 8192]);
    device
}

fn destroy(device: &Device) -> chimera::Result<()> {
    Db::destroy_on(&hardware(), &device.environment(), device.path())
}

#[test]
fn a_device_is_free_again() {
    let device = device();
    assert!(matches!(destroy(&device), Err(Error::NotFound { .. })));
    let db = device.open(&small()).expect("a blank device");
    fill(&mut db.session(), 0..100, 1);
    assert!(matches!(destroy(&device), Err(Error::Locked { .. })));
    db.close().expect("nobody else has it");
    let before = device.bytes();
    destroy(&device).expect("nobody has it");
    let after = device.bytes();
    assert!(after[..8192].iter().all(|&byte| byte == 0));
    assert!(after[8192..] == before[8192..], "nothing else is written");
    assert!(matches!(destroy(&device), Err(Error::NotFound { .. })));
    device.assert_alone();
    let db = device.open(&small()).expect("a blank device");
    assert!(contents(&db).is_empty());
    db.put(&key(1), &value(1, 1)).expect("room");
}

#[test]
fn a_device_with_something_else_is_left_alone() {
    let device = device();
    device.write(1024, b"x");
    let bytes = device.bytes();
    assert_fails(destroy(&device), &["dax0.0", "holds something else"]);
    assert!(bytes == device.bytes());
}

#[test]
fn a_crash_leaves_the_store_or_what_can_be_destroyed() {
    let before = device();
    let db = before.open(&small()).expect("a blank device");
    fill(&mut db.session(), 0..100, 1);
    let records = contents(&db);
    db.close().expect("nobody else has it");
    let before = before.bytes();
    // With both copies, and with either one alone.
    for damaged in [None, Some(0), Some(4096)] {
        let subject = device();
        subject.write(0, &before);
        if let Some(copy) = damaged {
            subject.write(copy, &[0xff; 384]);
        }
        let pmem = CrashPmem::new(&small());
        let film = pmem.film();
        Db::destroy_on(&pmem, &subject.environment(), subject.path()).expect("nobody has it");
        let images = film.images();
        assert!(images.len() > 10, "only {} steps", images.len());
        let mut outcomes = [0; 3];
        for image in &images {
            for survives in Survives::several().chain((3..20).map(Survives::Some)) {
                let left = device();
                left.write(0, &before);
                left.write(0, &image.after(survives));
                match left.open(&small().create(false)) {
                    Ok(db) => {
                        assert_eq!(contents(&db), records, "the whole store or none");
                        outcomes[0] += 1;
                    }
                    Err(Error::Corrupted { .. }) => outcomes[1] += 1,
                    Err(Error::NotFound { .. }) => outcomes[2] += 1,
                    Err(error) => panic!("before {}, {survives:?}: {error}", image.before),
                }
                match destroy(&left) {
                    Ok(()) | Err(Error::NotFound { .. }) => {}
                    Err(error) => panic!("before {}, {survives:?}: {error}", image.before),
                }
                assert!(left.bytes()[..8192].iter().all(|&byte| byte == 0));
            }
        }
        assert!(outcomes[0] > 0 && outcomes[1] > 0, "{outcomes:?}");
    }
}
