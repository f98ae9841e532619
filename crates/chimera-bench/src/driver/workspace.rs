//! [`Workspace`]: the directory that benchmarks run in.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chimera_pmem::environment::{File, OpenMode};
use chimera_pmem::{Environment, RealEnvironment};

use super::marked::{self, Contents};
use super::setup::{MediumChoice, Setup};
use crate::error::{BenchError, Result};
use crate::interrupt::{self, Registered};

/// The directory that benchmarks run in. Removes when dropped what was created in it, and itself if
/// it was not there before; never anything else.
#[derive(Debug)]
pub(crate) struct Workspace {
    path: PathBuf,
    created: bool,
    keep: bool,
    /// The marker of the directory, locked; none where stores lie in anonymous memory.
    marker: Option<Arc<dyn File>>,
    registered: Option<Registered>,
}

impl Workspace {
    /// Makes the directory ready: empty, marked, and on the medium asked for.
    ///
    /// # Errors
    /// When there is something in it that may not be removed; when the medium is another one.
    pub(crate) fn prepare(setup: &Setup) -> Result<Self> {
        let path = setup.path.clone();
        if setup.is_anonymous() {
            return Ok(Self { path, created: false, keep: true, marker: None, registered: None });
        }
        let exists = path.try_exists().map_err(BenchError::io("look at", &path))?;
        if exists {
            clear(&path, setup.overwrite)?;
        }
        let (removed, created) = (path.clone(), !exists);
        let remove: interrupt::Remove = Box::new(move || remove_all(&removed, created).is_ok());
        let remove = (!setup.keep).then_some(remove);
        let (marker, registered) = interrupt::make(path.clone(), remove, || {
            if created {
                let environment = RealEnvironment::new();
                environment.create_directory(&path).map_err(BenchError::io("create", &path))?;
            }
            marked::mark(&path)
        })?;
        let (marker, registered) = (Some(marker), Some(registered));
        // From here on it is removed again if something is wrong.
        let mut workspace = Self { path, created, keep: false, marker, registered };
        workspace.check_medium(setup.medium)?;
        workspace.keep = setup.keep;
        Ok(workspace)
    }

    /// The directory of the only store.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The directory of one of several stores, made and marked.
    pub(crate) fn store(&self, name: &str) -> Result<PathBuf> {
        let path = self.path.join(name);
        if self.marker.is_some() {
            let environment = RealEnvironment::new();
            environment.create_directory(&path).map_err(BenchError::io("create", &path))?;
            marked::mark(&path)?;
        }
        Ok(path)
    }

    /// Creates the file of the floors' region, `bytes` long.
    pub(crate) fn floor_file(&self, bytes: u64) -> Result<Arc<dyn File>> {
        let path = self.path.join(marked::FLOOR);
        let file = RealEnvironment::new()
            .open(&path, OpenMode::CreateNew)
            .map_err(BenchError::io("create", &path))?;
        file.allocate(0, bytes).map_err(BenchError::io("allocate space in", &path))?;
        Ok(file)
    }

    /// Removes a store that is closed.
    pub(crate) fn remove(&self, store: &Path) -> Result<()> {
        if self.marker.is_none() {
            Ok(())
        } else if store == self.path {
            marked::remove_store(store)
        } else {
            marked::remove_directory(store)
        }
    }

    fn check_medium(&self, choice: MediumChoice) -> Result<()> {
        let MediumChoice::Expect(expected) = choice else { return Ok(()) };
        let probe = self.path.join(marked::PROBE);
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
}

impl Drop for Workspace {
    fn drop(&mut self) {
        let end = || {
            if !self.keep {
                // What is left after an error, the next run finds and says.
                let _ = remove_all(&self.path, self.created);
            }
        };
        match &self.registered {
            Some(registered) => interrupt::finish(registered, end),
            None => end(),
        }
    }
}

/// Removes from a directory everything that was made in it, and itself if it was created. Once more, it does nothing.
fn remove_all(path: &Path, created: bool) -> Result<()> {
    if !path.try_exists().map_err(BenchError::io("look at", path))? {
        return Ok(());
    }
    for store in Contents::of(path)?.marked {
        marked::remove_directory(&store)?;
    }
    marked::remove_files(path)?;
    if marked::is_marked(path) {
        marked::unmark(path)?;
    }
    if created {
        fs::remove_dir(path).map_err(BenchError::io("remove", path))?;
    }
    Ok(())
}

/// Empties a directory, if a benchmark made what is in it and `overwrite` allows it.
fn clear(path: &Path, overwrite: bool) -> Result<()> {
    let contents = Contents::of(path)?;
    if contents.is_empty() {
        return Ok(());
    }
    let foreign = if marked::is_marked(path) { contents.foreign()? } else { Some(path.to_owned()) };
    if let Some(foreign) = foreign {
        return Err(BenchError::Foreign { path: path.to_owned(), foreign });
    }
    if !overwrite {
        return Err(BenchError::Exists { path: path.to_owned() });
    }
    // In use by a benchmark, or by anybody who opened what it kept.
    let _marker = marked::mark(path)?;
    let all = std::iter::once(path).chain(contents.marked.iter().map(PathBuf::as_path));
    let _locks = all.map(marked::lock_store).collect::<Result<Vec<_>>>()?;
    contents.marked.iter().try_for_each(|store| marked::remove_directory(store))?;
    marked::remove_files(path)
}
