//! Models of a page: writers, one that gives the page back, and one that appends an entry, in every order.

use std::sync::Arc;

use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use loom::thread;

/// What the modelled code is made of.
mod atomic {
    pub(super) use loom::sync::atomic::{AtomicU32, Ordering};
}

/// The code itself, once more, with the atomics of the model.
#[path = "page_state.rs"]
mod page_state;

use page_state::{
    begin, end, give, hold_shared, is_shared, keep, share, try_hold, try_hold_clean, unshare,
};

/// A page of one word, its file, and the last entry that names it.
struct Page {
    state: AtomicU32,
    /// What the private copy has.
    copy: AtomicU64,
    /// What the file has; as long as the page is clean, readers see this.
    file: AtomicU64,
    appended: AtomicU32,
    private: AtomicU64,
}

impl Page {
    /// A page that was stored to, and whose content is in the file.
    fn new() -> Arc<Self> {
        let state = AtomicU32::new(0);
        begin(&state, || ());
        end(&state);
        Arc::new(Self {
            state,
            copy: AtomicU64::new(1),
            file: AtomicU64::new(1),
            appended: AtomicU32::new(0),
            private: AtomicU64::new(1),
        })
    }

    fn store(&self, value: u64) {
        if begin(&self.state, || thread::yield_now()) {
            // The kernel copies the page of the file.
            self.copy.store(self.file.load(Ordering::Relaxed), Ordering::Relaxed);
            self.private.fetch_add(1, Ordering::Relaxed);
        }
        self.copy.store(value, Ordering::Relaxed);
        end(&self.state);
    }

    /// As `Pages::hold` and `Pages::let_go`. Whether the page was given back.
    fn give_back(&self) -> bool {
        if !try_hold(&self.state) {
            return false;
        }
        fence(Ordering::SeqCst);
        let is_pending = self.appended.load(Ordering::Relaxed) > 0;
        let is_same = self.copy.load(Ordering::Relaxed) == self.file.load(Ordering::Relaxed);
        if is_pending || !is_same {
            keep(&self.state);
            return false;
        }
        // The copy is gone.
        self.copy.store(u64::MAX, Ordering::Relaxed);
        self.private.fetch_sub(1, Ordering::Relaxed);
        give(&self.state);
        true
    }

    /// As `Journal::write_entry`: what the entry says of the page.
    fn append(&self) -> u64 {
        self.appended.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let copy = self.copy.load(Ordering::Relaxed);
        if copy == u64::MAX { self.file.load(Ordering::Relaxed) } else { copy }
    }

    /// What readers see when all is done.
    fn seen(&self) -> u64 {
        let is_private = self.private.load(Ordering::Relaxed) == 1;
        if is_private {
            self.copy.load(Ordering::Relaxed)
        } else {
            self.file.load(Ordering::Relaxed)
        }
    }
}

fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

#[test]
fn loom_no_store_is_lost_when_its_page_is_given_back() {
    check(|| {
        let page = Page::new();
        let writer = thread::spawn({
            let page = page.clone();
            move || page.store(2)
        });
        page.give_back();
        writer.join().expect("no panic");
        assert_eq!(page.seen(), 2, "a store is lost");
        assert_eq!(page.private.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn loom_a_page_that_two_writers_begin_with_is_counted_once() {
    check(|| {
        let page = Page::new();
        assert!(page.give_back());
        let writer = thread::spawn({
            let page = page.clone();
            move || page.store(2)
        });
        page.store(3);
        writer.join().expect("no panic");
        assert_eq!(page.private.load(Ordering::Relaxed), 1);
    });
}

/// The entry says something old of the page while a writer restores what the file has: if the page is given back, the entry
/// has what readers see, or the page has had a later store.
#[test]
fn loom_no_pending_entry_changes_a_page_that_was_given_back() {
    check(|| {
        let page = Page::new();
        page.store(2);
        let writer = thread::spawn({
            let page = page.clone();
            move || page.store(1)
        });
        let appender = thread::spawn({
            let page = page.clone();
            move || page.append()
        });
        let is_given = page.give_back();
        writer.join().expect("no panic");
        let entry = appender.join().expect("no panic");
        if is_given && page.private.load(Ordering::Relaxed) == 0 {
            assert_eq!(entry, page.seen(), "a checkpoint would change what readers see");
        }
    });
}

/// As `Journal::write_new` in a shared place, beside a thread that flushes a word of what was there: either its entry is seen,
/// and the page passes the journal, or the entry has what is new. Else a checkpoint would write older content over it.
#[test]
fn loom_lines_go_to_their_place_unless_an_older_entry_has_other_content() {
    check(|| {
        let page = Page::new();
        let stray = thread::spawn({
            let page = page.clone();
            move || page.append()
        });
        page.store(2);
        fence(Ordering::SeqCst);
        let is_named = page.appended.load(Ordering::Relaxed) > 0;
        let said = stray.join().expect("no panic");
        assert!(is_named || said == 2, "the entry has {said}, and nobody saw it");
    });
}

/// As `Pages::unshare`, beside a writer that fences: what it has stored is in the file when that is synced, or in an entry.
#[test]
fn loom_a_store_beside_a_sync_is_in_the_file_or_in_an_entry() {
    check(|| {
        let page = Page::new();
        // As `Pages::share`: only a clean page is shared.
        assert!(page.give_back());
        assert!(try_hold_clean(&page.state));
        share(&page.state);
        let is_mapped = Arc::new(AtomicU32::new(1));
        let writer = thread::spawn({
            let (page, is_mapped) = (page.clone(), is_mapped.clone());
            move || {
                let is_first = begin(&page.state, || thread::yield_now());
                let goes_to_file = is_mapped.load(Ordering::Relaxed) == 1;
                let word = if goes_to_file { &page.file } else { &page.copy };
                word.store(2, Ordering::Relaxed);
                end(&page.state);
                assert!(is_first != goes_to_file, "a page with stores of its own is counted");
                !is_shared(&page.state)
            }
        });
        hold_shared(&page.state, || thread::yield_now());
        is_mapped.store(0, Ordering::Relaxed);
        unshare(&page.state);
        let synced = page.file.load(Ordering::Relaxed);
        let is_in_entry = writer.join().expect("no panic");
        assert!(is_in_entry || synced == 2, "a fence is lost");
    });
}
