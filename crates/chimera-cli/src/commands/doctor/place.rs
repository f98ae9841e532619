//! Where the store is, or would be.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use chimera::StoreOutline;
use serde::Serialize;

use super::mounts::Mount;
use crate::{paths, store};

/// What is at the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Occupant {
    /// A store in a directory.
    Store,
    /// A store on a DAX device.
    StoreOnDevice,
    /// A store on a DAX device that cannot be opened: no copy of its superblock is right, or its format is newer.
    UnreadableOnDevice,
    /// Nothing; a put would make a store here.
    Nothing,
    /// A directory without a store.
    Directory,
    /// A DAX device of nothing but zeros where a store begins; a put would make one here.
    BlankDevice,
    /// A device that holds something else, or cannot hold a store.
    Device,
    /// Something that cannot become a store.
    File,
}

/// The path and what it lies on.
#[derive(Serialize)]
pub(super) struct Place {
    /// The path, absolute.
    #[serde(flatten, serialize_with = "paths::fields")]
    pub(super) path: PathBuf,
    pub(super) occupant: Occupant,
    /// The path itself, or the nearest directory above it.
    #[serde(serialize_with = "paths::text")]
    pub(super) directory: PathBuf,
    /// None for a device.
    pub(super) mount: Option<Mount>,
    /// Whether the block device below claims that it can be mapped directly.
    pub(super) device_can_dax: Option<bool>,
    /// Space that this user may take.
    pub(super) free_bytes: Option<u64>,
    pub(super) segments: u64,
    /// Why the superblock on a device cannot be read.
    pub(super) unreadable: Option<String>,
}

impl Place {
    /// # Errors
    /// When not even the current directory is known, or it cannot be told what is at the path.
    pub(super) fn look(path: &Path) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        let (occupant, on_device) = occupant(&path)?;
        let directory = path.ancestors().find(|above| above.is_dir()).unwrap_or(Path::new("/"));
        let resolved = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        let mountinfo = fs::read("/proc/self/mountinfo").unwrap_or_default();
        let mount = Mount::of(&resolved, &String::from_utf8_lossy(&mountinfo))
            .filter(|_| !occupant.is_device());
        Ok(Self {
            occupant,
            device_can_dax: mount.as_ref().and_then(|mount| device_can_dax(&mount.device)),
            free_bytes: free_bytes(directory).filter(|_| !occupant.is_device()),
            segments: on_device.as_ref().map_or_else(|| segments(&path), |on| on.segments),
            unreadable: on_device.and_then(|on| on.unreadable),
            directory: directory.to_owned(),
            mount,
            path,
        })
    }
}

impl Place {
    /// Whether the path names a device, such as `/dev/dax0.0`, and there is none.
    pub(super) fn is_absent_device(&self) -> bool {
        let is_devices = |directory: &Path| {
            directory.canonicalize().is_ok_and(|directory| directory == Path::new("/dev"))
        };
        self.occupant == Occupant::Nothing && is_devices(&self.directory)
    }
}

impl Occupant {
    /// Whether it is a device, with a store or not.
    pub(super) fn is_device(self) -> bool {
        let with_store = matches!(self, Self::StoreOnDevice | Self::UnreadableOnDevice);
        with_store || matches!(self, Self::BlankDevice | Self::Device)
    }
}

/// What the superblock on a device says.
#[derive(Debug, Default, PartialEq, Eq)]
struct OnDevice {
    segments: u64,
    unreadable: Option<String>,
}

/// What is at the path; of a device also what its superblock says.
fn occupant(path: &Path) -> io::Result<(Occupant, Option<OnDevice>)> {
    let found = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Occupant::Nothing,
        Err(error) => return Err(error),
        Ok(_) if store::is_device(path) => {
            let (found, on) = match store::superblock_of_device(path) {
                Ok(bytes) => on_device(&bytes),
                Err(_) => (Occupant::Device, OnDevice::default()),
            };
            return Ok((found, Some(on)));
        }
        Ok(found) if !found.is_dir() => Occupant::File,
        Ok(_) if path.join("superblock").exists() => Occupant::Store,
        Ok(_) => Occupant::Directory,
    };
    Ok((found, None))
}

