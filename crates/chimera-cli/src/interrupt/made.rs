//! [`Made`]: what a command has made, and nobody else, and how it is removed.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// How often a store is removed until nothing of it is made any more.
const ROUNDS: usize = 50;
const PAUSE: Duration = Duration::from_millis(10);

/// What a command has made.
#[derive(Debug)]
pub(crate) enum Made {
    /// The file of an export.
    Export(PathBuf),
    /// The store of a backup, in a directory.
    Backup {
        directory: PathBuf,
        /// The directory and those above it that were not there before, innermost first.
        directories: Vec<PathBuf>,
    },
}

impl Made {
    /// A backup that is about to be made in `directory`; none where something is there already, or a device.
    pub(crate) fn backup(directory: &Path) -> Option<Self> {
        let is_free = match fs::read_dir(directory) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        };
        let is_absent = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
        let directories = directory.ancestors().take_while(is_absent).map(Path::to_owned).collect();
        is_free.then(|| Self::Backup { directory: directory.to_owned(), directories })
    }

    /// Removes it, and says how it stands then.
    pub(super) fn remove(&self) -> String {
        match self {
            Self::Export(file) => {
                let path = file.display();
                match fs::remove_file(file) {
                    Ok(()) => format!(
                        "`{path}` was not complete and was removed; an export with --resume keeps what it has"
                    ),
                    Err(error) => {
                        format!("`{path}` is not complete and cannot be removed: {error}")
                    }
                }
            }
            Self::Backup { directory, directories } => {
                let path = directory.display();
                if remove_store(directory, directories) {
                    return format!(
                        "the backup in `{path}` was not complete and was removed; the store is as it was"
                    );
                }
                format!(
                    "`{path}` has parts of a backup that is not complete: remove it, then make it again"
                )
            }
        }
    }
}

/// Whether nothing is left of a store in `directory` and of the `directories` made for it. Threads of the
/// store may be about to make a file.
fn remove_store(directory: &Path, directories: &[PathBuf]) -> bool {
    for _ in 0..ROUNDS {
        let Ok(entries) = fs::read_dir(directory) else { break };
        let names = entries.flatten().filter(|entry| is_of_a_store(&entry.file_name()));
        for entry in names {
            let _ = fs::remove_file(entry.path());
        }
        for directory in directories {
            let _ = fs::remove_dir(directory);
        }
        if directories.is_empty() && is_empty(directory) {
            return true;
        }
        if !directory.exists() {
            break;
        }
        thread::sleep(PAUSE);
    }
    !directory.exists() || is_empty(directory)
}

fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_none())
}

/// Whether a store has a file of this name.
fn is_of_a_store(name: &std::ffi::OsStr) -> bool {
    let is = |known: &&str| name == *known;
    let known = ["superblock", "lock", "journal", "metrics", "metrics.new"];
    known.iter().any(is) || name.as_encoded_bytes().starts_with(b"segment-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_is_removed_with_the_directories_made_for_it_and_nothing_else() {
        let place = tempfile::tempdir().expect("a directory");
        let directory = place.path().join("a/b");
        let made = Made::backup(&directory).expect("nothing is there");
        fs::create_dir_all(&directory).expect("made");
        for name in ["superblock", "lock", "segment-000000"] {
            fs::write(directory.join(name), "x").expect("room");
        }
        assert!(made.remove().contains("was removed"));
        assert!(!place.path().join("a").exists() && place.path().exists());

        fs::create_dir(place.path().join("empty")).expect("made");
        let directory = place.path().join("empty");
        let made = Made::backup(&directory).expect("it is empty");
        fs::write(directory.join("segment-000000"), "x").expect("room");
        assert!(made.remove().contains("was removed"));
        assert!(is_empty(&directory));

        let made = Made::backup(&directory).expect("it is empty");
        fs::write(directory.join("letter"), "x").expect("room");
        assert!(made.remove().contains("has parts of a backup"));
        assert!(directory.join("letter").exists());
        assert!(Made::backup(&directory).is_none());
        assert!(Made::backup(&directory.join("letter")).is_none());
    }
}
