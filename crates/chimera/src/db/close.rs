//! Closing a store: explicitly, with the handle given back when it cannot be closed; or with its last handle.

use std::fmt;
use std::mem::{self, ManuallyDrop};
use std::sync::Arc;

use chimera_pmem::environment::Task;
use chimera_pmem::{Hardware, Pmem};

use super::{Db, Inner};
use crate::sync::lock;
use crate::types::error::{Error, Result};

/// Held by every handle and session: the last one closes the store. Background tasks do not hold it, so that
/// none of them is ever the last.
pub(crate) struct Lease<P: Pmem> {
    inner: Arc<Inner<P>>,
    /// Publishes metrics.
    pub(super) publisher: Option<Box<dyn Task>>,
    is_closed: bool,
}

impl<P: Pmem> Lease<P> {
    pub(super) fn new(inner: Arc<Inner<P>>) -> Self {
        Self { inner, publisher: None, is_closed: false }
    }

    /// Ends everything in order, once: by `close` or by the drop of the last handle.
    fn close(&mut self) -> Result<()> {
        if mem::replace(&mut self.is_closed, true) {
            return Ok(());
        }
        let inner = &self.inner;
        let tasks = [&inner.rebuilding, &inner.reclaim, &inner.scrubbing];
        tasks.into_iter().filter_map(|task| task.get()).for_each(|task| task.stop());
        inner.engine.end_reclaim();
        if let Some(order) = inner.engine.core().changes.order() {
            order.stop_rebuild();
            inner.ordering.get().into_iter().flatten().for_each(|task| task.stop());
            order.stop();
        }
        if let Some(publisher) = self.publisher.take() {
            publisher.stop();
            inner.withdraw();
        }
        let clients = mem::take(&mut *lock(&inner.clients));
        for mut client in clients {
            client.end();
        }
        // A store that refuses writes is not closed in order, and nobody has looked yet.
        inner.engine.close().and_then(|()| inner.engine.core().pool.check_in_place())
    }
}

impl<P: Pmem> Drop for Lease<P> {
    fn drop(&mut self) {
        if !self.inner.metrics.origin().is_here() {
            // Forked: nothing is closed, unmapped, unlocked or waited for. So the rest is never dropped.
            let _kept = ManuallyDrop::new((self.publisher.take(), self.inner.clone()));
            return;
        }
        match self.close() {
            Ok(()) => {}
            Err(error @ Error::AfterClosing { .. }) => log::warn!("{error}"),
            Err(error) => log::error!("the store was not closed in order: {error}"),
        }
    }
}

/// Why a store was not closed in order, or what failed after it was. Becomes the [`Error`] by `?`.
#[must_use]
pub struct CloseError<P: Pmem = Hardware> {
    error: Error,
    db: Option<Box<Db<P>>>,
}

impl<P: Pmem> CloseError<P> {
    /// What was wrong.
    pub fn error(&self) -> &Error {
        &self.error
    }

    /// The handle, where the store is still open because sessions or other handles are alive.
    pub fn into_db(self) -> Option<Db<P>> {
        self.db.map(|db| *db)
    }
}

impl<P: Pmem> From<CloseError<P>> for Error {
    fn from(failed: CloseError<P>) -> Self {
        failed.error
    }
}

impl<P: Pmem> fmt::Display for CloseError<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<P: Pmem> fmt::Debug for CloseError<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.error, f)
    }
}

impl<P: Pmem> std::error::Error for CloseError<P> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}

impl<P: Pmem> Db<P> {
    /// Closes the store in order.
    ///
    /// # Errors
    /// [`Error::StillInUse`] when other clones or sessions are alive: the store then stays open, and the
    /// handle is [given back](CloseError::into_db). So it is with [`Error::Forked`]. When the medium fails, or a sync failed
    /// earlier, and [`Error::Removed`] when a file of the store was removed or replaced since it was opened: the store is
    /// no longer open then, and the next opening recovers it. [`Error::AfterClosing`] when the store is closed in order, with
    /// everything durable, and a step after that failed.
    pub fn close(self) -> Result<(), CloseError<P>> {
        if let Err(error) = self.refuse_forked() {
            return Err(CloseError { error, db: Some(Box::new(self)) });
        }
        let Self { inner, lease } = self;
        match Arc::try_unwrap(lease) {
            Ok(mut lease) => {
                drop(inner);
                lease.close().map_err(|error| CloseError { error, db: None })
            }
            Err(lease) => {
                let error = Error::StillInUse { others: Arc::strong_count(&lease) - 1 };
                Err(CloseError { error, db: Some(Box::new(Self { inner, lease })) })
            }
        }
    }
}
