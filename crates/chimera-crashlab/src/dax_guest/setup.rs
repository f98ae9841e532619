//! [`Tools`]: what is needed on the host, and how to get it.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::archive::Archive;

/// Gets what is needed where there is apt-get; asked for with `--install`.
const INSTALL: &str = include_str!("../../../../scripts/dax-guest-setup");
/// The first process of the guest.
const INIT: &str = include_str!("init");
/// Kernel modules, in the order in which they can be inserted. Those built into the kernel are not
/// there, and not needed.
const MODULES: [&str; 13] = [
    "libnvdimm",
    "nfit",
    "nd_btt",
    "nd_pmem",
    "dax_pmem",
    "device_dax",
    "virtio_ring",
    "virtio",
    "virtio_pci_modern_dev",
    "virtio_pci_legacy_dev",
    "virtio_pci",
    "nd_virtio",
    "virtio_pmem",
];
/// Directories of the guest.
const DIRECTORIES: [&str; 5] = ["proc", "sys", "dev", "mnt", "modules"];
/// Where the programs for the guest are built for.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// What was found on the host.
#[derive(Debug)]
pub(crate) struct Tools {
    pub(crate) qemu: PathBuf,
    pub(crate) mkfs: PathBuf,
    pub(crate) kernel: PathBuf,
    busybox: PathBuf,
    modules: PathBuf,
}

/// The programs that run inside the guest.
#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) guest: PathBuf,
    pub(crate) chimera: PathBuf,
}

impl Tools {
    /// Looks for everything; else says what is missing, one thing for each line.
    ///
    /// # Errors
    /// The names of what is missing.
    pub(crate) fn find(guest_directory: &Path) -> Result<Self, Vec<String>> {
        let mut missing = Vec::new();
        let mut program = |name: &str| {
            on_path(name).unwrap_or_else(|| {
                missing.push(format!("the program {name}"));
                PathBuf::new()
            })
        };
        let (qemu, mkfs) = (program("qemu-system-x86_64"), program("mkfs.ext4"));
        let mut part = |name: &str| {
            let path = guest_directory.join(name);
            if !path.exists() {
                missing.push(format!("`{}`", path.display()));
            }
            path
        };
        let (kernel, busybox, modules) = (part("vmlinuz"), part("busybox"), part("modules"));
        if missing.is_empty() {
            Ok(Self { qemu, mkfs, kernel, busybox, modules })
        } else {
            Err(missing)
        }
    }

    /// The guest's initial file system, without its plan.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub(crate) fn archive(&self, programs: &Programs) -> io::Result<Vec<u8>> {
        let mut archive = Archive::new();
        for directory in DIRECTORIES {
            archive.directory(directory);
        }
        archive.file("init", INIT.as_bytes());
        archive.file("busybox", &read(&self.busybox)?);
        archive.file("guest", &read(&programs.guest)?);
        archive.file("chimera", &read(&programs.chimera)?);
        let mut order = String::new();
        for module in MODULES {
            let file = format!("{module}.ko");
            if let Some(path) = find_file(&self.modules, &file)? {
                archive.file(&format!("modules/{file}"), &read(&path)?);
                order.extend([module, "\n"]);
            }
        }
        archive.file("modules/order", order.as_bytes());
        Ok(archive.finish())
    }
}

/// Where kernel, modules and busybox are kept when nothing else is said.
pub(crate) fn default_directory() -> PathBuf {
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    cache.or_else(home).unwrap_or_else(env::temp_dir).join("chimera-dax-guest")
}

/// Gets what is missing from the distribution's packages.
///
/// # Errors
/// When the script fails.
pub(crate) fn install(guest_directory: &Path) -> Result<(), String> {
    let status = Command::new("bash")
        .args(["-c", INSTALL, "dax-guest-setup"])
        .arg(guest_directory)
        .stdin(Stdio::null())
        // The standard output is for the report.
        .stdout(io::stderr())
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the set-up script ended with {status}")),
        Err(error) => Err(format!("the set-up script cannot be run: {error}")),
    }
}

/// Builds the programs for the guest, linked statically, with cargo.
///
/// # Errors
/// When cargo fails, or is not run in the project's directory.
pub(crate) fn build() -> Result<Programs, String> {
    let example = ["-p", "chimera-crashlab", "--example", "dax_guest"];
    let guest = cargo(&example)?;
    let chimera = cargo(&["-p", "chimera-cli", "--bin", "chimera"])?;
    Ok(Programs { guest, chimera })
}

/// Builds one program and says where it is.
fn cargo(what: &[&str]) -> Result<PathBuf, String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--message-format", "json-render-diagnostics", "--target", TARGET])
        .args(what)
        // With `--target` these are for the program only, not for what is run while building.
        .env("RUSTFLAGS", "-C target-feature=+crt-static -C strip=symbols")
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo cannot be run: {error}"))?;
    let built = String::from_utf8_lossy(&output.stdout);
    let executable = built.lines().rev().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        message.get("executable")?.as_str().map(PathBuf::from)
    });
    executable.filter(|_| output.status.success()).ok_or_else(|| {
        format!(
            "cargo could not build {}: run this in the project's directory, or give programs built \
             elsewhere with --guest-binary and --chimera-binary",
            what.join(" ")
        )
    })
}

/// A program on the path, or where programs for administrators are.
fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let directories = env::split_paths(&path);
    let more = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    directories.chain(more).map(|directory| directory.join(name)).find(|program| program.is_file())
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    fs::read(path)
        .map_err(|error| io::Error::new(error.kind(), format!("`{}`: {error}", path.display())))
}

/// A file of this name anywhere below a directory.
fn find_file(directory: &Path, name: &str) -> io::Result<Option<PathBuf>> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            if let Some(found) = find_file(&entry.path(), name)? {
                return Ok(Some(found));
            }
        } else if entry.file_name().to_string_lossy().replace('-', "_") == name {
            return Ok(Some(entry.path()));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let directory = tempfile::tempdir().expect("a directory");
        let missing = Tools::find(directory.path()).expect_err("an empty directory");
        for part in ["vmlinuz", "busybox", "modules"] {
            assert!(missing.iter().any(|one| one.contains(part)), "{missing:?}");
        }
    }

    #[test]
    fn modules_are_found_whatever_their_hyphens() {
        let directory = tempfile::tempdir().expect("a directory");
        let deep = directory.path().join("a/b");
        fs::create_dir_all(&deep).expect("a directory");
        fs::write(deep.join("virtio-pmem.ko"), "").expect("a file");
        let found = find_file(directory.path(), "virtio_pmem.ko").expect("readable");
        assert_eq!(found, Some(deep.join("virtio-pmem.ko")));
        assert_eq!(find_file(directory.path(), "nfit.ko").expect("readable"), None);
    }
}
