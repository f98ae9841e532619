//! [`Limited`]: processes with limited memory, in a control group of their own where that can be made.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where the memory controller of control groups is mounted: version 1, version 2.
const MOUNTS: [(&str, &str); 2] =
    [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
/// What lists the processes of a group, in both versions.
const PROCESSES: &str = "cgroup.procs";

/// A control group with limited memory. It is removed when this is dropped, which works once its processes have ended.
#[derive(Debug)]
pub(crate) struct Limited {
    directory: PathBuf,
}

impl Limited {
    /// A group of this name, inside the one of this process or at the top; none where neither can be made.
    pub(crate) fn make(name: &str, bytes: u64) -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        MOUNTS.iter().find_map(|(mount, limit)| {
            let inside = Path::new(mount).join(own_group(&own, mount).trim_start_matches('/'));
            [inside, PathBuf::from(mount)].into_iter().find_map(|parent| {
                let group = Self { directory: parent.join(name) };
                group.set(limit, bytes).is_ok().then_some(group)
            })
        })
    }

    fn set(&self, limit: &str, bytes: u64) -> io::Result<()> {
        fs::create_dir(&self.directory)?;
        // In a directory that is no group this is refused: files of groups cannot be created.
        let existing = fs::OpenOptions::new().write(true).open(self.directory.join(limit))?;
        io::Write::write_all(&mut &existing, bytes.to_string().as_bytes())
    }

    /// Moves a process into the group.
    pub(crate) fn take(&self, process: u32) -> io::Result<()> {
        fs::write(self.directory.join(PROCESSES), process.to_string())
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        // A group that still has a process stays; it is empty and does no harm.
        let _ = fs::remove_dir(&self.directory);
    }
}

/// The group of this process below a mount, by its `/proc/self/cgroup`.
fn own_group<'a>(text: &'a str, mount: &str) -> &'a str {
    let is_first = mount.ends_with("memory");
    let line = text.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let is_it = if is_first {
            controllers.split(',').any(|it| it == "memory")
        } else {
            controllers.is_empty()
        };
        is_it.then_some(path)
    });
    line.unwrap_or("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_found_in_both_versions() {
        let text = "4:memory:/outer/inner\n1:cpu,cpuacct:/\n0::/unified\n";
        assert_eq!(own_group(text, MOUNTS[0].0), "/outer/inner");
        assert_eq!(own_group(text, MOUNTS[1].0), "/unified");
        assert_eq!(own_group("", MOUNTS[0].0), "/");
    }

    #[test]
    fn a_group_leaves_nothing_behind() {
        let name = format!("chimera-peers-test-{}", std::process::id());
        let Some(group) = Limited::make(&name, 64 << 20) else { return };
        let directory = group.directory.clone();
        assert!(directory.exists());
        drop(group);
        assert!(!directory.exists());
    }
}
