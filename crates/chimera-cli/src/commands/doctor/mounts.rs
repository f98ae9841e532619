//! Which mount a path is on, by `/proc/self/mountinfo`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::paths;

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Mount {
    #[serde(serialize_with = "paths::text")]
    pub(super) point: PathBuf,
    pub(super) file_system: String,
    pub(super) source: String,
    /// Options of the mount and of the file system.
    pub(super) options: Vec<String>,
    /// Device number, as `major:minor`.
    #[serde(skip)]
    pub(super) device: String,
}

impl Mount {
    /// The mount that `path` is on, from the text of `mountinfo`.
    pub(super) fn of(path: &Path, mountinfo: &str) -> Option<Self> {
        let mounts = mountinfo.lines().filter_map(Self::parse);
        // Later mounts hide earlier ones at the same place: of equals, the last is taken.
        mounts
            .filter(|mount| path.starts_with(&mount.point))
            .max_by_key(|mount| mount.point.components().count())
    }

    /// `36 35 98:0 /root /mnt rw,noatime shared:1 - ext4 /dev/sda1 rw,dax=always`.
    fn parse(line: &str) -> Option<Self> {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(2);
        let device = mount.next()?.to_owned();
        let point = unescape(mount.nth(1)?);
        let mut options: Vec<_> = mount.next()?.split(',').map(str::to_owned).collect();
        let mut file_system = file_system.split(' ');
        let kind = file_system.next()?.to_owned();
        let source = file_system.next()?.to_owned();
        for option in file_system.next().unwrap_or_default().split(',') {
            if !option.is_empty() && !options.iter().any(|known| known == option) {
                options.push(option.to_owned());
            }
        }
        Some(Self { point, file_system: kind, source, options, device })
    }

    /// The option that asks for direct access, if it is set.
    pub(super) fn dax_option(&self) -> Option<&str> {
        let is_dax = |option: &&String| *option == "dax" || option.starts_with("dax=");
        self.options.iter().find(is_dax).map(String::as_str)
    }

    /// The value of the option `name=value`.
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    }

    /// Whether other machines can write to the file system.
    pub(super) fn is_shared(&self) -> bool {
        const SHARED: [&str; 10] =
            ["nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "ceph", "lustre", "gfs2", "ocfs2"];
        SHARED.contains(&self.file_system.as_str()) || self.file_system.starts_with("fuse.")
    }
}

/// Spaces and the like are written as `\040`.
fn unescape(text: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = (first == b'\\').then(|| after.get(..3)).flatten();
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        if let Some(byte) = code.and_then(|code| u8::from_str_radix(code, 8).ok()) {
            bytes.push(byte);
            rest = &after[3..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTINFO: &str = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
30 22 0:25 / /dev/shm rw,nosuid shared:4 master:2 - tmpfs tmpfs rw,size=1024k,huge=advise
36 22 259:0 / /mnt/with\\040space rw,noatime - xfs /dev/pmem0 rw,dax=always,inode64
37 22 259:0 / /mnt rw - ext4 /dev/pmem1 rw,dax
38 22 0:30 / /mnt rw - fuse.sshfs host: rw
";

    fn mount(path: &str) -> Mount {
        Mount::of(Path::new(path), MOUNTINFO).unwrap()
    }

    #[test]
    fn the_innermost_and_latest_mount_is_found() {
        assert_eq!(mount("/home/user").file_system, "ext4");
        assert_eq!(mount("/dev/shm/x").file_system, "tmpfs");
        assert_eq!(mount("/dev/shmx").point, Path::new("/"));
        assert_eq!(mount("/mnt/with space/data").file_system, "xfs");
        assert_eq!(mount("/mnt/other").file_system, "fuse.sshfs");
    }

    #[test]
    fn options_are_understood() {
        assert_eq!(mount("/mnt/with space").dax_option(), Some("dax=always"));
        assert_eq!(mount("/").dax_option(), None);
        assert_eq!(mount("/").device, "254:0");
        assert_eq!(mount("/").options, ["rw", "relatime", "discard"]);
        assert_eq!(mount("/dev/shm").option("huge"), Some("advise"));
        assert!(mount("/mnt").is_shared());
        assert!(!mount("/").is_shared());
    }

    #[test]
    fn nonsense_is_no_mount() {
        assert_eq!(Mount::of(Path::new("/"), "1 2 3 - \n- -\n\n"), None);
    }
}
