//! [`VersionLock`]: a lock for writers and a version for readers in one word, by itself or as a
//! [`VersionWord`] among others.

use chimera_pmem::Environment;

use super::atomic::{AtomicU64, Ordering, fence};
use super::until_some;

/// A lock for writers and a version for readers in one word: odd while a writer holds it, and
/// larger by two after each. It cannot wrap: 2^63 changes take centuries.
#[derive(Debug, Default)]
#[cfg_attr(not(loom), derive(zerocopy::FromZeros))]
#[repr(transparent)]
pub(crate) struct VersionLock(AtomicU64);

impl VersionLock {
    #[inline(always)]
    fn word(&self) -> VersionWord<'_> {
        VersionWord(&self.0)
    }

    /// As [`VersionWord::lock`].
    #[inline]
    pub(crate) fn lock(&self, environment: &dyn Environment) -> VersionGuard<'_> {
        self.word().lock(environment)
    }

    /// As [`VersionWord::try_lock`].
    pub(crate) fn try_lock(&self) -> Option<VersionGuard<'_>> {
        self.word().try_lock()
    }

    /// As [`VersionWord::read_begin`].
    #[inline(always)]
    pub(crate) fn read_begin(&self) -> Option<u64> {
        self.word().read_begin()
    }

    /// As [`VersionWord::read_is_valid`].
    #[inline(always)]
    pub(crate) fn read_is_valid(&self, version: u64) -> bool {
        self.word().read_is_valid(version)
    }
}

/// A [`VersionLock`] that lies among other words, as in a node of a tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VersionWord<'a>(&'a AtomicU64);

impl<'a> VersionWord<'a> {
    /// The lock in a word that nothing else changes. Zero is a lock that nobody holds.
    #[inline(always)]
    pub(crate) fn new(word: &'a AtomicU64) -> Self {
        Self(word)
    }

    /// Takes the lock, relaxing between attempts. Released when the guard is dropped, also by a
    /// panic.
    #[inline]
    pub(crate) fn lock(self, environment: &dyn Environment) -> VersionGuard<'a> {
        until_some(environment, || self.try_lock())
    }

    /// Takes the lock unless somebody holds it.
    #[inline(always)]
    pub(crate) fn try_lock(self) -> Option<VersionGuard<'a>> {
        let version = self.0.load(Ordering::Relaxed);
        if version.is_multiple_of(2) { self.upgrade(version) } else { None }
    }

    /// Takes the lock if no writer has held it since [`read_begin`](Self::read_begin) gave `version`: all
    /// that was read in between is right, and stays so until the guard is dropped.
    #[inline(always)]
    pub(crate) fn upgrade(self, version: u64) -> Option<VersionGuard<'a>> {
        // Acquire: what earlier holders did is seen.
        let taken =
            self.0.compare_exchange(version, version + 1, Ordering::Acquire, Ordering::Relaxed);
        taken.ok()?;
        // Whoever sees one of the holder's stores sees the version odd.
        fence(Ordering::Release);
        Some(VersionGuard { word: self.0, held: version + 1 })
    }

    /// The version, when no writer holds the lock. What writers did up to this version is seen.
    #[inline(always)]
    pub(crate) fn read_begin(self) -> Option<u64> {
        let version = self.0.load(Ordering::Acquire);
        version.is_multiple_of(2).then_some(version)
    }

    /// Whether no writer has held the lock since [`read_begin`](Self::read_begin) gave `version`, as
    /// far as anything read in between can tell.
    #[inline(always)]
    pub(crate) fn read_is_valid(self, version: u64) -> bool {
        // Loads in between may have been relaxed.
        fence(Ordering::Acquire);
        self.0.load(Ordering::Relaxed) == version
    }
}

/// Holds a [`VersionLock`].
#[derive(Debug)]
pub(crate) struct VersionGuard<'a> {
    word: &'a AtomicU64,
    held: u64,
}

impl Drop for VersionGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.word.store(self.held + 1, Ordering::Release);
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
    fn a_version_becomes_a_lock_unless_somebody_has_held_it_since() {
        let word = AtomicU64::default();
        let lock = VersionWord::new(&word);
        let version = lock.read_begin().unwrap();
        let guard = lock.upgrade(version).expect("unchanged");
        assert!(lock.try_lock().is_none());
        assert!(lock.upgrade(version).is_none());
        drop(guard);
        assert!(lock.upgrade(version).is_none(), "changed meanwhile");
        assert!(lock.try_lock().is_some());
        assert_eq!(lock.read_begin(), Some(version + 4));
    }
}
