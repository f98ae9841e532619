//! How much memory a process may use, and how much of it files take, as the system says.

use std::fs;
use std::path::Path;

use rustix::process::{Resource, getrlimit};

/// Bytes of memory that this process may use: the least that the machine, its control groups and its own limits say.
///
/// # Cost
/// Reads a few small files of the kernel.
pub(super) fn usable_bytes(proc: &Path, groups: &Path) -> Option<u64> {
    let limits = [Resource::As, Resource::Data].map(|limit| getrlimit(limit).current);
    let machine = fs::read_to_string(proc.join("meminfo")).ok();
    let machine = machine.and_then(|text| machine_bytes(&text));
    let group = fs::read_to_string(proc.join("self/cgroup")).ok();
    let group = group.and_then(|text| group_bytes(&text, groups));
    limits.into_iter().chain([machine, group]).flatten().min()
}

/// What `/proc/meminfo` says of the machine.
fn machine_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The least limit of the control groups in `/proc/self/cgroup`, and of those around them: version 2, or the controller
/// `memory` of version 1.
fn group_bytes(cgroup: &str, groups: &Path) -> Option<u64> {
    let limits = cgroup.lines().filter_map(|line| {
        let (_, line) = line.split_once(':')?;
        let (controllers, path) = line.split_once(':')?;
        let (root, names): (_, &[&str]) = match controllers {
            "" => (groups.to_owned(), &["memory.max", "memory.high"]),
            all if all.split(',').any(|controller| controller == "memory") => {
                (groups.join("memory"), &["memory.limit_in_bytes"])
            }
            _ => return None,
        };
        // A process in a container may see a path that leads nowhere, and its own group at the root.
        let around = Path::new(path.trim_start_matches('/')).ancestors();
        let files = around.flat_map(|group| names.iter().map(move |name| group.join(name)));
        files.filter_map(|file| limit_in(&root.join(file))).min()
    });
    limits.min()
}

/// The limit in a file; none for `max`.
fn limit_in(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// What `/proc/self/statm` says of pages of files.
pub(super) fn mapped_file_bytes(statm: &str) -> Option<u64> {
    let pages: u64 = statm.split_ascii_whitespace().nth(2)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_says_how_much_memory_it_has() {
        assert_eq!(machine_bytes("MemTotal:       16 kB\nMemFree: 3 kB\n"), Some(16 << 10));
        assert_eq!(machine_bytes("MemFree: 3 kB\n"), None);
        assert_eq!(machine_bytes("MemTotal: many kB\n"), None);
    }

    #[test]
    fn the_least_limit_of_a_group_and_of_those_around_it_holds() {
        let directory = tempfile::tempdir().unwrap();
        let groups = directory.path();
        let inner = groups.join("outer/inner");
        fs::create_dir_all(&inner).unwrap();
        let limit = || group_bytes("1:cpu:/elsewhere\n0::/outer/inner\n", groups);
        assert_eq!(limit(), None);
        fs::write(inner.join("memory.max"), "max\n").unwrap();
        assert_eq!(limit(), None);
        fs::write(inner.join("memory.max"), "4096\n").unwrap();
        assert_eq!(limit(), Some(4096));
        fs::write(groups.join("outer/memory.max"), "2048\n").unwrap();
        assert_eq!(limit(), Some(2048));
        fs::write(groups.join("outer/memory.high"), "1024\n").unwrap();
        assert_eq!(limit(), Some(1024));

        let old = groups.join("memory/outer");
        fs::create_dir_all(&old).unwrap();
        fs::write(old.join("memory.limit_in_bytes"), "8192\n").unwrap();
        let limit = |text| group_bytes(text, groups);
        assert_eq!(limit("4:memory:/outer/nowhere\n"), Some(8192));
        assert_eq!(limit("4:cpu,memory:/\n5:pids:/outer\n"), None);
        assert_eq!(limit("nonsense"), None);
    }

    #[test]
    fn pages_of_files_are_the_third_number() {
        let page = rustix::param::page_size() as u64;
        assert_eq!(mapped_file_bytes("100 50 7 1 0 9 0\n"), Some(7 * page));
        assert_eq!(mapped_file_bytes("100 50\n"), None);
    }

    #[test]
    fn this_process_may_use_some_memory() {
        let bytes = usable_bytes(Path::new("/proc"), Path::new("/sys/fs/cgroup")).unwrap();
        assert!(bytes > 16 << 20, "{bytes}");
    }
}
