//! A process that was forked from the one that opened the store: it has no use of the handle, and does no harm by it.
//!
//! It has a copy of the store's memory, but none of its threads, and shares its files. So every call there is refused,
//! before any lock is taken, because a thread of the parent may hold that for ever; and what is dropped there is
//! forgotten instead, with the files, the mappings and the lock of the store as they are.

use chimera_pmem::Pmem;
use chimera_pmem::environment::Origin;

use super::{Db, Session};
use crate::types::error::{Error, Result};

/// Refuses a process other than the one that opened the store.
///
/// # Errors
/// [`Error::Forked`].
#[inline(always)]
pub(super) fn refuse(origin: &Origin) -> Result<()> {
    if origin.is_here() { Ok(()) } else { Err(error(origin)) }
}

#[cold]
#[inline(never)]
fn error(origin: &Origin) -> Error {
    Error::Forked { process: origin.process_id() }
}

impl<P: Pmem> Db<P> {
    /// As [`session`](Self::session), with an error in a process that was forked from the one that opened the store.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn try_session(&self) -> Result<Session<P>> {
        self.refuse_forked()?;
        Ok(Session::new(self.lease.clone(), self.inner.new_client()))
    }

    /// Refuses a process other than the one that opened the store.
    pub(crate) fn refuse_forked(&self) -> Result<()> {
        refuse(self.inner.metrics.origin())
    }

    /// As [`refuse_forked`](Self::refuse_forked), for calls that return no error.
    ///
    /// # Panics
    /// In such a process.
    #[track_caller]
    pub(super) fn assert_not_forked(&self) {
        if let Err(error) = self.refuse_forked() {
            panic!("{error}");
        }
    }
}
