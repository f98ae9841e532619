//! Nodes that cannot be: an error, or an answer, and never an access outside of the node.

use chimera_pmem::Extent;

use super::*;

const SITE: chimera_pmem::Site = chimera_pmem::Site::new("test.damage");

struct Hostile;

impl LayoutVisitor for Hostile {
    type Output = ();

    fn visit<L: Layout>(self) {
        // The node lies at the very end of what is mapped.
        let pmem = memory(64 << 10);
        let geometry = published(L::KIND, 1024);
        let last = (64 << 10) - 1024;
        let nodes = [last, 0].map(|at| Node::at(&pmem, &geometry, at).expect("mapped"));
        let words = geometry.keys_at / 8;
        for word in 0..words {
            for damage in [u64::MAX, 1 << 40, 0xFF, 0x2525_2525_2525_2525] {
                nodes.into_iter().for_each(L::format);
                insert_all::<L, _>(nodes[0], 0..20);
                insert_all::<L, _>(nodes[1], 100..110);
                pmem.store_u64(last + 8 * word, damage, SITE);
                exercise::<L>(nodes);
            }
        }
    }
}

/// Everything may be refused; nothing may panic.
fn exercise<L: Layout>([node, other]: [Node<'_, Instrumented<Hardware>>; 2]) {
    let mut scratch = Scratch::default();
    let key = key_of(node.geometry, 7);
    for how in Search::ALL {
        let _ = L::search(node, &key, how);
    }
    let _ = L::iterate(node, Walk::Slots, drop);
    let _ = L::iterate(node, Walk::Bitmap, drop);
    let _ = L::count(node);
    let _ = L::insert(node, 3, &key_of(node.geometry, 50), &[0; 16], &mut scratch);
    let _ = L::erase(node, Place { rank: 30, index: 30 }, &mut scratch);
    let _ = L::balance(node, other, 3, Direction::ToLarger, &mut scratch);
    let _ = L::merge(other, node, &mut scratch);
    let _ = L::split(node, other, Split::Copy, &mut scratch);
    let _ = L::recover(node, &mut scratch);
}

#[test]
fn damaged_nodes_are_errors() {
    for kind in LayoutKind::ALL {
        kind.visit(Hostile);
    }
}

#[test]
fn links_that_lead_nowhere_are_errors() {
    let pmem = memory(64 << 10);
    let geometry = published(LayoutKind::Sorted, 1024);
    for at in [8, 63, (64 << 10) - 512, u64::MAX - 63, 1 << 40] {
        let error = Node::at(&pmem, &geometry, at).expect_err("no node");
        assert!(matches!(error, PrimitivesError::Corrupted { .. }), "{error}");
    }
}

/// Slots that a crash left behind are made anew from the bitmap, hashes from the keys.
#[test]
fn recovery_mends_search_structures() {
    let pmem = memory(64 << 10);
    let mut scratch = Scratch::default();
    for kind in [LayoutKind::Indirection, LayoutKind::Hashing, LayoutKind::HashingCounted] {
        let geometry = published(kind, 1024);
        let node = Node::at(&pmem, &geometry, 0).expect("mapped");
        let at = if kind.has_slots() { geometry.slots_at } else { geometry.hashes_at };
        let mended = match kind {
            LayoutKind::Indirection => mend::<Indirection>(node, at, &mut scratch),
            LayoutKind::Hashing => mend::<Hashing>(node, at, &mut scratch),
            _ => mend::<HashingCounted>(node, at, &mut scratch),
        };
        assert_eq!(mended, Recovered { entries: 20, repaired: true }, "{kind}");
    }
}

fn mend<L: Layout>(
    node: Node<'_, Instrumented<Hardware>>,
    at: u64,
    scratch: &mut Scratch,
) -> Recovered {
    L::format(node);
    insert_all::<L, _>(node, 0..20);
    let before = contents::<L, _>(node);
    node.pmem.zero(Extent::new_checked(node.at + at, 8), SITE);
    let recovered = L::recover(node, scratch).expect("it recovers");
    assert_eq!(contents::<L, _>(node), before);
    assert_eq!(
        L::recover(node, scratch).expect("again"),
        Recovered { repaired: false, ..recovered }
    );
    for number in 0..20 {
        let key = key_of(node.geometry, number);
        assert!(L::search(node, &key, Search::Binary).expect("it searches").is_some());
    }
    recovered
}
