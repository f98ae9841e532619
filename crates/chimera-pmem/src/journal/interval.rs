//! Writing back by the clock: what is replayed after a crash is bounded by time, not by the length of the ring alone.
//!
//! A sync that leaves something to write back begins an interval, and when it is over everything is written back. A
//! checkpoint that has written back all that was synced when it began ends the interval sooner: what was appended since begins
//! another one. So an entry is written back an interval after the sync that made it durable at the latest, and after
//! the time of two checkpoints: of the one that was under way, and of its own. A store that nobody writes to does nothing.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::time::Duration;

use super::Journal;

/// How long entries stay in the journal alone, and until when they do.
#[derive(Debug)]
pub(super) struct Interval {
    /// In nanoseconds; the highest number for as long as there is room.
    length_ns: AtomicU64,
    /// When everything is to be written back, in nanoseconds; 0 while nothing is pending that a sync has covered.
    due_ns: AtomicU64,
    /// Everything is to be written back at once, whatever the clock says.
    is_now: AtomicBool,
}

impl Default for Interval {
    fn default() -> Self {
        Self {
            length_ns: AtomicU64::new(u64::MAX),
            due_ns: AtomicU64::new(0),
            is_now: AtomicBool::new(false),
        }
    }
}

impl Interval {
    /// Begins one at `now_ns` where none has; whether it did.
    fn begin(&self, now_ns: impl FnOnce() -> u64) -> bool {
        let length_ns = self.length_ns.load(Ordering::Relaxed);
        if length_ns == u64::MAX || self.due_ns.load(Ordering::SeqCst) != 0 {
            return false;
        }
        let due_ns = now_ns().saturating_add(length_ns).max(1);
        self.due_ns.compare_exchange(0, due_ns, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// How long it lasts from `now_ns` on; `None` where there is none. One that would last longer than any does is over: the
    /// clock went back.
    fn left(&self, now_ns: u64) -> Option<Duration> {
        let due_ns = self.due_ns.load(Ordering::SeqCst);
        let left_ns = due_ns.saturating_sub(now_ns);
        let is_over = left_ns > self.length_ns.load(Ordering::Relaxed);
        (due_ns != 0).then(|| Duration::from_nanos(if is_over { 0 } else { left_ns }))
    }
}

impl Journal {
    /// Everything that is fenced from now on is written back an interval after it was synced. Without one it
    /// stays in the journal for as long as there is room.
    pub fn checkpoint_every(&self, interval: Duration) {
        let length_ns = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
        self.interval.length_ns.store(length_ns, Ordering::Relaxed);
    }

    /// Everything that is fenced now is written back in the background soon, whatever the interval.
    pub fn write_back_soon(&self) {
        self.interval.is_now.store(true, Ordering::SeqCst);
        self.wake_checkpointer();
    }

    /// Whether somebody has asked for that. A checkpoint that begins now answers it.
    pub(super) fn is_due_now(&self) -> bool {
        self.interval.is_now.swap(false, Ordering::SeqCst)
    }

    /// Called when a sync has succeeded.
    pub(super) fn begin_interval(&self) {
        // Either what was appended is seen where an interval ends, or the end of that is seen here.
        fence(Ordering::SeqCst);
        if self.interval.begin(|| self.environment.now_ns()) {
            self.wake_checkpointer();
        }
    }

    /// How long until everything has to be written back; `None` where nothing has.
    pub(super) fn interval_left(&self) -> Option<Duration> {
        self.interval.left(self.environment.now_ns())
    }

    /// Called when all that was synced before a checkpoint is written back: begins anew with what was appended meanwhile.
    pub(super) fn renew_interval(&self) {
        self.interval.due_ns.store(0, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if self.pending_bytes() > 0 {
            self.begin_interval();
        }
    }
}
