//! [`Shared`]: the models, and the recorders of all threads.
//!
//! Each thread that touches an instance has a recorder of its own, found through thread-local storage
//! by the instance's number. When a thread ends, its totals are kept and its recorder goes; when the
//! instance ends, recorders left in other threads go at the latest with those threads.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use super::lock;
use super::recorder::{Models, Recorder, Totals};

/// The part of an instance that its threads share.
#[derive(Debug)]
pub(super) struct Shared {
    id: u64,
    models: Models,
    threads: Mutex<Threads>,
}

#[derive(Debug, Default)]
struct Threads {
    live: Vec<Arc<Mutex<Recorder>>>,
    ended: Totals,
}

/// A thread's way to its recorder of one instance.
struct Handle {
    id: u64,
    shared: Weak<Shared>,
    recorder: Arc<Mutex<Recorder>>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.end_thread(&self.recorder);
        }
    }
}

thread_local! {
    static HANDLES: RefCell<Vec<Handle>> = const { RefCell::new(Vec::new()) };
}

impl Shared {
    pub(super) fn new(models: Models) -> Arc<Self> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self { id, models, threads: Mutex::default() })
    }

    /// Runs `work` with this thread's recorder. `work` must not come back here.
    pub(super) fn record<R>(self: &Arc<Self>, work: impl FnOnce(&mut Recorder, &Models) -> R) -> R {
        let mut work = Some(work);
        let done = HANDLES.try_with(|handles| {
            let mut handles = handles.borrow_mut();
            let at = handles.iter().position(|handle| handle.id == self.id);
            let at = at.unwrap_or_else(|| self.begin_thread(&mut handles));
            let mut recorder = lock(&handles[at].recorder);
            work.take().map(|work| work(&mut recorder, &self.models))
        });
        if let Ok(Some(result)) = done {
            return result;
        }
        // The thread is ending and its storage is gone: a recorder for this call alone.
        let mut recorder = Recorder::new();
        let work = work.take().expect("taken only where it is run");
        let result = work(&mut recorder, &self.models);
        recorder.add_to(&mut lock(&self.threads).ended);
        result
    }

    fn begin_thread(self: &Arc<Self>, handles: &mut Vec<Handle>) -> usize {
        handles.retain(|handle| handle.shared.strong_count() > 0);
        let recorder = Arc::new(Mutex::new(Recorder::new()));
        lock(&self.threads).live.push(Arc::clone(&recorder));
        handles.push(Handle { id: self.id, shared: Arc::downgrade(self), recorder });
        handles.len() - 1
    }

    fn end_thread(&self, recorder: &Arc<Mutex<Recorder>>) {
        let mut threads = lock(&self.threads);
        threads.live.retain(|live| !Arc::ptr_eq(live, recorder));
        lock(recorder).add_to(&mut threads.ended);
    }

    /// Adds up all threads, those that have ended included.
    pub(super) fn totals(&self) -> Totals {
        let threads = lock(&self.threads);
        let mut totals = Totals::default();
        totals.add(&threads.ended);
        threads.live.iter().for_each(|recorder| lock(recorder).add_to(&mut totals));
        totals
    }

    /// Sets every count of every thread to zero.
    pub(super) fn reset(&self) {
        let mut threads = lock(&self.threads);
        threads.ended = Totals::default();
        threads.live.iter().for_each(|recorder| lock(recorder).reset());
    }

    pub(super) fn models(&self) -> &Models {
        &self.models
    }
}
