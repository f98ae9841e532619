//! The facade of locks and atomics: tests can replace it to explore schedules.

mod version_lock;

use std::sync::{Mutex, MutexGuard};

pub(crate) use version_lock::{VersionGuard, VersionLock};

/// Locks a mutex whose data stays meaningful when another holder has panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
