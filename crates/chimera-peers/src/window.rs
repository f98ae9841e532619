//! [`Window`]: syncs a store each 50 ms, where the store has no such mode of its own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use crate::job::WINDOW;
use crate::{BenchError, Result};

/// Makes durable what was written before the call.
pub type Sync = Box<dyn Fn() -> Result<()> + Send + std::marker::Sync>;

/// What the thread and its owner share.
struct Shared {
    /// Something was written since the last sync began.
    is_dirty: AtomicBool,
    is_over: Mutex<bool>,
    over: Condvar,
    /// The first sync that failed.
    failure: Mutex<Option<String>>,
}

/// A thread that syncs a store 50 ms after the last sync, whenever something was written meanwhile. Writers never wait
/// for it: where a sync takes longer than the window, more than a window is not durable yet.
pub struct Window {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What a session says that it wrote.
#[derive(Clone)]
pub struct Written(Arc<Shared>);

impl Written {
    /// Something was written.
    #[inline(always)]
    pub fn note(&self) {
        // A line that stays shared is not written again and again.
        if !self.0.is_dirty.load(Ordering::Relaxed) {
            self.0.is_dirty.store(true, Ordering::Release);
        }
    }
}

impl Window {
    /// Starts the thread.
    pub fn start(sync: Sync) -> Self {
        let shared = Arc::new(Shared {
            is_dirty: AtomicBool::new(false),
            is_over: Mutex::new(false),
            over: Condvar::new(),
            failure: Mutex::new(None),
        });
        let own = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            while !own.wait() {
                if own.is_dirty.swap(false, Ordering::AcqRel)
                    && let Err(error) = sync()
                {
                    let mut failure = own.failure.lock().unwrap_or_else(PoisonError::into_inner);
                    failure.get_or_insert_with(|| error.to_string());
                }
            }
        });
        Self { shared, thread: Some(thread) }
    }

    /// For a session.
    pub fn written(&self) -> Written {
        Written(Arc::clone(&self.shared))
    }

    /// Whether all syncs so far went well.
    ///
    /// # Errors
    /// The first that did not.
    pub fn check(&self, store: &'static str) -> Result<()> {
        let failure = self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner);
        match &*failure {
            None => Ok(()),
            Some(message) => Err(BenchError::Peer { store, message: message.clone() }),
        }
    }
}

impl Shared {
    /// Waits for the next sync; whether there is none any more.
    fn wait(&self) -> bool {
        let is_over = self.is_over.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.over.wait_timeout_while(is_over, WINDOW, |is_over| !*is_over);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        *self.shared.is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.shared.over.notify_one();
        if let Some(thread) = self.thread.take() {
            // Its panic was printed.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::time::{Duration, Instant};

    use super::*;

    fn wait_until(what: impl Fn() -> bool) {
        let begun = Instant::now();
        while !what() {
            assert!(begun.elapsed() < Duration::from_secs(60), "nothing happens");
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn what_is_written_is_synced_once() {
        let syncs = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&syncs);
        let window = Window::start(Box::new(move || {
            counted.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }));
        let written = window.written();
        written.note();
        wait_until(|| syncs.load(Ordering::SeqCst) == 1);
        thread::sleep(3 * WINDOW);
        assert_eq!(syncs.load(Ordering::SeqCst), 1, "nothing was written since");
        written.note();
        wait_until(|| syncs.load(Ordering::SeqCst) == 2);
        window.check("test").expect("no sync failed");
    }

    #[test]
    fn a_sync_that_fails_is_reported_later() {
        let fail = || Err(BenchError::Arguments("the disk is gone".to_owned()));
        let window = Window::start(Box::new(fail));
        window.written().note();
        wait_until(|| window.check("test").is_err());
        let error = window.check("test").expect_err("it failed");
        assert!(error.to_string().contains("the disk is gone"), "{error}");
    }
}
