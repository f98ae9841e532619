//! Changes in their order, full queues, several threads.

use std::collections::BTreeMap;

use super::*;

fn all(queue: &Queue) -> Vec<(Vec<u8>, Change)> {
    let mut taken = Vec::new();
    let applied = queue.apply(usize::MAX, |key, change| taken.push((key.to_vec(), change)));
    assert_eq!(applied, Some(taken.len()));
    taken
}

#[test]
fn changes_come_back_in_their_order_whatever_their_length() {
    let queue = Queue::new(8);
    for length in [1, 7, 8, 9, 39, 40, 41, 4000, 1, 40] {
        let keys: Vec<Vec<u8>> = (0..5).map(|number| vec![number + length as u8; length]).collect();
        for key in &keys {
            assert!(queue.push(key, Change::Present).is_some() || queue.waiting() == 8);
            assert!(queue.push(key, Change::Absent).is_some() || queue.waiting() == 8);
        }
        let taken = all(&queue);
        assert!(taken.iter().all(|(key, _)| keys.contains(key)), "{length}");
        assert!(taken.iter().any(|(_, change)| *change == Change::Absent));
    }
}

#[test]
fn a_full_queue_takes_nothing_until_something_was_applied() {
    let queue = Queue::new(4);
    for number in 0..4 {
        assert_eq!(queue.push(&[number], Change::Present), Some(number.into()));
    }
    assert_eq!(queue.push(&[9], Change::Absent), None);
    assert_eq!(queue.apply(1, |key, _| assert_eq!(key, [0])), Some(1));
    assert_eq!(queue.push(&[4], Change::Absent), Some(4));
    assert_eq!(queue.push(&[9], Change::Absent), None);
    let keys: Vec<_> = all(&queue).into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, [[1], [2], [3], [4]]);
    assert_eq!((queue.issued(), queue.applied(), queue.waiting()), (5, 5, 0));
}

#[test]
fn only_one_applies_at_a_time() {
    let queue = Queue::new(4);
    assert_eq!(queue.push(b"key", Change::Absent), Some(0));
    let outcome = queue.apply(9, |_, _| assert_eq!(queue.apply(9, |_, _| ()), None));
    assert_eq!(outcome, Some(1));
}

#[test]
fn nothing_is_lost_or_turned_around_between_writers_and_appliers() {
    let queue = Queue::new(16);
    let (writers, each) = (3_u64, 20_000_u64);
    let last = Mutex::new(BTreeMap::new());
    let apply = || {
        queue.apply(7, |key, change| {
            assert_eq!(change, Change::Present);
            let (writer, number) = key.split_last_chunk().expect("a number");
            let number = u64::from_be_bytes(*number);
            let before = lock(&last).insert(writer.to_vec(), number);
            assert_eq!(number, before.map_or(0, |before| before + 1), "out of order");
        })
    };
    std::thread::scope(|scope| {
        for writer in 0..writers {
            let (queue, apply) = (&queue, &apply);
            scope.spawn(move || {
                // Some fit their slot, some do not.
                let key = vec![writer as u8; 22 + 10 * writer as usize];
                for number in 0..each {
                    let key = [&key[..], &number.to_be_bytes()].concat();
                    while queue.push(&key, Change::Present).is_none() {
                        apply();
                        std::thread::yield_now();
                    }
                }
            });
        }
    });
    while apply() != Some(0) {}
    let last = last.into_inner().expect("nobody panicked");
    assert_eq!(last.len() as u64, writers);
    assert!(last.values().all(|number| *number == each - 1));
}
