//! Models of the tree, with the smallest nodes there are: lookups, scans and inserts beside a split of the root and of
//! a leaf, a merge, and a node that was freed and is used again.

use std::ops::Bound;
use std::sync::Arc;

use loom::thread;

use super::{Page, Payload, Tree, TreeShape};
use crate::sync::under_loom::model;

/// Keys that fill a leaf without fences.
const FULL: [u8; 5] = *b"bdfhj";

/// A key of which the tail lies in the heap.
fn key(letter: u8) -> [u8; 8] {
    [letter, b'k', b'e', b'y', b't', b'a', b'i', b'l']
}

fn insert(tree: &Tree, letter: u8) {
    let is_new =
        tree.insert(&*model::environment(), &key(letter), u64::from(letter)).expect("room");
    assert!(is_new, "{letter}");
}

fn remove(tree: &Tree, letter: u8) {
    assert!(tree.remove(&*model::environment(), &key(letter)), "{letter}");
}

fn get(tree: &Tree, letter: u8) -> Option<u64> {
    tree.get(&*model::environment(), &key(letter))
}

fn assert_has(tree: &Tree, letters: &[u8]) {
    for letter in letters {
        assert_eq!(get(tree, *letter), Some(u64::from(*letter)), "{letter} is not found");
    }
}

fn tree(letters: &[u8]) -> Arc<Tree> {
    let shape = TreeShape { node_bytes: 128, payload: Payload::Word, huge_pages: false };
    let tree = Tree::new(shape);
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
        beside(&tree, writer, |tree| assert_has(tree, b"jb"), b"bdefhj");
        assert_eq!(tree.figures().height, 2);
    });
}

#[test]
fn loom_keys_are_found_while_the_root_falls() {
    model::check(1, || {
        let tree = tree(b"bdfhje");
        remove(&tree, b'e');
        remove(&tree, b'd');
        remove(&tree, b'f');
        let writer = |tree: &Tree| remove(tree, b'h');
        beside(&tree, writer, |tree| assert_has(tree, b"jb"), b"bj");
        assert_eq!(tree.figures().height, 1);
    });
}
