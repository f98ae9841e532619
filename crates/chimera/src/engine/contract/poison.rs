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

    #[cold]
    fn refusal(&self) -> Error {
        match &*lock(&self.reason) {
            Some(reason) => Error::Poisoned { reason: reason.clone() },
            None => Error::ReadOnly,
        }
    }
}
