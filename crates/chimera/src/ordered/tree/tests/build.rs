//! Trees that are built from keys in order.

use std::io;
use std::ops::Bound;

use chimera_pmem::SteppedEnvironment;

use super::model::Keys;
use super::{SIZES, Tree, ascending, descending, random_key, tree};

fn build<K: AsRef<[u8]>>(
    tree: &Tree,
    environment: &SteppedEnvironment,
    keys: impl IntoIterator<Item = K>,
) -> io::Result<()> {
    tree.build(keys)?.publish(environment)
}

fn sorted(keys: Keys, count: u16) -> Vec<Vec<u8>> {
    let mut sorted: Vec<_> = (0..count).map(|number| keys.key(number)).collect();
    sorted.sort();
    sorted.dedup();
    sorted
}

#[test]
fn a_tree_that_is_built_has_the_keys_and_lives_on() {
    let environment = SteppedEnvironment::in_memory(1);
    for node_bytes in SIZES {
        for keys in Keys::ALL {
            for count in [0, 1, 2, 3, 5, 8, 20, 50, 100, 3000] {
                let tree = tree(node_bytes);
                let mut inside = sorted(keys, count);
                build(&tree, &environment, &inside).unwrap();
                tree.verify()
                    .unwrap_or_else(|wrong| panic!("{node_bytes} {keys:?} {count}: {wrong}"));
                assert_eq!(tree.figures().keys, inside.len() as u64);
                assert_eq!(ascending(&tree, Bound::Unbounded, 30), inside);
                for number in 10_000..10_000 + count {
                    let key = keys.key(number);
                    if tree.insert(&environment, &key).unwrap() {
                        inside.push(key);
                    } else {
                        assert!(inside.contains(&key));
                    }
                }
                tree.verify().unwrap();
                inside.sort();
                inside.reverse();
                assert_eq!(descending(&tree, Bound::Unbounded, 30), inside);
                for key in &inside {
                    assert!(tree.remove(&environment, key));
                }
                tree.verify().unwrap();
                assert_eq!(tree.figures().long_keys, 0);
            }
        }
    }
}

#[test]
fn only_an_empty_tree_is_built() {
    let environment = SteppedEnvironment::in_memory(1);
    let tree = tree(256);
    let keys = || (0..1000u64).map(u64::to_be_bytes);
    tree.insert(&environment, b"key").unwrap();
    let error = build(&tree, &environment, keys()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    tree.verify().unwrap();
    assert_eq!(ascending(&tree, Bound::Unbounded, 30), [b"key"]);
    assert!(tree.remove(&environment, b"key"));
    build(&tree, &environment, keys()).unwrap();
    tree.verify().unwrap();
    assert_eq!(tree.figures().keys, 1000);
}

#[test]
fn keys_out_of_order_are_refused() {
    let environment = SteppedEnvironment::in_memory(1);
    for wrong in [999, 998, 0] {
        let tree = tree(256);
        let long = |number: u64| [&number.to_be_bytes()[..], &[7; 300]].concat();
        let keys = (0..1000).chain([wrong]).map(long);
        let error = build(&tree, &environment, keys).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        tree.verify().unwrap();
        let figures = tree.figures();
        assert_eq!((figures.keys, figures.leaves, figures.long_keys), (0, 0, 0), "{figures:?}");
    }
}

#[test]
fn what_cannot_be_built_for_want_of_memory_leaves_nothing() {
    let environment = SteppedEnvironment::in_memory(1);
    for limit in [0, 1, 2, 3, 10, 40] {
        let tree = tree(256);
        tree.nodes.limit(limit);
        let mut keys: Vec<_> = (0..1000).map(random_key).collect();
        keys.sort_unstable();
        let error = build(&tree, &environment, &keys).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
        tree.verify().unwrap();
        assert_eq!(tree.figures().keys, 0);
        tree.nodes.limit(u32::MAX);
        build(&tree, &environment, &keys).unwrap();
        tree.verify().unwrap();
    }
}

#[test]
fn what_is_built_and_not_published_leaves_nothing() {
    let environment = SteppedEnvironment::in_memory(1);
    for count in [0, 1, 50, 3000] {
        let tree = tree(256);
        let keys = sorted(Keys::ALL[0], count);
        drop(tree.build(&keys).unwrap());
        tree.verify().unwrap();
        assert_eq!((tree.figures().keys, tree.figures().long_keys), (0, 0));
        let built = tree.build(&keys).unwrap();
        tree.insert(&environment, b"key").unwrap();
        let published = built.publish(&environment).map_err(|error| error.kind());
        assert_eq!(published.is_err(), count > 0, "{published:?}");
        tree.verify().unwrap();
        assert_eq!(tree.figures().keys, 1);
    }
}

#[test]
fn leaves_that_are_built_are_well_filled() {
    const KEYS: u64 = 200_000;
    let environment = SteppedEnvironment::in_memory(1);
    let tree = tree(2048);
    let mut keys: Vec<_> = (0..KEYS).map(random_key).collect();
    keys.sort_unstable();
    build(&tree, &environment, keys).unwrap();
    let bytes = tree.figures().bytes as f64 / KEYS as f64;
    println!("{bytes:.1} bytes for a key");
    assert!(bytes <= 32.5, "{bytes}");
}
