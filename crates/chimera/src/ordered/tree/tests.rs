//! Tests of the tree by one thread; against a map in `model`, by many threads in `concurrent`, of its size in
//! `space`.

mod build;
mod concurrent;
mod model;
mod space;

use std::io;
use std::ops::Bound;

use chimera_pmem::{RealEnvironment, SteppedEnvironment};

use super::*;

/// Sizes of nodes, from the smallest to the usual.
pub(super) const SIZES: [u32; 5] = [128, 192, 256, 512, 2048];

/// A well-mixed, reversible hash.
pub(super) fn mix(key: u64) -> u64 {
    let mut x = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A key of 16 bytes, in random order.
pub(super) fn random_key(number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&mix(number).to_be_bytes());
    key[8..].copy_from_slice(&mix(number ^ 0x5555).to_be_bytes());
    key
}

pub(super) fn tree(node_bytes: u32) -> Tree {
    Tree::new(TreeShape { node_bytes, ..TreeShape::default() })
}

pub(super) type Keys = Vec<Vec<u8>>;

fn append(page: &Page, into: &mut Keys) {
    into.extend((0..page.len()).map(|at| page.key(at).to_vec()));
}

/// All keys from a bound on, in pages of at most `most`.
pub(super) fn ascending(tree: &Tree, from: Bound<&[u8]>, most: usize) -> Keys {
    let environment = RealEnvironment::new();
    let mut page = Page::default();
    let mut keys = Vec::new();
    tree.read_ascending(&environment, from, most, &mut page);
    append(&page, &mut keys);
    while tree.read_on_ascending(&environment, most, &mut page) {
        assert!(page.len() <= most);
        append(&page, &mut keys);
    }
    keys
}

/// All keys up to a bound, in pages of at most `most`.
pub(super) fn descending(tree: &Tree, to: Bound<&[u8]>, most: usize) -> Keys {
    let environment = RealEnvironment::new();
    let mut page = Page::default();
    let mut keys = Vec::new();
    tree.read_descending(&environment, to, most, &mut page);
    append(&page, &mut keys);
    while tree.read_on_descending(&environment, most, &mut page) {
        assert!(page.len() <= most);
        append(&page, &mut keys);
    }
    keys
}

#[test]
fn an_empty_tree_has_nothing_and_takes_nothing() {
    let environment = RealEnvironment::new();
    let tree = tree(2048);
    assert!(!tree.has(&environment, b"key"));
    assert!(!tree.remove(&environment, b"key"));
    assert!(ascending(&tree, Bound::Unbounded, 10).is_empty());
    assert!(descending(&tree, Bound::Unbounded, 10).is_empty());
    let figures = tree.figures();
    assert_eq!((figures.height, figures.leaves, figures.bytes), (0, 0, 0));
    tree.verify().unwrap();
}

#[test]
fn keys_are_inserted_and_removed() {
    let environment = RealEnvironment::new();
    let tree = tree(2048);
    let keys = [&b"\0"[..], b"\0\0", b"a", b"a\0", b"abcd", b"abcd\0", b"abcde"];
    for key in keys {
        assert!(!tree.has(&environment, key));
        assert!(tree.insert(&environment, key).unwrap());
        assert!(!tree.insert(&environment, key).unwrap());
        assert!(tree.has(&environment, key));
    }
    tree.verify().unwrap();
    assert_eq!(ascending(&tree, Bound::Unbounded, 3), keys);
    for key in keys {
        assert!(tree.remove(&environment, key));
        assert!(!tree.remove(&environment, key));
        assert!(!tree.has(&environment, key));
    }
    assert_eq!(tree.figures().keys, 0);
    tree.verify().unwrap();
}

/// Every page is one leaf or a part of it, bounds are exact, and reading ends.
#[test]
fn bounds_are_exact_wherever_they_lie() {
    let environment = SteppedEnvironment::in_memory(1);
    for node_bytes in SIZES {
        let tree = tree(node_bytes);
        let key = |number: u64| (number * 2).to_be_bytes();
        let keys = 500;
        for number in 0..keys {
            tree.insert(&environment, &key(number)).unwrap();
        }
        for at in 0..2 * keys + 2 {
            let bound = at.to_be_bytes();
            let from = |found: Keys| found.into_iter().next();
            let expected = |first: u64| (first < keys).then(|| key(first).to_vec());
            let included = from(ascending(&tree, Bound::Included(&bound), 7));
            assert_eq!(included, expected(at.div_ceil(2)), "from {at}");
            let excluded = from(ascending(&tree, Bound::Excluded(&bound), 7));
            assert_eq!(excluded, expected(at / 2 + 1), "behind {at}");
            let expected = |behind: u64| Some(key(behind.min(keys).checked_sub(1)?).to_vec());
            let included = from(descending(&tree, Bound::Included(&bound), 7));
            assert_eq!(included, expected(at / 2 + 1), "down from {at}");
            let excluded = from(descending(&tree, Bound::Excluded(&bound), 7));
            assert_eq!(excluded, expected(at.div_ceil(2)), "below {at}");
        }
        assert_eq!(ascending(&tree, Bound::Unbounded, usize::MAX).len(), keys as usize);
        assert_eq!(descending(&tree, Bound::Unbounded, 1).len(), keys as usize);
    }
}

