//! What each session has appended and not made durable yet, so that anybody can.
//!
//! A session alone moves its tail. Flushing what is pending, by whomever, and turning to another run happen under the
//! session's lock, so both offsets always lie in one run there. Without batches nothing is ever pending.

use std::sync::Arc;

use chimera_pmem::Pmem;

use super::{StorageLog, sites};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, lock, lock_relaxing};

/// What a session has pending: the bytes between two offsets.
#[derive(Debug, Default)]
pub(super) struct Pending {
    durable: AtomicU64,
    tail: AtomicU64,
    /// Held while `durable` changes, and while both turn to another run.
    flushing: Mutex<()>,
}

impl Pending {
    /// The session has appended up to `tail`. Returns how many bytes are pending.
    #[inline(always)]
    pub(super) fn advance(&self, tail: u64) -> u64 {
        self.tail.store(tail, Ordering::Release);
        tail.saturating_sub(self.durable.load(Ordering::Relaxed))
    }
}

/// The sessions that append.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    all: Mutex<Vec<Option<Arc<Pending>>>>,
}

impl Sessions {
    /// Adds a session; its number.
    pub(super) fn add(&self, pending: Arc<Pending>) -> u32 {
        let mut all = lock(&self.all);
        let number = all.iter().position(Option::is_none).unwrap_or_else(|| {
            all.push(None);
            all.len() - 1
        });
        all[number] = Some(pending);
        number as u32
    }

    pub(super) fn remove(&self, number: u32) {
        if let Some(session) = lock(&self.all).get_mut(number as usize) {
            *session = None;
        }
    }

    fn get(&self, number: u32) -> Option<Arc<Pending>> {
        lock(&self.all).get(number as usize)?.clone()
    }

    fn all(&self) -> Vec<Arc<Pending>> {
        lock(&self.all).iter().flatten().cloned().collect()
    }
}

impl<P: Pmem> StorageLog<P> {
    /// Makes what a session has appended so far durable. From any thread; nothing is left to do where the session has
    /// ended.
    ///
    /// # Durability
    /// Durable on return.
    ///
    /// # Cost
    /// The lines that are pending, 1 fence; nothing without batches.
    pub(crate) fn sync_session(&self, number: Option<u32>) {
        let number = number.filter(|_| self.batch_bytes > 0);
        if let Some(session) = number.and_then(|number| self.sessions.get(number)) {
            self.flush_pending(&session);
        }
    }

    /// Makes all that was appended so far durable.
    ///
    /// # Durability
    /// Durable on return.
    ///
    /// # Cost
    /// As [`sync_session`](Self::sync_session), for each session.
    pub(crate) fn sync_all(&self) {
        if self.batch_bytes > 0 {
            self.sessions.all().iter().for_each(|session| self.flush_pending(session));
        }
    }

    /// Flushes what is pending.
    pub(super) fn flush_pending(&self, session: &Pending) {
        let _flushing = lock_relaxing(&session.flushing, &*self.pool.environment);
        self.flush_locked(session);
    }

    /// The session appends from `tail` on, in a run where nothing is pending.
    pub(super) fn turn_to(&self, session: &Pending, tail: u64) {
        let _flushing = lock_relaxing(&session.flushing, &*self.pool.environment);
        self.flush_locked(session);
        session.durable.store(tail, Ordering::Release);
        session.tail.store(tail, Ordering::Release);
    }

    fn flush_locked(&self, session: &Pending) {
        let durable = session.durable.load(Ordering::Relaxed);
        let tail = session.tail.load(Ordering::Acquire);
        if durable < tail {
            self.pool.pmem.flush(self.pool.extent(durable, tail - durable), sites::BATCH);
            self.pool.pmem.fence(sites::BATCH);
            session.durable.store(tail, Ordering::Release);
        }
    }
}
