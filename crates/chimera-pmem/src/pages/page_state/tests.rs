use std::sync::atomic::AtomicU32;

use super::*;

#[test]
fn the_first_store_to_a_clean_page_says_so() {
    let state = AtomicU32::new(0);
    assert!(begin(&state, || panic!("nobody is in the way")));
    assert!(!begin(&state, || panic!("writers are not in each other's way")));
    assert!(!is_idle(&state));
    end(&state);
    end(&state);
    assert!(is_idle(&state));
}

#[test]
fn a_page_is_held_only_when_it_is_private_and_idle() {
    let state = AtomicU32::new(0);
    assert!(!try_hold(&state), "a clean page has nothing to give back");
    assert!(begin(&state, || ()));
    assert!(!try_hold(&state) && !try_hold_clean(&state), "a writer is there");
    end(&state);
    assert!(!try_hold_clean(&state), "it has stores of its own");
    assert!(try_hold(&state));
    assert!(!try_hold(&state), "it is held already");
    keep(&state);
    assert!(is_idle(&state));
    assert!(try_hold(&state));
    give(&state);
    assert!(try_hold_clean(&state));
    keep(&state);
    assert!(begin(&state, || ()), "it was clean");
}

#[test]
fn a_writer_waits_while_a_page_is_held() {
    let state = AtomicU32::new(0);
    begin(&state, || ());
    end(&state);
    assert!(try_hold(&state));
    let mut waits = 0;
    let is_first = begin(&state, || {
        waits += 1;
        if waits == 3 {
            give(&state);
        }
    });
    assert_eq!((is_first, waits), (true, 3));
}
