//! Several trees against a map: ranges of all kinds, borders, keys that all lie in one range.

use std::collections::BTreeSet;
use std::sync::Arc;

use chimera_pmem::RealEnvironment;
use proptest::prelude::*;

use super::*;

type Key = Vec<u8>;

fn trees(ranges: &Ranges) -> Trees {
    let shape = TreeShape { node_bytes: 256, ..TreeShape::default() };
    Trees::new(shape, ranges)
}

fn given(borders: impl IntoIterator<Item = Key>) -> Ranges {
    Ranges::Given(borders.into_iter().collect::<Vec<_>>().into())
}

/// All keys between the bounds, page by page, as a cursor reads them; each page lies in one tree.
fn read(
    trees: &Trees,
    from: Bound<&[u8]>,
    to: Bound<&[u8]>,
    ascending: bool,
    most: usize,
) -> Vec<Key> {
    let environment = RealEnvironment::new();
    let (mut page, mut found) = (Page::default(), Vec::new());
    let start = if ascending { from } else { to };
    let mut next = Some(start.map(<[u8]>::to_vec));
    while let Some(at) = next {
        let at = at.as_ref().map(Vec::as_slice);
        if ascending {
            trees.read_ascending(&environment, at, most, &mut page);
        } else {
            trees.read_descending(&environment, at, most, &mut page);
        }
        assert!(page.len() <= most);
        let numbers: BTreeSet<_> =
            (0..page.len()).map(|at| trees.number_of(page.key(at))).collect();
        assert!(numbers.len() <= 1, "a page of two trees");
        found.extend((0..page.len()).map(|at| page.key(at).to_vec()));
        next = page.resume().map(|bound| bound.map(<[u8]>::to_vec));
    }
    let is_inside = |key: &Key| match if ascending { to } else { from } {
        Bound::Included(end) => {
            if ascending {
                **key <= *end
            } else {
                **key >= *end
            }
        }
        Bound::Excluded(end) => {
            if ascending {
                **key < *end
            } else {
                **key > *end
            }
        }
        Bound::Unbounded => true,
    };
    found.retain(is_inside);
    found
}

/// Whether the trees have these keys, read from any place in both directions.
fn assert_has(trees: &Trees, keys: &BTreeSet<Key>, places: &[Key]) {
    let bounds = places.iter().flat_map(|key| [Bound::Included(&**key), Bound::Excluded(&**key)]);
    for (number, bound) in bounds.chain([Bound::Unbounded]).enumerate() {
        let most = [1, 3, 1000][number % 3];
        let is_from = |key: &&Key| match bound {
            Bound::Included(start) => ***key >= *start,
            Bound::Excluded(start) => ***key > *start,
            Bound::Unbounded => true,
        };
        let up: Vec<Key> = keys.iter().filter(is_from).cloned().collect();
        assert_eq!(read(trees, bound, Bound::Unbounded, true, most), up, "from {bound:?}");
        let is_to = |key: &&Key| match bound {
            Bound::Included(end) => ***key <= *end,
            Bound::Excluded(end) => ***key < *end,
            Bound::Unbounded => true,
        };
        let down: Vec<Key> = keys.iter().rev().filter(is_to).cloned().collect();
        assert_eq!(read(trees, Bound::Unbounded, bound, false, most), down, "to {bound:?}");
    }
    assert_eq!(trees.figures().keys, keys.len() as u64);
}

#[test]
fn equal_ranges_divide_the_leading_eight_bytes() {
    let of = |count| trees(&Ranges::Equal(count));
    assert_eq!((of(1).count(), of(1).number_of(&[255; 9])), (1, 0));
    let four = of(4);
    for (key, number) in [
        (&b"\0"[..], 0),
        (b"\x3f\xff\xff\xff\xff\xff\xff\xff\xff", 0),
        // Zeros at the end make no difference.
        (b"\x40", 1),
        (b"\x40\0\0\0\0\0\0\0\0", 1),
        (b"\x7f", 1),
        (b"\x80\0", 2),
        (b"\xbf\xff", 2),
        (b"\xc0", 3),
        (&[255; 20], 3),
    ] {
        assert_eq!(four.number_of(key), number, "{key:?}");
    }
    for count in [2, 3, 5, 7, 64] {
        let trees = of(count);
        assert_eq!(trees.count(), count);
        for key in (0..10_000_u64).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
            let expected = (u128::from(key) * count as u128) >> 64;
            assert_eq!(trees.number_of(&key.to_be_bytes()) as u128, expected, "{key:#x}");
        }
    }
}

