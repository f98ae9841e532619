//! How much memory the tree takes.

use std::ops::Bound;

use chimera_pmem::RealEnvironment;

use super::{Tree, ascending, random_key, tree};

const KEYS: u64 = 1_000_000;

fn bytes_per_key(tree: &Tree) -> f64 {
    let figures = tree.figures();
    figures.bytes as f64 / figures.keys as f64
}

fn fill(tree: &Tree, keys: impl IntoIterator<Item = u64>, key: impl Fn(u64) -> [u8; 16]) {
    let environment = RealEnvironment::new();
    for number in keys {
        assert!(tree.insert(&environment, &key(number)).unwrap());
    }
}

/// A key of 16 bytes, in the order of the numbers.
fn ascending_key(number: u64) -> [u8; 16] {
    u128::from(number).to_be_bytes()
}

#[test]
fn bytes_per_random_key_stay_within_bounds() {
    let tree = tree(2048);
    let mut curve = Vec::new();
    for step in 0..10 {
        fill(&tree, step * KEYS / 10..(step + 1) * KEYS / 10, random_key);
        curve.push(bytes_per_key(&tree));
    }
    println!("{curve:.1?}");
    assert!(curve.iter().all(|bytes| *bytes <= 32.0), "{curve:.1?}");
    tree.verify().unwrap();
}

#[test]
fn keys_in_order_fill_the_leaves() {
    for order in ["ascending", "descending"] {
        let tree = tree(2048);
        let of = |number| if order == "ascending" { number } else { KEYS - number };
        fill(&tree, (0..KEYS / 5).map(of), ascending_key);
        let bytes = bytes_per_key(&tree);
        println!("{order}: {bytes:.1}");
        assert!(bytes <= 30.0, "{order}: {bytes}");
        tree.verify().unwrap();
    }
}

/// Memory follows the number of keys down: freed nodes are used again, and leaves stay filled.
#[test]
fn memory_follows_the_keys_down() {
    let environment = RealEnvironment::new();
    let tree = tree(2048);
    fill(&tree, 0..KEYS / 5, random_key);
    let before = tree.figures();
    for number in 0..KEYS / 5 {
        if number % 20 != 0 {
            assert!(tree.remove(&environment, &random_key(number)));
        }
    }
    let after = tree.figures();
    assert!(after.leaves * 8 < before.leaves, "{after:?}");
    assert!(after.inner_nodes * 5 < before.inner_nodes, "{before:?} {after:?}");
    assert_eq!(ascending(&tree, Bound::Unbounded, 1000).len(), KEYS as usize / 100);
    tree.verify().unwrap();
    fill(&tree, (0..KEYS / 5).filter(|number| number % 20 != 0), random_key);
    let again = tree.figures();
    assert!(again.bytes <= before.bytes * 21 / 20, "{before:?} {again:?}");
    for number in 0..KEYS / 5 {
        assert!(tree.remove(&environment, &random_key(number)));
    }
    let figures = tree.figures();
    assert_eq!((figures.keys, figures.leaves, figures.height), (0, 1, 1), "{figures:?}");
    tree.verify().unwrap();
}
