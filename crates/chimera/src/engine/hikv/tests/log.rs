//! Changes that are made again. Such as are withdrawn are the crash lab's: `tests/crashes/hikv_log.rs`.

use std::panic::AssertUnwindSafe;

use super::*;
use crate::records::redo_log;

/// Cuts a change off after each of its steps. Once its record is durable recovery makes the change, and makes it once.
fn cut_off(what: Do, left_out: Option<LeftOut>) {
    let (mut store, mut model) = (Store::new(LOGGED), Model::new());
    store.all((0..5).map(|key| Put(key, 30)), &mut model);
    let (before, media) = (model.clone(), store.media.clone());
    media.leave_out(left_out);
    let (acted, photos) = media.photograph(|| store.act(what, &mut model));
    acted.expect("room");
    let mut found = Vec::new();
    for photo in &photos {
        let least = bytes_of(&photo.some_states(0, 1).swap_remove(0));
        let opened = Store::open_without(&least, LOGGED, &looking(), left_out);
        let mut store = opened.expect("it opens");
        let left = store.contents().expect("sound");
        assert!(left == before || left == model, "{what:?}");
        store.check_space(&left);
        let mut again = store.reopen(&looking());
        assert_eq!(again.contents().expect("sound"), left, "{what:?}");
        found.push(left == model);
    }
    let first = found.iter().position(|is_made| *is_made).expect("it is made");
    assert!(found[first..].iter().all(|is_made| *is_made), "{what:?}: {found:?}");
    // A delete has one store behind its record, to a word, and a fence.
    assert!(found.len() - first > 2, "{what:?}, when it had been made already: {found:?}");
}

#[test]
fn a_change_in_the_log_is_made_again() {
    for what in [Put(9, 40), Put(2, 40), Delete(2)] {
        cut_off(what, None);
    }
}

#[test]
fn steps_of_the_log_that_are_left_out_are_noticed() {
    for left_out in [
        LeftOut::Store(redo_log::sites::RECORD),
        LeftOut::Flush(redo_log::sites::RECORD),
        LeftOut::Step(steps::of_log::REDO),
    ] {
        let cut_off = || cut_off(Put(2, 44), Some(left_out));
        let outcome = std::panic::catch_unwind(AssertUnwindSafe(cut_off));
        assert!(outcome.is_err(), "{left_out:?} is not noticed");
    }
}