#[test]
fn keys_on_both_sides_of_a_border_are_read_in_their_order() {
    let environment = RealEnvironment::new();
    let borders = [b"b".to_vec(), b"ba".to_vec(), b"d".to_vec()];
    let trees = trees(&given(borders.clone()));
    let keys = ["a", "b", "b\0", "b\u{7f}", "ba", "bb", "c", "d", "d\0", "e"];
    let keys: BTreeSet<Key> = keys.iter().map(|key| key.as_bytes().to_vec()).collect();
    for key in &keys {
        assert!(trees.insert(&environment, key).unwrap());
    }
    let places: Vec<Key> = keys.iter().chain(&borders).cloned().collect();
    assert_has(&trees, &keys, &places);
    // A prefix whose keys lie in three trees.
    let found = read(&trees, Bound::Included(b"b"), Bound::Excluded(b"c"), true, 2);
    assert_eq!(found, [&b"b"[..], b"b\0", b"ba", b"bb", b"b\x7f"].map(<[u8]>::to_vec));
}

#[test]
fn all_keys_may_lie_in_one_range() {
    for range in 0..5 {
        let environment = RealEnvironment::new();
        let trees = trees(&Ranges::Equal(5));
        let first = (range * 51 + 20) as u8;
        let keys: BTreeSet<Key> =
            (0..200_u8).map(|number| vec![first, number, number % 3]).collect();
        trees.build(&environment, keys.iter()).unwrap();
        assert_eq!(trees.trees[range].figures().keys, 200);
        assert_has(&trees, &keys, &[vec![0], vec![first], vec![first, 100, 1], vec![255; 9]]);
        let full = trees.build(&environment, [vec![first]]).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::AlreadyExists);
        for key in &keys {
            assert!(trees.remove(&environment, key));
        }
        assert_has(&trees, &BTreeSet::new(), &[vec![first]]);
    }
}

#[test]
fn what_one_tree_has_no_memory_for_no_tree_has() {
    let environment = RealEnvironment::new();
    for without in 0..3 {
        let trees = trees(&Ranges::Equal(3));
        let keys: BTreeSet<Key> =
            (0..600_u16).map(|number| (number * 100).to_be_bytes().to_vec()).collect();
        let build = || trees.build(&environment, keys.iter());
        trees.limit(without, 5);
        assert_eq!(build().unwrap_err().kind(), io::ErrorKind::OutOfMemory);
        assert_eq!(trees.figures().keys, 0);
        trees.trees.iter().for_each(|tree| tree.verify().unwrap());
        trees.limit(without, u32::MAX);
        build().unwrap();
        trees.trees.iter().for_each(|tree| tree.verify().unwrap());
        assert_has(&trees, &keys, &[vec![0], vec![100], vec![200]]);
    }
}

fn short_key() -> impl Strategy<Value = Key> {
    prop::collection::vec(prop_oneof![Just(0_u8), 60..70_u8, Just(255)], 1..5)
}

fn ranges() -> impl Strategy<Value = Ranges> {
    let given = prop::collection::btree_set(short_key(), 0..8).prop_map(given);
    prop_oneof![(1..9_usize).prop_map(Ranges::Equal), given]
}

proptest! {
    #[test]
    fn trees_have_what_a_set_has(
        ranges in ranges(),
        built in prop::collection::btree_set(short_key(), 0..80),
        changes in prop::collection::vec((short_key(), prop::bool::weighted(0.6)), 0..120),
        places in prop::collection::vec(short_key(), 4),
    ) {
        let environment = RealEnvironment::new();
        let trees = trees(&ranges);
        trees.build(&environment, built.iter()).unwrap();
        let mut keys = built;
        for (key, is_there) in changes {
            if is_there {
                prop_assert_eq!(trees.insert(&environment, &key).unwrap(), keys.insert(key));
            } else {
                prop_assert_eq!(trees.remove(&environment, &key), keys.remove(&key));
            }
        }
        let borders = trees.borders.iter().map(|border| border.to_vec());
        let places: Vec<Key> = places.into_iter().chain(borders.filter(|key| !key.is_empty())).collect();
        assert_has(&trees, &keys, &places);
    }
}

#[test]
fn given_ranges_are_as_given() {
    let one: Arc<[Key]> = Vec::new().into();
    assert_eq!(trees(&Ranges::Given(one)).count(), 1);
    let trees = trees(&given([b"k".to_vec()]));
    assert_eq!((trees.number_of(b"j\xff"), trees.number_of(b"k"), trees.count()), (0, 1, 2));
}
