//! Bytes, flushes and fences of every operation, by counters against the formulas.

use chimera_pmem::Operation;
use chimera_pmem::instrumented::OperationCounters;

use super::*;
use sizes::Spread;

const NODE_AT: [u64; 2] = [0, 16 << 10];

/// What `work` costs.
fn counted(pmem: &Instrumented<Hardware>, work: impl FnOnce()) -> OperationCounters {
    pmem.reset();
    pmem.operation_begin(Operation::Insert, 0);
    work();
    pmem.operation_acknowledge();
    let counters = pmem.snapshot().of(Operation::Insert);
    assert_eq!(counters.lines_flushed_clean, 0, "flushes of lines without news");
    counters
}

/// Numbers in an order without any pattern that matters.
fn shuffled(count: usize) -> Vec<u64> {
    let mut numbers: Vec<u64> = (0..count as u64).collect();
    numbers.sort_by_key(|number| number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 7);
    numbers
}

/// The indices of the entries whose numbers are wanted.
fn indices<L: Layout>(
    node: Node<'_, Instrumented<Hardware>>,
    wanted: impl Fn(u64) -> bool,
) -> Vec<usize> {
    let mut found = Vec::new();
    L::iterate(node, Walk::Bitmap, |index| {
        let mut key = Vec::new();
        node.read_key(index, &mut key);
        if wanted(key[0]) {
            found.push(index);
        }
    })
    .expect("it iterates");
    found
}

struct Costs {
    node_bytes: u32,
}

impl Costs {
    fn each(node_bytes: u32) {
        for kind in LayoutKind::ALL {
            kind.visit(Self { node_bytes });
        }
    }
}

impl LayoutVisitor for Costs {
    type Output = ();

    fn visit<L: Layout>(self) {
        let pmem = memory(64 << 10);
        let geometry = published(L::KIND, self.node_bytes);
        let nodes = NODE_AT.map(|at| Node::at(&pmem, &geometry, at).expect("mapped"));
        insert_and_erase::<L>(&pmem, nodes[0]);
        splits::<L>(&pmem, nodes);
        balances::<L>(&pmem, nodes);
        merges::<L>(&pmem, nodes);
    }
}

fn insert_and_erase<L: Layout>(
    pmem: &Instrumented<Hardware>,
    node: Node<'_, Instrumented<Hardware>>,
) {
    let (geometry, entries) = (node.geometry, node.geometry.entries);
    let mut scratch = Scratch::default();
    for missing in [0, entries / 2, entries - 1] {
        L::format(node);
        insert_all::<L, _>(node, (0..entries as u64).filter(|number| *number != missing as u64));
        let (key, value) = (key_of(geometry, missing as u64), value_of(geometry, missing as u64));
        let rank = L::rank_of(node, &key).expect("a rank");
        let cost = counted(pmem, || {
            L::insert(node, rank, &key, &value, &mut scratch).expect("it has room");
        });
        let expected = sizes::insert(geometry, entries - 1, missing);
        assert_eq!(cost.bytes_stored, expected, "insert at {missing}, {}", L::KIND);
        assert_eq!(cost.fences, 2, "{}", L::KIND);
        let place = L::search(node, &key, Search::Binary).expect("it searches").expect("there");
        let cost = counted(pmem, || L::erase(node, place, &mut scratch).expect("it erases"));
        let expected = sizes::erase(geometry, entries, place.rank);
        assert_eq!(cost.bytes_stored, expected, "erase at {missing}, {}", L::KIND);
        let moves = L::KIND.has_count() && place.index + 1 < entries;
        assert_eq!(cost.fences, 1 + u64::from(moves), "{}", L::KIND);
    }
}

