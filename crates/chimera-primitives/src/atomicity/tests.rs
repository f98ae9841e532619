//! Transactions, guarded nodes and runs against models.

use std::collections::BTreeMap;
use std::sync::Arc;

use chimera_pmem::environment::AnonymousFile;
use chimera_pmem::{Extent, Hardware, HardwareOptions, Pmem, Site};

use super::*;
use crate::layout::{Geometry, Layout, LayoutKind, NodeShape, Scratch, Search, Sorted};

const BYTES: u64 = 1 << 20;
const SITE: Site = Site::new("test.atomicity");

fn memory() -> Hardware {
    let options = HardwareOptions { reserve_bytes: 1 << 26, ..HardwareOptions::default() };
    let pmem = Hardware::new(options).expect("address space");
    let file: Arc<dyn chimera_pmem::environment::File> = Arc::new(AnonymousFile::new(BYTES));
    pmem.map(0, &file, 0, BYTES).expect("memory");
    pmem
}

#[test]
fn transactions_are_taken_back_or_not() {
    let pmem = memory();
    let log = UndoLog::new(&pmem, 4096, 4096).expect("mapped");
    let place = Extent::new_checked(0, 64);
    for is_committed in [false, true] {
        let before = pmem.load_u64(8);
        let mut transaction = log.begin(&pmem);
        transaction.snapshot(place).expect("it fits");
        transaction.store(8, before + 1);
        if is_committed {
            transaction.commit();
        }
        assert_eq!(log.recover(&pmem).expect("it recovers"), !is_committed);
        assert_eq!(pmem.load_u64(8), before + u64::from(is_committed));
    }
    let mut transaction = log.begin(&pmem);
    let large = Extent::new_checked(8192, 8192);
    assert!(matches!(transaction.snapshot(large), Err(crate::PrimitivesError::Full)));
}

#[test]
fn damaged_logs_are_errors() {
    let pmem = memory();
    let log = UndoLog::new(&pmem, 4096, 4096).expect("mapped");
    for word in 0..6 {
        for damage in [1 << 40, u64::MAX, 3] {
            let mut transaction = log.begin(&pmem);
            transaction.snapshot(Extent::new_checked(0, 64)).expect("it fits");
            let at = if word == 5 { 4096 } else { 4096 + 64 + 8 * word };
            if word == 3 {
                continue; // It is reserved.
            }
            pmem.store_u64(at, damage, SITE);
            assert!(log.recover(&pmem).is_err(), "word {word}");
            pmem.store_u64(4096, 0, SITE);
        }
    }
}

#[test]
fn guarded_nodes_keep_what_they_are_given() {
    for kind in FailureAtomicity::ALL {
        let pmem = memory();
        let geometry = Geometry::new(NodeShape::published(LayoutKind::Sorted, 512)).expect("fits");
        let mut scratch = Scratch::default();
        for round in 0..3 {
            let open = || GuardedNode::open::<Sorted, _>(&pmem, 64, geometry, kind);
            let guarded = open().expect("it opens");
            for number in 0..4 {
                let key = [10 * number + round];
                guarded
                    .change(&pmem, |node| {
                        let rank = Sorted::rank_of(node, &key)?;
                        Sorted::insert(node, rank, &key, &[7; 16], &mut scratch)
                    })
                    .expect("it has room");
            }
            let refused = guarded.change(&pmem, |node| {
                Sorted::insert(node, 0, &[0], &[0; 16], &mut scratch)?;
                Err::<(), _>(crate::PrimitivesError::Full)
            });
            assert!(refused.is_err());
            let guarded = open().expect("it opens again");
            let node = guarded.node(&pmem).expect("a node");
            assert_eq!(Sorted::count(node).expect("a count"), 4 * (round as usize + 1), "{kind}");
            let found = Sorted::search(node, &[20 + round], Search::Binary).expect("it searches");
            assert!(found.is_some(), "{kind}");
        }
        pmem.store_u64(64, 9, SITE);
        assert!(GuardedNode::open::<Sorted, _>(&pmem, 64, geometry, kind).is_err());
    }
}

#[test]
fn runs_hold_the_newest_of_each_key() {
    for kind in FailureAtomicity::ALL {
        for (how, into) in [
            (Merge::TwoWay, MergeInto::Direct),
            (Merge::TwoWay, MergeInto::Buffered),
            (Merge::KWay, MergeInto::Direct),
            (Merge::KWay, MergeInto::Buffered),
        ] {
            let pmem = memory();
            let geometry = RunGeometry { key_words: 2, value_bytes: 16, entries: 10 };
            let open = || Runs::open(&pmem, 128, geometry, 100, kind).expect("it opens");
            let mut model = BTreeMap::new();
            for round in 0..40_u64 {
                let runs = open();
                if runs.filled(&pmem).expect("a count") == L0_RUNS {
                    runs.merge(&pmem, how, into).expect("it merges");
                    assert_eq!(runs.second_count(&pmem).expect("a count"), model.len());
                }
                let mut buffer = RunBuffer::default();
                for number in 0..10_u64 {
                    let key = [0, (round * 7 % 13) + 5 * number];
                    let value = [round.to_le_bytes(), number.to_le_bytes()].concat();
                    buffer.push(&key, &value);
                    model.insert(key, value);
                }
                runs.push(&pmem, &buffer).expect("it has room");
                let runs = open();
                for (key, value) in &model {
                    let mut found = Vec::new();
                    assert!(runs.get(&pmem, key, &mut found).expect("it searches"), "{key:?}");
                    assert_eq!(found, *value, "{kind} {how:?} {into:?}");
                }
                assert!(!runs.get(&pmem, &[1, 1], &mut Vec::new()).expect("it searches"));
            }
        }
    }
}

#[test]
fn runs_without_room_are_refused_and_damaged_ones_are_errors() {
    let pmem = memory();
    let geometry = RunGeometry::published(256);
    let runs = Runs::open(&pmem, 0, geometry, 20, FailureAtomicity::Transactional).expect("opens");
    for round in 0..4 {
        let mut buffer = RunBuffer::default();
        (0..8).for_each(|number| buffer.push(&[100 * round + number], &[1; 16]));
        runs.push(&pmem, &buffer).expect("it has room");
    }
    for (how, into) in [(Merge::KWay, MergeInto::Direct), (Merge::TwoWay, MergeInto::Buffered)] {
        let error = runs.merge(&pmem, how, into).expect_err("32 of 20");
        assert!(matches!(error, crate::PrimitivesError::Full));
        assert_eq!(runs.filled(&pmem).expect("a count"), 4);
    }
    for damage in [5, 0x300, u64::MAX] {
        pmem.store_u64(0, damage, SITE);
        assert!(Runs::open(&pmem, 0, geometry, 20, FailureAtomicity::NoFa).is_err());
    }
}
