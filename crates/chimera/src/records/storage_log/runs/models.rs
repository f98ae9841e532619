//! A model of a reader beside a run that is freed and used for something else.

use std::sync::Arc;

use loom::thread;

use super::*;
use crate::sync::under_loom::model;

/// What is in the run before, and what is stored there afterwards.
const OLD: u64 = 1;
const NEW: u64 = 2;

#[test]
fn loom_a_reader_of_a_run_that_is_used_again_finds_out() {
    model::check(3, || {
        let (runs, bytes) = (Arc::new(Runs::new()), Arc::new(AtomicU64::new(OLD)));
        let writer = thread::spawn({
            let (runs, bytes) = (runs.clone(), bytes.clone());
            move || {
                runs.note_freed();
                bytes.store(NEW, Ordering::Relaxed);
            }
        });
        let before = runs.freed();
        let found = bytes.load(Ordering::Relaxed);
        if runs.is_unchanged(before) && before == 0 {
            assert_eq!(found, OLD, "a record of another use of the run");
        }
        writer.join().unwrap();
        assert!(!runs.is_unchanged(0));
    });
}
