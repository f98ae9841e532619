//! [`Workspace`]: the directory that benchmarks run in.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chimera_pmem::environment::{File, OpenMode};
use chimera_pmem::{Environment, RealEnvironment};

use super::setup::{MediumChoice, Setup};
use crate::error::{BenchError, Result};

/// Subdirectories that stores are made in beside the directory itself.
const STORES: [&str; 8] =
    ["growing", "populated", "viper", "pmem-index", "unaligned", "sizes", "resting", "reclaiming"];
/// The file of the floors' region, and one to look at the medium with.
const FILES: [&str; 2] = ["floor", "probe"];

/// The directory that benchmarks run in. Removes when dropped what was created in it, and itself if
/// it was not there before; never anything else.
#[derive(Debug)]
pub(crate) struct Workspace {
    path: PathBuf,
    created: bool,
    keep: bool,
}

impl Workspace {
    /// Makes the directory ready: empty, and on the medium asked for.
    ///
    /// # Errors
    /// When there is a store already that may not be removed, or something else; when the medium is
    /// another one.
    pub(crate) fn prepare(setup: &Setup) -> Result<Self> {
        let path = setup.path.clone();
        if setup.is_anonymous() {
            return Ok(Self { path, created: false, keep: true });
        }
        let exists = path.try_exists().map_err(BenchError::io("look at", &path))?;
        if !exists {
            let environment = RealEnvironment::new();
            environment.create_directory(&path).map_err(BenchError::io("create", &path))?;
        }
        // From here on it is removed again if something is wrong.
        let mut workspace = Self { path, created: !exists, keep: true };
        if exists {
            workspace.clear(setup.overwrite)?;
        }
        workspace.keep = false;
        workspace.check_medium(setup.medium)?;
        workspace.keep = setup.keep;
        Ok(workspace)
    }

    /// The directory of the main store.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The directory of one of several stores.
    pub(crate) fn store(&self, name: &'static str) -> PathBuf {
        debug_assert!(STORES.contains(&name), "`{name}` would not be removed");
        self.path.join(name)
    }

    /// Creates the file of the floors' region, `bytes` long.
    pub(crate) fn floor_file(&self, bytes: u64) -> Result<Arc<dyn File>> {
        let path = self.path.join("floor");
        let file = RealEnvironment::new()
            .open(&path, OpenMode::CreateNew)
            .map_err(BenchError::io("create", &path))?;
        file.allocate(0, bytes).map_err(BenchError::io("allocate space in", &path))?;
        Ok(file)
    }

    /// Removes a store that is closed.
    pub(crate) fn remove(&self, store: &Path) -> Result<()> {
        if !store.exists() {
            return Ok(());
        }
        remove_store(store)?;
        if store != self.path {
            fs::remove_dir(store).map_err(BenchError::io("remove", store))?;
        }
        Ok(())
    }

    /// Removes stores that are there, if `overwrite` allows it.
    fn clear(&self, overwrite: bool) -> Result<()> {
        let subdirectories = STORES.map(|name| self.path.join(name));
        let all = std::iter::once(&self.path).chain(&subdirectories);
        let stores: Vec<_> = all.filter(|path| path.join("superblock").exists()).collect();
        match stores.first() {
            Some(store) if !overwrite => return Err(BenchError::Exists { path: (*store).clone() }),
            _ => stores.iter().try_for_each(|store| remove_unused_store(store))?,
        }
        if !stores.is_empty() {
            self.remove_leftovers();
        }
        let mut entries = fs::read_dir(&self.path).map_err(BenchError::io("list", &self.path))?;
        match entries.next() {
            None => Ok(()),
            Some(_) => Err(BenchError::Arguments(format!(
                "`{}` is not empty and not a store: give a --path that is not there yet",
                self.path.display()
            ))),
        }
    }

    fn check_medium(&self, choice: MediumChoice) -> Result<()> {
        let MediumChoice::Expect(expected) = choice else { return Ok(()) };
        let probe = self.path.join("probe");
        let environment = RealEnvironment::new();
        let file = environment
            .open(&probe, OpenMode::CreateNew)
            .map_err(BenchError::io("create", &probe))?;
        let found = file.medium().map_err(BenchError::io("look at", &probe))?;
        fs::remove_file(&probe).map_err(BenchError::io("remove", &probe))?;
        if found == expected {
            Ok(())
        } else {
            Err(BenchError::WrongMedium { path: self.path.clone(), found, expected })
        }
    }

    /// Removes what benchmarks create beside stores in use. What is not there does not matter.
    fn remove_leftovers(&self) {
        for name in STORES {
            let _ = fs::remove_dir(self.path.join(name));
        }
        for name in FILES {
            let _ = fs::remove_file(self.path.join(name));
        }
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        if self.keep {
            return;
        }
        let subdirectories = STORES.map(|name| self.path.join(name));
        for store in std::iter::once(&self.path).chain(&subdirectories) {
            // What is left then is seen by the next run, which says so.
            let _ = remove_store(store);
        }
        self.remove_leftovers();
        if self.created {
            let _ = fs::remove_dir(&self.path);
        }
    }
}

/// Removes a store that no process has open.
fn remove_unused_store(store: &Path) -> Result<()> {
    let path = store.join("lock");
    if path.exists() {
        let lock = RealEnvironment::new()
            .open(&path, OpenMode::ReadWrite)
            .map_err(BenchError::io("open", &path))?;
        if !lock.try_lock(true).map_err(BenchError::io("lock", &path))? {
            return Err(BenchError::InUse { path: store.to_owned() });
        }
    }
    remove_store(store)
}

/// Removes the files of a store and nothing else.
fn remove_store(store: &Path) -> Result<()> {
    let Ok(entries) = fs::read_dir(store) else { return Ok(()) };
    for entry in entries {
        let entry = entry.map_err(BenchError::io("list", store))?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_alone =
            matches!(&*name, "superblock" | "lock" | "journal" | "metrics" | "metrics.new");
        if is_alone || name.starts_with("segment-") {
            let path = entry.path();
            fs::remove_file(&path).map_err(BenchError::io("remove", &path))?;
        }
    }
    Ok(())
}
