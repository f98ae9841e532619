//! The tree against a plain map.

use std::collections::BTreeSet;
use std::ops::Bound;

use chimera_pmem::SteppedEnvironment;
use proptest::prelude::*;

use super::{SIZES, Tree, ascending, descending, mix, random_key, tree};

/// A kind of keys.
#[derive(Clone, Copy, Debug)]
pub(super) enum Keys {
    /// Of 16 bytes.
    Random,
    /// Of all lengths, with much in common, zeros, and keys that are the start of others.
    Alike,
    /// Mostly longer than a node can have.
    Long,
    /// Numbers with a few prefixes.
    Ascending,
}

impl Keys {
    pub(super) const ALL: [Self; 4] = [Self::Random, Self::Alike, Self::Long, Self::Ascending];

    pub(super) fn key(self, number: u16) -> Vec<u8> {
        let random = mix(u64::from(number));
        match self {
            Self::Random => random_key(u64::from(number)).to_vec(),
            Self::Alike => {
                let mut key = vec![b'a' + (number % 3) as u8];
                for part in 0..random >> 56 & 7 {
                    let piece: &[u8] = match random >> (part * 7) & 7 {
                        0 => &[0],
                        1 => &[0, 0, 0, 0],
                        2 => &[255],
                        3 => b"the same for many",
                        4 => &[0; 9],
                        5 => b"a",
                        _ => b"abc",
                    };
                    key.extend_from_slice(piece);
                }
                key
            }
            Self::Long => {
                let mut key = vec![b'x'; (random % 7 * 40) as usize];
                key.extend_from_slice(&number.to_be_bytes()[..]);
                key.resize(key.len() + (random >> 8 & 255) as usize, b'y');
                key
            }
            Self::Ascending => {
                let prefix =
                    ["user", "user/of/a/table/with/a/long/name/", ""][(number % 3) as usize];
                [prefix.as_bytes(), &(u64::from(number) / 3).to_be_bytes()].concat()
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u16),
    InsertMany(u16, u16),
    InsertManyDescending(u16, u16),
    Remove(u16),
    RemoveMany(u16, u16),
    Get(u16),
    Ascending(u16, usize),
    Descending(u16, usize),
    Verify,
}

const NUMBERS: u16 = 700;

fn step() -> impl Strategy<Value = Step> {
    let key = 0..NUMBERS;
    let keys = (0..NUMBERS, 0..200u16);
    prop_oneof![
        20 => key.clone().prop_map(Step::Insert),
        3 => keys.clone().prop_map(|(from, count)| Step::InsertMany(from, count)),
        2 => keys.clone().prop_map(|(from, count)| Step::InsertManyDescending(from, count)),
        15 => key.clone().prop_map(Step::Remove),
        4 => keys.prop_map(|(from, count)| Step::RemoveMany(from, count)),
        5 => key.clone().prop_map(Step::Get),
        3 => (key.clone(), 1..50usize).prop_map(|(key, most)| Step::Ascending(key, most)),
        3 => (key, 1..50usize).prop_map(|(key, most)| Step::Descending(key, most)),
        1 => Just(Step::Verify),
    ]
}

/// The tree and what should be in it.
struct Pair {
    tree: Tree,
    model: BTreeSet<Vec<u8>>,
    environment: SteppedEnvironment,
}

impl Pair {
    fn new(node_bytes: u32) -> Self {
        let environment = SteppedEnvironment::in_memory(1);
        Self { tree: tree(node_bytes), model: BTreeSet::new(), environment }
    }

    fn insert(&mut self, key: Vec<u8>) {
        let is_new = self.tree.insert(&self.environment, &key).unwrap();
        assert_eq!(self.model.insert(key), is_new);
    }

    fn remove(&mut self, key: &[u8]) {
        let removed = self.tree.remove(&self.environment, key);
        assert_eq!(self.model.remove(key), removed);
    }

    fn check_ranges(&self, key: &[u8], most: usize) {
        for bound in [Bound::Included(key), Bound::Excluded(key), Bound::Unbounded] {
            let expected = self.model.range::<[u8], _>((bound, Bound::Unbounded));
            assert_eq!(ascending(&self.tree, bound, most), expected.cloned().collect::<Vec<_>>());
            let expected = self.model.range::<[u8], _>((Bound::Unbounded, bound)).rev();
            assert_eq!(descending(&self.tree, bound, most), expected.cloned().collect::<Vec<_>>());
        }
    }

    fn verify(&self) {
        self.tree.verify().unwrap();
        assert_eq!(self.tree.figures().keys, self.model.len() as u64);
    }

    fn run(&mut self, keys: Keys, steps: &[Step]) {
        let ring =
            |from: u16, count: u16| (from..from + count).map(|number| keys.key(number % NUMBERS));
        for step in steps {
            match *step {
                Step::Insert(number) => self.insert(keys.key(number)),
                Step::InsertMany(from, count) => {
                    ring(from, count).for_each(|key| self.insert(key));
                }
                Step::InsertManyDescending(from, count) => {
                    ring(from, count).rev().for_each(|key| self.insert(key));
                }
                Step::Remove(number) => self.remove(&keys.key(number)),
                Step::RemoveMany(from, count) => {
                    ring(from, count).for_each(|key| self.remove(&key));
                }
                Step::Get(number) => {
                    let key = keys.key(number);
                    let found = self.tree.has(&self.environment, &key);
                    assert_eq!(found, self.model.contains(&key));
                }
                Step::Ascending(number, most) | Step::Descending(number, most) => {
                    self.check_ranges(&keys.key(number), most);
                }
                Step::Verify => self.verify(),
            }
        }
        self.verify();
        self.check_ranges(&keys.key(steps.len() as u16), 5);
    }

    /// Down to nothing: one leaf is left.
    fn empty(&mut self) {
        let keys: Vec<_> = self.model.iter().cloned().collect();
        for (number, key) in keys.iter().enumerate() {
            self.remove(key);
            if number % 64 == 0 {
                self.verify();
            }
        }
        self.verify();
        let figures = self.tree.figures();
        assert_eq!(
            (figures.keys, figures.long_keys, figures.inner_nodes),
            (0, 0, 0),
            "{figures:?}"
        );
        assert!(figures.leaves <= 1, "{figures:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn behaves_like_a_set(
        node_bytes in prop::sample::select(&SIZES[..]),
        keys in prop_oneof![
            Just(Keys::Random), Just(Keys::Alike), Just(Keys::Long), Just(Keys::Ascending)
        ],
        steps in prop::collection::vec(step(), 1..300),
    ) {
        let mut pair = Pair::new(node_bytes);
        pair.run(keys, &steps);
        pair.empty();
        pair.run(keys, &steps[..steps.len() / 2]);
    }
}

/// Many keys of each kind in each order come and go.
#[test]
fn keys_of_all_kinds_come_and_go() {
    for node_bytes in SIZES {
        for keys in Keys::ALL {
            for order in [0, 1, 2] {
                let mut pair = Pair::new(node_bytes);
                let mut all: Vec<_> = (0..3000).map(|number| keys.key(number)).collect();
                all.sort();
                match order {
                    0 => {}
                    1 => all.reverse(),
                    _ => all.sort_by_key(|key| {
                        key.iter().fold(7, |hash, byte| mix(hash ^ u64::from(*byte)))
                    }),
                }
                for key in &all {
                    pair.insert(key.clone());
                }
                pair.verify();
                pair.check_ranges(&all[1500], 20);
                for key in all.iter().step_by(3).chain(all.iter().skip(1).step_by(3)) {
                    pair.remove(key);
                }
                pair.verify();
                pair.check_ranges(&all[1500], 20);
                pair.empty();
            }
        }
    }
}

/// The longest keys there can be, which differ at their ends only.
#[test]
fn keys_of_64_kib_differ_at_the_end() {
    for node_bytes in [128, 2048] {
        let mut pair = Pair::new(node_bytes);
        let key = |number: u64| {
            let mut key = vec![b'k'; 64 << 10];
            let end = key.len() - 8;
            key[end..].copy_from_slice(&mix(number).to_be_bytes());
            key
        };
        (0..300).for_each(|number| pair.insert(key(number)));
        pair.verify();
        pair.check_ranges(&key(7), 9);
        pair.empty();
    }
}
