//! Waiting for the end of a sync.

use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::futex;

/// How often a sync has ended, or failed.
///
/// Who waits for the next time takes no lock afterwards. With a condition variable all that are woken take its mutex, one after
/// the other, while the processors are needed for their next operations.
#[derive(Debug, Default)]
pub(super) struct Ends(AtomicU32);

impl Ends {
    pub(super) fn count(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    /// Waits until the count is another one than `count`.
    pub(super) fn wait_for_another(&self, count: u32) {
        while self.count() == count {
            // Fails where it is another one already, or for a signal.
            let _ = futex::wait(&self.0, futex::Flags::PRIVATE, count, None);
        }
    }

    pub(super) fn add_one(&self) {
        self.0.fetch_add(1, Ordering::Release);
    }

    /// Wakes all who wait for a count that there is by now.
    pub(super) fn wake_all(&self) {
        let _ = futex::wake(&self.0, futex::Flags::PRIVATE, i32::MAX.unsigned_abs());
    }
}
