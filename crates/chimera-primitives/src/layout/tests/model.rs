//! Random operations on nodes of every layout, beside a sorted map.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

type Model = BTreeMap<Vec<u64>, Vec<u8>>;

#[derive(Clone, Debug)]
enum Step {
    Insert(u64),
    Erase(u64),
    Split(bool),
    Merge,
    Balance(bool, u8),
    Recover,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..200_u64).prop_map(Step::Insert),
        4 => (0..200_u64).prop_map(Step::Erase),
        1 => any::<bool>().prop_map(Step::Split),
        1 => Just(Step::Merge),
        1 => (any::<bool>(), any::<u8>()).prop_map(|(way, count)| Step::Balance(way, count)),
        1 => Just(Step::Recover),
    ]
}

/// Two neighbours in a chain: keys of the second are larger.
struct Pair<'a, P: Pmem> {
    nodes: [Node<'a, P>; 2],
    models: [Model; 2],
    scratch: Scratch,
}

impl<P: Pmem> Pair<'_, P> {
    fn compare<L: Layout>(&self) {
        for (node, model) in self.nodes.iter().zip(&self.models) {
            let all: Vec<_> = model.clone().into_iter().collect();
            assert_eq!(contents::<L, _>(*node), all, "{}", L::KIND);
            assert_eq!(L::count(*node).expect("a count"), model.len());
            for number in 0..200 {
                let key = key_of(node.geometry, number);
                for how in Search::ALL {
                    let found = L::search(*node, &key, how).expect("it searches");
                    let value = found.map(|place| {
                        let mut value = vec![0; node.geometry.shape.value_bytes as usize];
                        node.read_value(place.index, &mut value);
                        value
                    });
                    assert_eq!(value.as_ref(), model.get(&key), "{} {how:?} {number}", L::KIND);
                }
                let rank = L::rank_of(*node, &key).expect("a rank");
                if matches!(L::KIND, LayoutKind::Sorted | LayoutKind::Indirection) {
                    assert_eq!(rank, model.range(..key).count());
                }
            }
            let mut ordered = Vec::new();
            L::iterate(*node, Walk::Slots, |index| node.read_key(index, &mut ordered))
                .expect("it iterates");
            if matches!(L::KIND, LayoutKind::Sorted | LayoutKind::Indirection) {
                assert!(ordered.chunks(node.geometry.key_words).is_sorted());
            }
        }
    }

    /// The node that a key belongs to.
    fn side(&self, key: &[u64]) -> usize {
        let first = self.models[1].keys().next();
        usize::from(first.is_some_and(|first| key >= &first[..]))
    }

    fn step<L: Layout>(&mut self, step: &Step) {
        let [left, right] = self.nodes;
        let entries = left.geometry.entries;
        match *step {
            Step::Insert(number) => {
                let key = key_of(left.geometry, number);
                let side = self.side(&key);
                let (node, model) = (self.nodes[side], &mut self.models[side]);
                if model.contains_key(&key) {
                    return;
                }
                let (rank, value) =
                    (L::rank_of(node, &key).expect("a rank"), value_of(node.geometry, number));
                match L::insert(node, rank, &key, &value, &mut self.scratch) {
                    Ok(()) => drop(model.insert(key, value)),
                    Err(PrimitivesError::Full) => assert_eq!(model.len(), entries),
                    Err(error) => panic!("{error}"),
                }
            }
            Step::Erase(number) => {
                let key = key_of(left.geometry, number);
                let side = self.side(&key);
                let node = self.nodes[side];
                if let Some(place) = L::search(node, &key, Search::Binary).expect("it searches") {
                    L::erase(node, place, &mut self.scratch).expect("it erases");
                    self.models[side].remove(&key).expect("it was there");
                }
            }
            Step::Split(copy) => {
                if self.models[1].is_empty() && self.models[0].len() >= 2 {
                    let how = if copy { Split::Copy } else { Split::Move };
                    L::split(left, right, how, &mut self.scratch).expect("it splits");
                    let [low, high] = &mut self.models;
                    *high = low.split_off(&self.scratch.separator);
                    assert!(low.len() - high.len() <= 1, "{} and {}", low.len(), high.len());
                    assert_eq!(left.next(), right.offset());
                    assert_eq!(right.prev(), left.offset());
                }
            }
            Step::Merge => {
                let [low, high] = &mut self.models;
                match L::merge(left, right, &mut self.scratch) {
                    Ok(()) => {
                        low.append(high);
                        L::format(right);
                    }
                    Err(PrimitivesError::Full) => assert!(low.len() + high.len() > entries),
                    Err(error) => panic!("{error}"),
                }
            }
            Step::Balance(way, count) => self.balance::<L>(way, usize::from(count) % 8),
            Step::Recover => {
                for (node, model) in self.nodes.into_iter().zip(&self.models) {
                    let recovered = L::recover(node, &mut self.scratch).expect("it recovers");
                    assert_eq!(recovered, Recovered { entries: model.len(), repaired: false });
                }
            }
        }
    }

    fn balance<L: Layout>(&mut self, to_smaller: bool, count: usize) {
        let [left, right] = self.nodes;
        let [low, high] = &mut self.models;
        let (direction, donor, receiver) = if to_smaller {
            (Direction::ToSmaller, right, left)
        } else {
            (Direction::ToLarger, left, right)
        };
        let (from, to) = if to_smaller { (high, low) } else { (low, high) };
        match L::balance(donor, receiver, count, direction, &mut self.scratch) {
            Ok(()) => {
                for _ in 0..count {
                    let moved = if to_smaller { from.pop_first() } else { from.pop_last() };
                    let (key, value) = moved.expect("there were as many");
                    to.insert(key, value);
                }
            }
            Err(PrimitivesError::Full) => {
                assert!(count > from.len() || count + to.len() > left.geometry.entries);
            }
            Err(error) => panic!("{error}"),
        }
    }
}

