//! [`Poison`]: whether writes are refused, and why.

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, lock};
use crate::types::error::{Error, Result};

/// Whether writes are refused: the store is open for reading only, or an earlier failure left it in
/// doubt.
#[derive(Debug, Default)]
pub(crate) struct Poison {
    refuses: AtomicBool,
    /// The failure; none for a store open for reading only.
    reason: Mutex<Option<String>>,
}

impl Poison {
    pub(crate) fn new(read_only: bool) -> Self {
        Self { refuses: AtomicBool::new(read_only), reason: Mutex::new(None) }
    }

    /// Refuses writes from now on. The first reason stays.
    #[cold]
    pub(crate) fn poison(&self, reason: &str) {
        log::error!("the store refuses writes from now on: {reason}");
        lock(&self.reason).get_or_insert_with(|| reason.to_owned());
        self.refuses.store(true, Ordering::Release);
    }

    /// # Errors
    /// `ReadOnly` or `Poisoned`.
    #[inline(always)]
    pub(crate) fn check(&self) -> Result<()> {
        if self.refuses.load(Ordering::Acquire) { Err(self.refusal()) } else { Ok(()) }
    }

    /// The failure, if there was one.
    pub(crate) fn failure(&self) -> Option<String> {
        lock(&self.reason).clone()
    }

    /// Poisons the store if the thread begins to panic before the result is dropped. One that is unwinding already may
    /// write: a write from a destructor is a write like any other.
    #[inline(always)]
    pub(crate) fn on_panic(&self) -> PoisonOnPanic<'_> {
        PoisonOnPanic { poison: self, was_panicking: std::thread::panicking() }
    }

    #[cold]
    fn refusal(&self) -> Error {
        match &*lock(&self.reason) {
            Some(reason) => Error::Poisoned { reason: reason.clone() },
            None => Error::ReadOnly,
        }
    }
}

/// See [`Poison::on_panic`]. Of a guard it is the first field: the store is poisoned before the lock is let go.
#[derive(Debug)]
pub(crate) struct PoisonOnPanic<'a> {
    poison: &'a Poison,
    was_panicking: bool,
}

impl Drop for PoisonOnPanic<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if std::thread::panicking() && !self.was_panicking {
            self.poison.poison("a writer panicked");
        }
    }
}
