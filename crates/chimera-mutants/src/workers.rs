//! Threads that share work, with progress on the terminal.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fs, io};

use indicatif::{ProgressBar, ProgressStyle};

/// How work is shared.
pub(crate) struct Workers {
    pub(crate) threads: usize,
    /// Where each thread has a directory for temporary files, empty for each piece of work.
    pub(crate) scratch: PathBuf,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Workers {
    /// Does something for each of `all`, until one fails.
    pub(crate) fn each<T: Sync>(
        &self,
        name: &'static str,
        all: &[T],
        work: impl Fn(&T, &Path) -> io::Result<()> + Sync,
    ) -> io::Result<()> {
        let bar = ProgressBar::new(all.len() as u64);
        if let Ok(style) =
            ProgressStyle::with_template("{msg} {pos}/{len} {bar:40} {elapsed} of {duration}")
        {
            bar.set_style(style);
        }
        bar.set_message(name);
        let next = AtomicUsize::new(0);
        let failed = Mutex::new(None);
        std::thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                scope.spawn(|| {
                    while let Some(one) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let at = self.scratch.join(format!("{:?}", std::thread::current().id()));
                        let done = empty(&at).and_then(|at| work(one, &at));
                        bar.inc(1);
                        if let Err(error) = done {
                            lock(&failed).get_or_insert(error);
                            next.store(all.len(), Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        bar.finish_and_clear();
        let _ = fs::remove_dir_all(&self.scratch);
        failed.into_inner().unwrap_or_default().map_or(Ok(()), Err)
    }
}

/// A directory with nothing in it: tests that are killed leave files.
pub(crate) fn empty(path: &Path) -> io::Result<PathBuf> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::create_dir_all(path)?;
    Ok(path.to_owned())
}
