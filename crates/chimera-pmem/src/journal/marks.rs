//! The lines that each thread has flushed since its last fence.

use std::cell::RefCell;
use std::sync::Weak;

use super::Journal;
use super::entry::{Direct, Run};

/// Lines that a thread has flushed and that are new in their place.
#[derive(Debug, Default)]
pub(super) struct NewRuns {
    pub(super) flushed: Vec<Run>,
    /// Others may have flushed lines there since the place was emptied.
    pub(super) is_shared: bool,
    /// Those that lie in their file since the thread fenced.
    pub(super) written: Vec<Direct>,
    pub(super) content: Vec<u8>,
    pub(super) spare: Vec<Run>,
}

impl NewRuns {
    pub(super) fn is_empty(&self) -> bool {
        self.flushed.is_empty()
    }

    pub(super) fn written(&self) -> &[Direct] {
        &self.written
    }

    pub(super) fn clear(&mut self) {
        self.flushed.clear();
        self.is_shared = false;
        self.written.clear();
    }
}

/// What one thread has to say to one journal.
#[derive(Debug)]
pub(super) struct Marks {
    journal: Weak<Journal>,
    /// Lines flushed since the last fence.
    pub(super) runs: Vec<Run>,
    /// Lines flushed since then that lie beside new ones.
    pub(super) beside: Vec<Run>,
    /// Lines flushed since then that are new in their place.
    pub(super) new: NewRuns,
    /// Where the last entry of this thread ended.
    pub(super) last: u64,
    /// All but the lines that are new and those beside them, where there are such.
    pub(super) others: Vec<Run>,
}

impl Marks {
    /// Whether the thread has flushed nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.beside.is_empty() && self.new.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.runs.clear();
        self.beside.clear();
        self.new.clear();
    }

    /// Puts lines beside new ones to the others, once it is known which of the new ones pass the journal; whether an entry says
    /// of some pages nothing else.
    pub(super) fn gather(&mut self) -> bool {
        let is_apart = !self.beside.is_empty() || !self.new.is_empty();
        if is_apart {
            self.others.clear();
            self.others.extend_from_slice(&self.runs);
            self.runs.append(&mut self.beside);
        }
        join(&mut self.runs);
        is_apart
    }
}

thread_local! {
    /// Of every journal this thread has written to: hardly ever more than one.
    static MARKS: RefCell<Vec<Marks>> = const { RefCell::new(Vec::new()) };
}

/// Hands the calling thread's marks for `journal` to `work`, which must not come back here.
#[inline]
pub(super) fn with<T>(journal: &Weak<Journal>, work: impl FnOnce(&mut Marks) -> T) -> T {
    MARKS.with_borrow_mut(|all| {
        let place = all.iter().position(|marks| marks.journal.ptr_eq(journal));
        let place = place.unwrap_or_else(|| {
            // A journal's address is not used again while there is a weak reference to it.
            all.retain(|marks| marks.journal.strong_count() > 0);
            all.push(Marks {
                journal: journal.clone(),
                runs: Vec::new(),
                beside: Vec::new(),
                new: NewRuns::default(),
                last: 0,
                others: Vec::new(),
            });
            all.len() - 1
        });
        work(&mut all[place])
    })
}

/// How many journals the calling thread has marks of.
#[cfg(test)]
pub(super) fn known() -> usize {
    MARKS.with_borrow(Vec::len)
}

/// Sorts runs and joins those that overlap or touch.
pub(super) fn join(runs: &mut Vec<Run>) {
    if runs.len() < 2 {
        return;
    }
    runs.sort_unstable();
    let mut kept = 0;
    for next in 1..runs.len() {
        let (last, run) = (runs[kept], runs[next]);
        if run.first <= last.first + last.count {
            runs[kept].count = last.count.max(run.first + run.count - last.first);
        } else {
            kept += 1;
            runs[kept] = run;
        }
    }
    runs.truncate(kept + 1);
}