struct Run<'a> {
    shape: NodeShape,
    steps: &'a [Step],
}

impl LayoutVisitor for Run<'_> {
    type Output = ();

    fn visit<L: Layout>(self) {
        let pmem = memory(64 << 10);
        let geometry = Geometry::new(self.shape).expect("it fits");
        let nodes = [0, 16 << 10].map(|at| Node::at(&pmem, &geometry, at).expect("mapped"));
        nodes.into_iter().for_each(L::format);
        let mut pair = Pair { nodes, models: <_>::default(), scratch: Scratch::default() };
        for (number, step) in self.steps.iter().enumerate() {
            pair.step::<L>(step);
            if number % 16 == 0 || number + 1 == self.steps.len() {
                pair.compare::<L>();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn nodes_do_what_sorted_maps_do(
        steps in prop::collection::vec(step(), 1..150),
        sizes in prop::sample::select(vec![(8, 16), (3, 5), (16, 40), (24, 8)]),
        node_bytes in prop::sample::select(vec![512, 1024, 4096]),
    ) {
        for kind in LayoutKind::ALL {
            let shape = NodeShape { kind, key_bytes: sizes.0, value_bytes: sizes.1, node_bytes };
            kind.visit(Run { shape, steps: &steps });
        }
    }
}

/// Searches on keys that are spread unevenly, where interpolation guesses badly.
#[test]
fn every_search_finds_every_key() {
    let pmem = memory(64 << 10);
    let geometry = published(LayoutKind::Sorted, 4096);
    let node = Node::at(&pmem, &geometry, 0).expect("mapped");
    for spread in 1..6_u32 {
        Sorted::format(node);
        let numbers: Vec<u64> =
            (0..geometry.entries as u64).map(|number| (number + 1).pow(spread)).collect();
        insert_all::<Sorted, _>(node, numbers.iter().copied());
        for (rank, number) in numbers.iter().enumerate() {
            for how in Search::ALL {
                let find = |number: u64| Sorted::search(node, &[number], how).expect("it searches");
                assert_eq!(find(*number), Some(Place { rank, index: rank }), "{how:?}");
                if spread > 1 {
                    assert_eq!(find(number + 1), None, "{how:?}");
                }
            }
        }
    }
}