fn splits<L: Layout>(
    pmem: &Instrumented<Hardware>,
    [node, new]: [Node<'_, Instrumented<Hardware>>; 2],
) {
    let entries = node.geometry.entries;
    let keep = entries - entries / 2;
    for how in [Split::Move, Split::Copy] {
        for numbers in [(0..entries as u64).collect(), shuffled(entries)] {
            L::format(node);
            insert_all::<L, _>(node, numbers);
            let spread = Spread::of(&indices::<L>(node, |number| number >= keep as u64), keep);
            let mut scratch = Scratch::default();
            let cost = counted(pmem, || L::split(node, new, how, &mut scratch).expect("it splits"));
            let expected = sizes::split(node.geometry, entries, how, spread);
            assert_eq!(cost.bytes_stored, expected, "{how:?} {spread:?}, {}", L::KIND);
            let closes = L::KIND.has_count() && spread.gaps > 0 && L::KIND != LayoutKind::Sorted;
            assert_eq!(cost.fences, 2 + u64::from(closes), "{}", L::KIND);
        }
    }
}

fn balances<L: Layout>(
    pmem: &Instrumented<Hardware>,
    nodes: [Node<'_, Instrumented<Hardware>>; 2],
) {
    let [donor, receiver] = nodes;
    let entries = donor.geometry.entries;
    let (half, moved) = (entries / 2 - 1, entries / 4);
    for direction in [Direction::ToSmaller, Direction::ToLarger] {
        for numbers in [(0..entries as u64).collect(), shuffled(entries)] {
            nodes.into_iter().for_each(L::format);
            insert_all::<L, _>(donor, numbers.iter().map(|number| number + 1000));
            let first = if direction == Direction::ToSmaller { 0 } else { 9000 };
            insert_all::<L, _>(receiver, (0..half as u64).map(|number| first + number));
            let leaves = |number: u64| match direction {
                Direction::ToSmaller => number < 1000 + moved as u64,
                Direction::ToLarger => number >= 1000 + (entries - moved) as u64,
            };
            let spread = Spread::of(&indices::<L>(donor, leaves), entries - moved);
            let mut scratch = Scratch::default();
            let cost = counted(pmem, || {
                L::balance(donor, receiver, moved, direction, &mut scratch).expect("it has room");
            });
            let counts = (entries, half, moved);
            let expected = sizes::balance(donor.geometry, counts, direction, spread);
            assert_eq!(cost.bytes_stored, expected, "{direction:?} {spread:?}, {}", L::KIND);
        }
    }
}

fn merges<L: Layout>(pmem: &Instrumented<Hardware>, nodes: [Node<'_, Instrumented<Hardware>>; 2]) {
    let [receiver, donor] = nodes;
    let entries = receiver.geometry.entries;
    let (has, more) = (entries / 2, entries / 2 - 1);
    nodes.into_iter().for_each(L::format);
    insert_all::<L, _>(receiver, 0..has as u64);
    insert_all::<L, _>(donor, shuffled(more).into_iter().map(|number| number + 1000));
    let mut scratch = Scratch::default();
    let cost = counted(pmem, || L::merge(receiver, donor, &mut scratch).expect("it has room"));
    assert_eq!(cost.bytes_stored, sizes::merge(receiver.geometry, has, more), "{}", L::KIND);
}

#[test]
fn bytes_are_those_of_the_formulas() {
    for node_bytes in table4::NODE_BYTES {
        Costs::each(node_bytes);
    }
}

/// What the paper says of directions, at 1 KiB.
#[test]
fn writes_are_ordered_as_in_the_paper() {
    let insert = |kind| sizes::insert(&published(kind, 1024), 36, 0);
    let others = [LayoutKind::Unsorted, LayoutKind::Hashing, LayoutKind::Bitmap];
    for other in others {
        assert!(insert(LayoutKind::Sorted) > 10 * insert(other), "{other}");
        assert!(insert(LayoutKind::Indirection) > insert(other), "{other}");
    }
    let erase = |kind| sizes::erase(&published(kind, 1024), 37, 0);
    assert!(erase(LayoutKind::Hashing) < erase(LayoutKind::Unsorted));
    assert!(erase(LayoutKind::Indirection) < erase(LayoutKind::Sorted) / 10);
}
