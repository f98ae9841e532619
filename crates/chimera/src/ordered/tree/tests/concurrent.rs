//! The tree under several threads.

use std::collections::HashSet;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use chimera_pmem::RealEnvironment;

use super::{Page, SIZES, Tree, mix, tree};

/// Sets a flag when dropped, also by a failed assertion, so that other threads stop.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A key with the number in it: short, or long for one of 16.
fn key(number: u64) -> Vec<u8> {
    let mut key = mix(number).to_be_bytes().to_vec();
    key.extend_from_slice(b"/and/more");
    if number.is_multiple_of(16) {
        key.extend([b'l'; 200]);
    }
    key
}

/// Reads all keys once in one direction: order is strict, and each of `staying` comes once.
fn scan(tree: &Tree, is_ascending: bool, most: usize, staying: &HashSet<Vec<u8>>) {
    let environment = RealEnvironment::new();
    let mut page = Page::default();
    if is_ascending {
        tree.read_ascending(&environment, Bound::Unbounded, most, &mut page);
    } else {
        tree.read_descending(&environment, Bound::Unbounded, most, &mut page);
    }
    let mut last: Option<Vec<u8>> = None;
    let mut seen = 0;
    loop {
        for at in 0..page.len() {
            let key = page.key(at);
            if let Some(last) = &last {
                assert!(
                    if is_ascending { key > &last[..] } else { key < &last[..] },
                    "{last:?} {key:?}"
                );
            }
            seen += usize::from(staying.contains(key));
            last = Some(key.to_vec());
        }
        let is_more = if is_ascending {
            tree.read_on_ascending(&environment, most, &mut page)
        } else {
            tree.read_on_descending(&environment, most, &mut page)
        };
        if !is_more {
            break;
        }
    }
    assert_eq!(seen, staying.len(), "keys that stay are read once");
}

fn insert(tree: &Tree, environment: &RealEnvironment, key: &[u8]) -> bool {
    tree.insert(environment, key).unwrap()
}

/// Writers insert and remove `passing` keys each, beside keys that stay and are scanned and looked up.
fn churn(node_bytes: u32, is_shared: bool, passing: u64, rounds: u64) {
    let environment = RealEnvironment::new();
    let tree = tree(node_bytes);
    let staying: HashSet<_> = (0..passing / 2).map(|number| key(number << 32)).collect();
    for key in &staying {
        assert!(insert(&tree, &environment, key));
    }
    let stop = AtomicBool::new(false);
    let balance = AtomicU64::new(0);
    thread::scope(|scope| {
        for reader in 0..2 {
            let (tree, staying, stop, environment) = (&tree, &staying, &stop, &environment);
            scope.spawn(move || {
                let mut most = 1;
                while !stop.load(Ordering::Relaxed) {
                    scan(tree, (most + reader) % 2 == 0, most, staying);
                    most = most * 3 % 1000 + 1;
                    for key in staying.iter().take(200) {
                        assert!(tree.has(environment, key));
                    }
                }
            });
        }
        let _stop = StopOnDrop(&stop);
        thread::scope(|scope| {
            for writer in 0..3 {
                let (tree, environment, balance) = (&tree, &environment, &balance);
                scope.spawn(move || {
                    let first = if is_shared { 1 } else { writer * passing + 1 };
                    for round in 0..rounds {
                        for number in first..first + passing {
                            let is_new = insert(tree, environment, &key(number));
                            assert!(is_new || is_shared);
                            balance.fetch_add(u64::from(is_new), Ordering::Relaxed);
                        }
                        for number in first..first + passing {
                            let was_there = tree.remove(environment, &key(number));
                            assert!(was_there || is_shared, "round {round}");
                            balance.fetch_sub(u64::from(was_there), Ordering::Relaxed);
                        }
                    }
                });
            }
        });
    });
    tree.verify().unwrap();
    let left = balance.into_inner() + staying.len() as u64;
    assert_eq!(tree.figures().keys, left);
    assert!(left == staying.len() as u64 || is_shared);
    scan(&tree, true, 100, &staying);
}

#[test]
fn scans_are_right_while_writers_change_keys_of_their_own() {
    for node_bytes in SIZES {
        churn(node_bytes, false, 500, 8);
    }
}

#[test]
fn scans_are_right_while_writers_change_the_same_keys() {
    for node_bytes in SIZES {
        churn(node_bytes, true, 500, 12);
    }
}

/// The tree becomes empty, with one leaf, again and again.
#[test]
fn a_tiny_tree_is_right_while_its_root_rises_and_falls() {
    for node_bytes in [128, 192] {
        churn(node_bytes, true, 24, 1500);
        churn(node_bytes, false, 8, 1500);
    }
}

/// Each of several threads inserts keys of its own in order, at the same end.
#[test]
fn threads_that_insert_in_order_lose_nothing() {
    for node_bytes in [128, 256, 2048] {
        let environment = RealEnvironment::new();
        let tree = tree(node_bytes);
        let key = |number: u64| number.to_be_bytes();
        thread::scope(|scope| {
            for writer in 0..4 {
                let (tree, environment) = (&tree, &environment);
                scope.spawn(move || {
                    for number in 0..5000 {
                        assert!(insert(tree, environment, &key(number * 4 + writer)));
                    }
                });
            }
        });
        tree.verify().unwrap();
        let staying = (0..20_000).map(|number| key(number).to_vec()).collect();
        scan(&tree, true, 1000, &staying);
        scan(&tree, false, 1000, &staying);
        assert_eq!(tree.figures().keys, 20_000);
    }
}
