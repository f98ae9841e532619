//! [`VersionLock`]: a lock for writers and a version for readers in one word.

use chimera_pmem::Environment;

use super::atomic::{AtomicU64, Ordering, fence};

/// A lock for writers and a version for readers in one word: odd while a writer holds it, and
/// larger by two after each. It cannot wrap: 2^63 changes take centuries.
#[derive(Debug, Default)]
#[cfg_attr(not(loom), derive(zerocopy::FromZeros))]
#[repr(transparent)]
pub(crate) struct VersionLock(AtomicU64);

impl VersionLock {
    /// Takes the lock, relaxing between attempts. Released when the guard is dropped, also by a
    /// panic.
    #[inline]
    pub(crate) fn lock(&self, environment: &dyn Environment) -> VersionGuard<'_> {
        let mut attempt = 0;
        loop {
            let version = self.0.load(Ordering::Relaxed);
            let free = version.is_multiple_of(2);
            // Acquire: what earlier holders did is seen.
            if free
                && self
                    .0
                    .compare_exchange(version, version + 1, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                // Whoever sees one of the holder's stores sees the version odd.
                fence(Ordering::Release);
                return VersionGuard { lock: self, held: version + 1 };
            }
            environment.relax(attempt);
            attempt = attempt.saturating_add(1);
        }
    }

    /// The version, when no writer holds the lock. What writers did up to this version is seen.
    #[inline(always)]
    pub(crate) fn read_begin(&self) -> Option<u64> {
        let version = self.0.load(Ordering::Acquire);
        version.is_multiple_of(2).then_some(version)
    }

    /// Whether no writer has held the lock since [`read_begin`](Self::read_begin) gave `version`, as
    /// far as anything read in between can tell.
    #[inline(always)]
    pub(crate) fn read_is_valid(&self, version: u64) -> bool {
        // Loads in between may have been relaxed.
        fence(Ordering::Acquire);
        self.0.load(Ordering::Relaxed) == version
    }
}

/// Holds a [`VersionLock`].
#[derive(Debug)]
pub(crate) struct VersionGuard<'a> {
    lock: &'a VersionLock,
    held: u64,
}

impl Drop for VersionGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.lock.0.store(self.held + 1, Ordering::Release);
    }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(test)]
mod tests {
    use chimera_pmem::RealEnvironment;

    use super::*;

    #[test]
    fn a_version_is_valid_until_somebody_holds_the_lock() {
        let environment = RealEnvironment::new();
        let lock = VersionLock::default();
        let version = lock.read_begin().unwrap();
        assert!(lock.read_is_valid(version));
        let guard = lock.lock(&environment);
        assert!(lock.read_begin().is_none());
        assert!(!lock.read_is_valid(version));
        drop(guard);
        assert!(!lock.read_is_valid(version));
        assert!(lock.read_begin().is_some());
    }
}
