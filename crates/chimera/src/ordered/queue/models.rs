//! Models of the queue.

use std::sync::Arc;

use loom::thread;

use super::*;
use crate::sync::under_loom::model;

/// Applies one change, if there is one and nobody else is at it. Its key says whose it is, and which one.
fn apply(queue: &Queue, seen: &mut [u64; 2]) {
    queue.apply(1, |key, change| {
        let count = &mut seen[usize::from(key[0])];
        *count += 1;
        assert_eq!(
            (key[1..].as_ref(), change),
            (&[*count as u8][..], Change::Present),
            "lost, torn or turned around"
        );
    });
}

/// A writer of two changes of a key beside one of another key and one who applies, in a queue of two slots.
#[test]
fn loom_changes_of_a_key_are_applied_once_and_in_order() {
    model::check(2, || {
        let queue = Arc::new(Queue::new(2));
        let writers = [2, 1].map(|count| {
            let queue = queue.clone();
            thread::spawn(move || {
                let pushed = |number| queue.push(&[2 - count, number], Change::Present).is_some();
                (1..=count).take_while(|number| pushed(*number)).count() as u64
            })
        });
        let mut seen = [0; 2];
        apply(&queue, &mut seen);
        let pushed = writers.map(|writer| writer.join().expect("no panic"));
        while queue.applied() < queue.issued() {
            apply(&queue, &mut seen);
        }
        assert_eq!(seen, pushed);
    });
}

/// Who has waited for a ticket sees what was applied.
#[test]
fn loom_an_applied_ticket_means_that_the_change_was_made() {
    model::check(3, || {
        let (queue, tree) = (Arc::new(Queue::new(2)), Arc::new(AtomicU64::new(0)));
        assert!(queue.push(b"k", Change::Present).is_some());
        let applier = thread::spawn({
            let (queue, tree) = (queue.clone(), tree.clone());
            move || queue.apply(1, |_, _| tree.store(7, Ordering::Relaxed))
        });
        if queue.applied() == 1 {
            assert_eq!(tree.load(Ordering::Relaxed), 7, "a ticket counts before its change");
        }
        assert_eq!(applier.join().expect("no panic"), Some(1));
    });
}
