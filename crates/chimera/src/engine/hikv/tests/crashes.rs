//! Crashes after each store and fence of writes, in splits and growth, and in the next recovery; killed processes; and steps
//! that are left out, which must be noticed.

use std::panic::AssertUnwindSafe;

use super::*;
use crate::index::persistent::{buckets, partitioned_hash};
use crate::records::item_heap;

/// States that are tried of each photograph.
const STATES: usize = 3;

/// Recovers what a crash left, goes on, and recovers again.
fn check_state(
    state: &[u64],
    parameters: Parameters,
    options: &Options,
    expected: &[Model],
    left_out: Option<LeftOut>,
) {
    let opened = Store::open_without(&bytes_of(state), parameters, options, left_out);
    let mut store = opened.expect("it opens");
    let mut model = store.contents().expect("sound");
    assert!(expected.contains(&model), "{} records", model.len());
    store.act(Put(40, 60), &mut model).expect("room");
    store.check_space(&model);
    store.all([Delete(3), Put(3, 70), Put(41, 80), Delete(41)], &mut model);
    store.check_space(&model);
    assert_eq!(store.reopen(&looking()).contents().expect("sound"), model);
}

fn check_photo(
    photo: &Photo,
    parameters: Parameters,
    options: &Options,
    expected: &[Model],
    (seed, left_out): (u64, Option<LeftOut>),
) {
    let states = photo.some_states(STATES, seed);
    let step = states.len().div_ceil(STATES);
    for state in states.iter().rev().step_by(step) {
        check_state(state, parameters, options, expected, left_out);
    }
}

/// The process is killed and the machine goes on: what the next one finds stays through a power loss. Recovery is crashed after
/// each of its steps.
fn check_killed(photo: &Photo, parameters: Parameters, expected: &[Model], left: Option<LeftOut>) {
    let seen = photo.states().and_then(Iterator::last);
    let seen = seen.unwrap_or_else(|| photo.some_states(0, 1).swap_remove(1));
    let media = Media::default();
    let pool = media_pool(&media, &bytes_of(&seen), SEGMENT_BYTES, CAPACITY);
    media.was_killed(photo.clone());
    media.leave_out(left);
    let core = Core::new(pool, &looking());
    let (opened, photos) =
        media.photograph(|| Store::take_over(media.clone(), core, parameters, &looking()));
    let mut store = opened.expect("it opens");
    let found = store.contents().expect("sound");
    assert!(expected.contains(&found));
    for (number, photo) in photos.iter().enumerate().step_by(1 + photos.len() / 6) {
        check_photo(photo, parameters, &looking(), expected, (number as u64, left));
    }
    check_photo(&media.photo(), parameters, &looking(), &[found], (1, left));
}

/// Plays the history of all writes. Some are crashed after each step.
fn play(parameters: Parameters, left_out: Option<LeftOut>) {
    let opened = Store::open_without(&[], parameters, &looking(), left_out);
    let (mut store, mut model) = (opened.expect("a new store"), Model::new());
    for (number, what) in history().into_iter().enumerate() {
        let (before, media) = (model.clone(), store.media.clone());
        let (acted, photos) = media.photograph(|| store.act(what, &mut model));
        acted.expect("room");
        let expected = [before, model.clone()];
        for (step, photo) in photos.iter().enumerate().step_by(1 + photos.len() / 16) {
            let options = if step % 2 == 0 { looking() } else { looking_later() };
            let seed = (number + step) as u64;
            check_photo(photo, parameters, &options, &expected, (seed, left_out));
        }
        let halfway = photos.get(photos.len() / 2).cloned().unwrap_or_else(|| media.photo());
        check_killed(&halfway, parameters, &expected, left_out);
        check_photo(&media.photo(), parameters, &looking_later(), &expected[1..], (0, left_out));
        if number % 9 == 8 {
            store = store.reopen(&looking());
            store.media.leave_out(left_out);
        }
    }
    assert_eq!(store.contents().expect("sound"), model);
    assert!(store.engine.items().index().segments() > 2, "no segment was split");
}

#[test]
fn no_crash_loses_or_invents_a_record_or_leaks_room() {
    play(PARAMETERS, None);
}

#[test]
fn no_crash_loses_or_invents_a_record_of_a_store_with_a_log() {
    play(LOGGED, None);
}

#[test]
fn no_crash_loses_a_record_in_the_published_layout() {
    play(Parameters { layout: RecordLayout::Published, ..PARAMETERS }, None);
}

#[test]
fn whatever_is_left_out_is_noticed() {
    // Of a split the fence is not among them: in one thread that of the entry behind it does the same.
    let all = [
        LeftOut::Store(item_heap::sites::ITEM),
        LeftOut::Flush(item_heap::sites::ITEM),
        LeftOut::Fence(item_heap::sites::ITEM),
        LeftOut::Store(buckets::sites::ENTRY),
        LeftOut::Flush(buckets::sites::ENTRY),
        LeftOut::Fence(buckets::sites::ENTRY),
        LeftOut::Store(buckets::sites::REMOVE),
        LeftOut::Flush(buckets::sites::REMOVE),
        LeftOut::Fence(buckets::sites::REMOVE),
        LeftOut::Store(partitioned_hash::sites::SEGMENT),
        LeftOut::Flush(partitioned_hash::sites::SEGMENT),
        LeftOut::Store(partitioned_hash::sites::SPLIT),
        LeftOut::Flush(partitioned_hash::sites::SPLIT),
        LeftOut::Step(steps::MARK_ITEMS),
        LeftOut::Step(steps::FREE_ORPHANS),
        LeftOut::Step(buckets::steps::FOREIGN),
    ];
    let played = |what| std::panic::catch_unwind(AssertUnwindSafe(|| play(PARAMETERS, Some(what))));
    let unnoticed: Vec<_> = all.iter().filter(|what| played(**what).is_ok()).collect();
    assert_eq!(unnoticed, [] as [&LeftOut; 0]);
}
