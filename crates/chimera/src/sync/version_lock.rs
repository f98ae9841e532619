//! [`VersionLock`]: a lock for writers and a version for readers in one word.

use chimera_pmem::Environment;

use super::atomic::{AtomicU64, Ordering, fence};

/// The topmost bit: a mark that holders may set and readers see with the version.
const MARK: u64 = 1 << 63;

/// A lock for writers and a version for readers in one word: odd while a writer holds it, and
/// larger by two after each. It cannot wrap: 2^62 changes take centuries. The topmost bit is a mark
/// for whatever the owner of the lock wants readers to know.
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

    /// Whether the mark was set when `version` was read.
    #[inline(always)]
    pub(crate) fn is_marked(version: u64) -> bool {
        version & MARK != 0
    }

    /// Whether the mark is set now.
    #[inline(always)]
    pub(crate) fn has_mark(&self) -> bool {
        Self::is_marked(self.0.load(Ordering::Acquire))
    }
}

/// Holds a [`VersionLock`].
#[derive(Debug)]
pub(crate) struct VersionGuard<'a> {
    lock: &'a VersionLock,
    held: u64,
}

impl VersionGuard<'_> {
    /// Sets or clears the mark, for readers to see once the lock is released.
    pub(crate) fn set_mark(&mut self, mark: bool) {
        self.held = if mark { self.held | MARK } else { self.held & !MARK };
    }
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

    #[test]
    fn the_mark_stays_until_it_is_cleared() {
        let environment = RealEnvironment::new();
        let lock = VersionLock::default();
        lock.lock(&environment).set_mark(true);
        assert!(lock.has_mark());
        drop(lock.lock(&environment));
        assert!(VersionLock::is_marked(lock.read_begin().unwrap()));
        lock.lock(&environment).set_mark(false);
        assert!(!lock.has_mark());
    }
}
