//! [`Punched`]: files that were punched and not synced since.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::environment::File;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Punched {
    files: Mutex<Vec<Arc<dyn File>>>,
    syncing: Mutex<()>,
}

impl Punched {
    /// A file was just punched, or may have been.
    pub(super) fn add(&self, file: &Arc<dyn File>) {
        let mut files = lock(&self.files);
        if !files.iter().any(|other| Arc::ptr_eq(other, file)) {
            files.push(Arc::clone(file));
        }
    }

    /// Syncs all of them. Whoever comes meanwhile waits: what it has punched may be in one that is being synced. Where one
    /// cannot be synced, all stay.
    pub(super) fn sync(&self, sync: impl Fn(&dyn File) -> io::Result<()>) -> io::Result<()> {
        let _one = lock(&self.syncing);
        let files = std::mem::take(&mut *lock(&self.files));
        let synced = files.iter().try_for_each(|file| sync(&**file));
        synced.inspect_err(|_| files.iter().for_each(|file| self.add(file)))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::environment::AnonymousFile;

    fn file() -> Arc<dyn File> {
        Arc::new(AnonymousFile::new(4096))
    }

    #[test]
    fn each_file_is_synced_once_and_again_after_a_failure() {
        let punched = Punched::default();
        let (first, second) = (file(), file());
        for file in [&first, &second, &first] {
            punched.add(file);
        }
        let count = |fails: bool| {
            let mut synced = Mutex::new(0);
            let done = punched.sync(|_| {
                *synced.lock().unwrap() += 1;
                if fails { Err(io::ErrorKind::Other.into()) } else { Ok(()) }
            });
            (*synced.get_mut().unwrap(), done.is_ok())
        };
        assert_eq!(count(true), (1, false));
        assert_eq!(count(false), (2, true));
        assert_eq!(count(false), (0, true));
    }

    /// Its hole may be in a file that is being synced.
    #[test]
    fn whoever_comes_during_a_sync_waits_for_it() {
        let punched = Punched::default();
        punched.add(&file());
        let [has_begun, is_over] = [false; 2].map(AtomicBool::new);
        std::thread::scope(|scope| {
            let sync = |_: &dyn File| {
                scope.spawn(|| {
                    has_begun.store(true, Ordering::SeqCst);
                    punched.sync(|_| Ok(())).unwrap();
                    is_over.store(true, Ordering::SeqCst);
                });
                while !has_begun.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
                (0..1000).for_each(|_| std::thread::yield_now());
                assert!(!is_over.load(Ordering::SeqCst), "nothing is durable yet");
                Ok(())
            };
            punched.sync(sync).unwrap();
        });
        assert!(is_over.into_inner());
    }
}