#[test]
fn a_page_is_read_at_one_moment_and_says_where_to_go_on() {
    let environment = SteppedEnvironment::in_memory(1);
    let tree = tree(2048);
    for key in [b"a", b"b", b"c"] {
        tree.insert(&environment, key).unwrap();
    }
    let mut page = Page::default();
    tree.read_ascending(&environment, Bound::Unbounded, 2, &mut page);
    assert_eq!((page.len(), page.resume()), (2, Some(Bound::Excluded(&b"b"[..]))));
    tree.read_ascending(&environment, Bound::Excluded(b"b"), 0, &mut page);
    assert_eq!((page.len(), page.key(0), page.resume()), (1, &b"c"[..], None));
    assert!(!tree.read_on_ascending(&environment, 2, &mut page));
    assert_eq!(page.len(), 1, "nothing is changed at the end");
    tree.read_descending(&environment, Bound::Unbounded, 1, &mut page);
    assert_eq!((page.key(0), page.resume()), (&b"c"[..], Some(Bound::Excluded(&b"c"[..]))));
}

/// What cannot be done for want of memory leaves the tree as it was, and can be done once there is some.
#[test]
fn out_of_memory_changes_nothing() {
    let environment = SteppedEnvironment::in_memory(1);
    for (node_bytes, limit) in
        [(128, 1), (128, 2), (128, 3), (128, 4), (256, 9), (2048, 0), (2048, 7)]
    {
        let tree = tree(node_bytes);
        tree.nodes.limit(limit);
        let key =
            |number: u64| [&random_key(number)[..], &vec![7; (number % 40) as usize * 5]].concat();
        let mut inside = Vec::new();
        for number in 0..2000 {
            let key = key(number);
            match tree.insert(&environment, &key) {
                Ok(is_new) => {
                    assert!(is_new);
                    inside.push(key);
                }
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::OutOfMemory),
            }
        }
        assert!(inside.len() < 2000);
        tree.verify().unwrap();
        inside.sort();
        assert_eq!(ascending(&tree, Bound::Unbounded, 10), inside);
        tree.nodes.limit(u32::MAX);
        for number in 0..2000 {
            tree.insert(&environment, &key(number)).unwrap();
        }
        tree.verify().unwrap();
        assert_eq!(tree.figures().keys, 2000);
    }
}

/// Two threads that insert one key both make room for it; the second one finds it there, perhaps in a leaf that is
/// full again, of which it is the first one possible.
#[test]
fn no_room_is_made_for_a_key_that_is_there() {
    let environment = SteppedEnvironment::in_memory(1);
    let tree = tree(128);
    for number in 0..2000u16 {
        let key = number.to_be_bytes();
        tree.insert(&environment, &key).unwrap();
        for other in number.saturating_sub(8)..=number {
            let mut attempts = descent::Attempts::new(&environment);
            tree.make_room(&mut attempts, &other.to_be_bytes(), 0).unwrap();
        }
    }
    tree.verify().unwrap();
}

#[test]
fn separators_are_as_short_as_they_can_be() {
    for (before, after, between) in [
        (&b"abc"[..], &b"abd"[..], &b"abd"[..]),
        (b"abc", b"bcd", b"b"),
        (b"ab", b"abcd", b"abc"),
        (b"ab", b"ab\0", b"ab\0"),
        (b"a\xff\xff", b"b\0\0", b"b"),
    ] {
        assert_eq!(format::separator(before, after), between);
    }
}

#[test]
#[should_panic(expected = "TreeShape")]
fn nodes_have_a_size_there_can_be() {
    tree(64);
}

/// Whatever words a reader finds in a node, it ends and does not panic.
#[test]
fn readers_bear_any_words() {
    for node_bytes in [128, 512, 2048] {
        let tree = tree(node_bytes);
        let node = tree.nodes.take(0).unwrap();
        for round in 0..3000u64 {
            for word in 1..node_bytes / 8 {
                let random = mix(round << 16 | u64::from(word));
                // Now and then only the header is strange.
                node.store(word, if round % 3 == 0 && word > 1 { random >> 40 } else { random });
            }
            let header = node.header();
            assert!(header.count < node_bytes / 8, "{header:?}");
            let key = random_key(round);
            for sought in [&key[..], &[], &[0; 300]] {
                let sought = search::SearchKey::new(sought, header);
                assert!(node.lower_bound(header, sought).0 <= header.count);
                assert!(node.upper_bound(header, sought) <= header.count);
            }
            let mut page = Vec::new();
            for at in [0, header.count / 2, header.count] {
                let slot = node.slot(at);
                node.append_key(header, slot, &mut page);
                let _ = node.child(at);
                assert!(tree.nodes.get(node.child(at)).is_none_or(|node| node.id == 1));
            }
            for fence in node.fences() {
                node.append_fence(header, fence, &mut page);
            }
        }
    }
}
