//! A process that was forked from the one that opened the store: it has no use of the handle, and does no harm by it.
//!
//! It has a copy of the store's memory, but none of its threads, and shares its files. So every call there is refused,
//! before any lock is taken, because a thread of the parent may hold that for ever; and what is dropped there is
//! forgotten instead, with the files, the mappings and the lock of the store as they are.

use chimera_pmem::environment::Origin;

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
