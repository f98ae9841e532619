//! Models of the tree, with the smallest nodes there are: lookups, scans and inserts beside a split of the root and of
//! a leaf, a merge, and a node that was freed and is used again.

use std::ops::Bound;
use std::sync::Arc;

use loom::thread;

use super::image::Image;
use super::{Page, Tree, TreeShape};
use crate::sync::under_loom::model;

/// Keys that fill a leaf without fences.
const FULL: [u8; 8] = *b"bdfhjlnp";

/// Nodes that there is room for.
const NODES: u32 = 4;

/// A key of which the tail lies in the heap.
fn key(letter: u8) -> [u8; 8] {
    [letter, b'k', b'e', b'y', b't', b'a', b'i', b'l']
}

fn insert(tree: &Tree, letter: u8) {
    let is_new = tree.insert(&*model::environment(), &key(letter)).expect("room");
    assert!(is_new, "{letter}");
}

fn remove(tree: &Tree, letter: u8) {
    assert!(tree.remove(&*model::environment(), &key(letter)), "{letter}");
}

fn assert_has(tree: &Tree, letters: &[u8]) {
    for letter in letters {
        assert!(tree.has(&*model::environment(), &key(*letter)), "{letter} is not found");
    }
}

fn tree(letters: &[u8]) -> Arc<Tree> {
    let shape = TreeShape { node_bytes: 128, ..TreeShape::default() };
    let tree = Tree::new(shape);
    // All nodes are there from the start: the real arena lets nobody see one that is not, which the one for
    // models leaves to its users.
    let nodes: Vec<_> = (0..NODES).map(|_| tree.nodes.take(0).expect("room").id).collect();
    nodes.into_iter().rev().for_each(|id| tree.nodes.give_back(id, 0));
    for letter in letters {
        insert(&tree, *letter);
    }
    Arc::new(tree)
}

/// Runs `writer` on a thread beside `other`; afterwards the tree is right and has these keys.
fn beside(
    tree: &Arc<Tree>,
    writer: impl FnOnce(&Tree) + Send + 'static,
    other: impl FnOnce(&Tree),
    letters: &[u8],
) {
    let thread = thread::spawn({
        let tree = tree.clone();
        move || writer(&tree)
    });
    other(tree);
    thread.join().expect("no panic");
    tree.verify().expect("a tree that is right");
    assert_has(tree, letters);
    assert_eq!(tree.figures().keys, letters.len() as u64);
}

#[test]
fn loom_keys_are_found_beside_an_insert() {
    model::check(2, || {
        let tree = tree(b"bd");
        beside(&tree, |tree| insert(tree, b'c'), |tree| assert_has(tree, b"db"), b"bcd");
    });
}

#[test]
fn loom_keys_are_found_while_the_root_is_split() {
    model::check(1, || {
        let tree = tree(&FULL);
        let writer = |tree: &Tree| insert(tree, b'e');
        beside(&tree, writer, |tree| assert_has(tree, b"p"), b"bdefhjlnp");
        assert_eq!(tree.figures().height, 2);
    });
}

/// The root with two leaves: the one of t is full.
fn two_leaves() -> Arc<Tree> {
    tree(b"bdfhjlnpeqrst")
}

#[test]
fn loom_keys_are_found_while_a_leaf_is_split() {
    model::check(1, || {
        let tree = two_leaves();
        assert_eq!(tree.figures().leaves, 2);
        let writer = |tree: &Tree| insert(tree, b'o');
        beside(&tree, writer, |tree| assert_has(tree, b"t"), b"bdefhjlnopqrst");
        assert_eq!(tree.figures().leaves, 3);
    });
}

/// Whoever has come to a leaf that is split then must not change it.
#[test]
fn loom_an_insert_beside_a_split_is_kept() {
    model::check(1, || {
        let tree = tree(&FULL);
        beside(&tree, |tree| insert(tree, b'e'), |tree| insert(tree, b'q'), b"bdefhjlnpq");
    });
}

/// A lookup of the key while the last two leaves become one. One key at a time: the orders of two lookups after each other
/// are many more, and prove nothing else.
fn while_the_root_falls(letter: u8) {
    model::check(1, move || {
        let tree = tree(b"bdfhjlnpe");
        remove(&tree, b'e');
        remove(&tree, b'f');
        assert_eq!(tree.figures().height, 2);
        let writer = |tree: &Tree| remove(tree, b'h');
        beside(&tree, writer, |tree| assert_has(tree, &[letter]), b"bdjlnp");
        assert_eq!(tree.figures().height, 1);
    });
}

#[test]
fn loom_a_key_of_the_leaf_that_stays_is_found_while_the_root_falls() {
    while_the_root_falls(b'b');
}

#[test]
fn loom_a_key_of_the_leaf_that_goes_is_found_while_the_root_falls() {
    while_the_root_falls(b'p');
}

/// A node that is freed, and used again for other keys, while it is on the way of a lookup.
#[test]
fn loom_keys_are_found_while_a_node_is_freed_and_used_again() {
    model::check(1, || {
        let tree = two_leaves();
        for letter in *b"efhdj" {
            remove(&tree, letter);
        }
        assert_eq!(tree.figures().leaves, 2);
        let writer = |tree: &Tree| {
            remove(tree, b'l');
            assert_eq!(tree.figures().free_nodes, 3, "both leaves are free");
            let nodes = [(); 3].map(|()| tree.nodes.take(0).expect("a free node"));
            for node in &nodes {
                let mut image = Image::new(&tree.nodes.context, 0, None, None);
                assert!(image.push(&key(b'x'), 7));
                image.fill(node);
            }
            for id in nodes.map(|node| node.id) {
                tree.nodes.give_back(id, 0);
            }
        };
        beside(&tree, writer, |tree| assert_has(tree, b"t"), b"bnpqrst");
    });
}

/// Every key that stays is read once, in order.
#[test]
fn loom_a_scan_beside_a_split_has_all_keys_once() {
    model::check(1, || {
        let tree = tree(&FULL);
        let scan = |tree: &Tree| {
            let environment = model::environment();
            let mut page = Page::default();
            let mut seen = Vec::new();
            tree.read_ascending(&*environment, Bound::Included(&key(b'h')), 10, &mut page);
            loop {
                seen.extend((0..page.len()).map(|at| page.key(at)[0]));
                if !tree.read_on_ascending(&*environment, 10, &mut page) {
                    break;
                }
            }
            assert_eq!(seen, b"hjlnp");
        };
        beside(&tree, |tree| insert(tree, b'e'), scan, b"bdefhjlnp");
    });
}