/// What is on a device that begins with these bytes, which are not to be trusted.
fn on_device(bytes: &[u8; StoreOutline::BYTES]) -> (Occupant, OnDevice) {
    let on = OnDevice::default();
    match StoreOutline::of(bytes) {
        Ok(Some(outline)) => {
            (Occupant::StoreOnDevice, OnDevice { segments: outline.segments, ..on })
        }
        Ok(None) if bytes.iter().all(|&byte| byte == 0) => (Occupant::BlankDevice, on),
        Ok(None) => (Occupant::Device, on),
        Err(error) => {
            let unreadable = Some(error.to_string());
            (Occupant::UnreadableOnDevice, OnDevice { unreadable, ..on })
        }
    }
}

fn segments(path: &Path) -> u64 {
    let Ok(names) = fs::read_dir(path) else { return 0 };
    let is_segment = |name: &std::ffi::OsStr| name.as_encoded_bytes().starts_with(b"segment-");
    names.flatten().filter(|entry| is_segment(&entry.file_name())).count() as u64
}

fn free_bytes(directory: &Path) -> Option<u64> {
    let space = rustix::fs::statvfs(directory).ok()?;
    space.f_bavail.checked_mul(space.f_frsize)
}

/// What sysfs says of the block device with number `device`, or of the disk it is a partition of.
fn device_can_dax(device: &str) -> Option<bool> {
    let device = Path::new("/sys/dev/block").join(device);
    let answer = ["queue/dax", "../queue/dax"]
        .iter()
        .find_map(|file| fs::read_to_string(device.join(file)).ok())?;
    Some(answer.trim() == "1")
}

#[cfg(test)]
mod tests {
    use chimera::{Db, Options};

    use super::*;

    /// The first bytes of a store with three segments.
    fn superblock() -> [u8; StoreOutline::BYTES] {
        let directory = tempfile::tempdir().expect("a directory");
        let options = Options::new().segment_bytes(1 << 20).populate_ahead_bytes(0);
        let db = Db::open(directory.path(), &options).expect("a new store");
        for number in 0..40_u64 {
            db.put(number.to_le_bytes(), 7_u8.to_le_bytes().repeat(60_000)).expect("room");
        }
        assert_eq!(db.stats().segments, 3);
        db.close().expect("nobody else has it");
        let bytes = fs::read(directory.path().join("superblock")).expect("a superblock");
        bytes.try_into().expect("of this length")
    }

    #[test]
    fn a_store_on_a_device_is_described_by_a_copy_that_is_right() {
        let sound = superblock();
        let expected = (Occupant::StoreOnDevice, OnDevice { segments: 3, unreadable: None });
        assert_eq!(on_device(&sound), expected);
        for copy in [0, 4096] {
            for at in (0..128).filter(|at| at / 8 != 13) {
                let mut damaged = sound;
                damaged[copy + at] ^= 0x55;
                let (occupant, on) = on_device(&damaged);
                assert_eq!(occupant, Occupant::StoreOnDevice, "byte {at} of copy {copy}");
                assert!((1..=3).contains(&on.segments), "byte {at} of copy {copy}: {on:?}");
            }
        }
    }

    #[test]
    fn numbers_without_a_right_checksum_are_not_shown() {
        let sound = superblock();
        let mut garbage = sound;
        let mut word = 1_u64;
        for byte in &mut garbage {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = (word >> 56) as u8;
        }
        assert_eq!(on_device(&garbage), (Occupant::Device, OnDevice::default()));
        for copy in [0, 4096] {
            garbage[copy..copy + 8].copy_from_slice(&sound[..8]);
            let (occupant, on) = on_device(&garbage);
            assert_eq!((occupant, on.segments), (Occupant::UnreadableOnDevice, 0));
            assert!(on.unreadable.is_some_and(|why| why.len() > 20));
        }
        let blank = [0; StoreOutline::BYTES];
        assert_eq!(on_device(&blank), (Occupant::BlankDevice, OnDevice::default()));
    }
}
