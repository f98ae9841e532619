//! Stores on a DAX device.

use chimera::{Db, Error};

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
    db.put(key(1), value(1, 1)).expect("room");
}

#[test]
fn a_device_with_something_else_is_left_alone() {
    let device = device();
    device.write(1024, b"x");
    let bytes = device.bytes();
    assert_fails(destroy(&device), &["dax0.0", "holds something else"]);
    assert!(bytes == device.bytes());
}
