//! Where the store is, or would be.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::mounts::Mount;
use crate::store;

/// What is at the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Occupant {
    /// A store in a directory.
    Store,
    /// A store on a DAX device.
    StoreOnDevice,
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
    pub(super) path: PathBuf,
    pub(super) occupant: Occupant,
    /// The path itself, or the nearest directory above it.
    pub(super) directory: PathBuf,
    /// None for a device.
    pub(super) mount: Option<Mount>,
    /// Whether the block device below claims that it can be mapped directly.
    pub(super) device_can_dax: Option<bool>,
    /// Space that this user may take.
    pub(super) free_bytes: Option<u64>,
    pub(super) segments: u64,
}

impl Place {
    /// # Errors
    /// When not even the current directory is known.
    pub(super) fn look(path: &Path) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        let (occupant, device_segments) = occupant(&path);
        let directory = path.ancestors().find(|above| above.is_dir()).unwrap_or(Path::new("/"));
        let resolved = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        let mountinfo = fs::read("/proc/self/mountinfo").unwrap_or_default();
        let mount = Mount::of(&resolved, &String::from_utf8_lossy(&mountinfo))
            .filter(|_| !occupant.is_device());
        Ok(Self {
            occupant,
            device_can_dax: mount.as_ref().and_then(|mount| device_can_dax(&mount.device)),
            free_bytes: free_bytes(directory).filter(|_| !occupant.is_device()),
            segments: device_segments.unwrap_or_else(|| segments(&path)),
            directory: directory.to_owned(),
            mount,
            path,
        })
    }
}

impl Occupant {
    /// Whether it is a device, with a store or not.
    pub(super) fn is_device(self) -> bool {
        matches!(self, Self::StoreOnDevice | Self::BlankDevice | Self::Device)
    }
}

/// What is at the path; of a device also the segments of the store on it.
fn occupant(path: &Path) -> (Occupant, Option<u64>) {
    let found = match fs::metadata(path) {
        Err(_) => Occupant::Nothing,
        Ok(_) if store::is_device(path) => return on_device(path),
        Ok(found) if !found.is_dir() => Occupant::File,
        Ok(_) if path.join("superblock").exists() => Occupant::Store,
        Ok(_) => Occupant::Directory,
    };
    (found, None)
}

/// What is on a device, by the two copies of its superblock.
fn on_device(path: &Path) -> (Occupant, Option<u64>) {
    let Ok(bytes) = store::superblock_of_device(path) else { return (Occupant::Device, Some(0)) };
    let copies = bytes.chunks(bytes.len() / 2).filter(|copy| copy.starts_with(b"CHIMERA1"));
    let word = |copy: &[u8], at: usize| {
        copy[at..at + 8].iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
    };
    // Word 8 is the sequence number, word 9 the number of segments.
    match copies.max_by_key(|copy| word(copy, 64)) {
        Some(copy) => (Occupant::StoreOnDevice, Some(word(copy, 72))),
        None if bytes.iter().all(|&byte| byte == 0) => (Occupant::BlankDevice, Some(0)),
        None => (Occupant::Device, Some(0)),
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
