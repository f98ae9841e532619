//! Trees against sorted maps, by counters, and damaged.

use std::collections::BTreeMap;
use std::sync::Arc;

use chimera_pmem::environment::AnonymousFile;
use chimera_pmem::instrumented::InstrumentedOptions;
use chimera_pmem::{
    Environment, Hardware, HardwareOptions, Instrumented, Operation, Pmem, RealEnvironment, Site,
};
use proptest::prelude::*;

use super::*;

type Counted = Instrumented<Hardware>;

fn empty() -> Counted {
    let options = HardwareOptions { reserve_bytes: 1 << 28, ..HardwareOptions::default() };
    Instrumented::new(
        Hardware::new(options).expect("address space"),
        InstrumentedOptions::default(),
    )
}

fn memory(bytes: u64) -> Counted {
    let pmem = empty();
    let file: Arc<dyn chimera_pmem::environment::File> = Arc::new(AnonymousFile::new(bytes));
    pmem.map(0, &file, 0, bytes).expect("memory");
    pmem
}

const SHAPE: TreeShape = TreeShape { key_bytes: 12, value_bytes: 20, leaf_entries: 6 };

fn key(number: u64) -> [u8; 12] {
    let mut key = *b"key.........";
    key[4..].copy_from_slice(&number.to_be_bytes());
    key
}

fn value(number: u64) -> Vec<u8> {
    (0..20).map(|byte| (number.wrapping_mul(7) + byte) as u8).collect()
}

#[derive(Clone, Debug)]
enum Step {
    Put(u64, u64),
    Update(u64, u64),
    Delete(u64),
    Scan(u64, usize),
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..300_u64, any::<u64>()).prop_map(|(key, value)| Step::Put(key, value)),
        2 => (0..300_u64, any::<u64>()).prop_map(|(key, value)| Step::Update(key, value)),
        5 => (0..300_u64).prop_map(Step::Delete),
        1 => (0..300_u64, 0..50_usize).prop_map(|(key, count)| Step::Scan(key, count)),
        1 => Just(Step::Reopen),
    ]
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn compare<T: Tree<Counted>>(tree: &T, model: &Model) {
    tree.check().expect("it is sound");
    assert_eq!(tree.footprint().records, model.len() as u64);
    let mut all = Vec::new();
    let take = |key: &[u8], value: &[u8]| all.push((key.to_vec(), value.to_vec()));
    let count = tree.scan(&[0; 12], usize::MAX, take).expect("it scans");
    assert_eq!(count, model.len());
    assert!(all.iter().map(|(key, value)| (key, value)).eq(model), "{}", T::NAME);
    for number in 0..300 {
        let mut found = Vec::new();
        let is_there = tree.get(&key(number), &mut found).expect("it gets");
        assert_eq!(is_there.then_some(&found), model.get(&key(number)[..]), "{} {number}", T::NAME);
    }
}

/// A file that both lives of a tree lie on.
fn run<T: Tree<Counted>>(steps: &[Step]) {
    let directory = tempfile::tempdir().expect("a directory");
    let environment = RealEnvironment::new();
    let bytes = T::bytes_for(SHAPE, 300).expect("it fits").next_multiple_of(4096);
    let path = directory.path().join("tree");
    let file =
        environment.open(&path, chimera_pmem::environment::OpenMode::CreateNew).expect("a file");
    file.allocate(0, bytes).expect("room");
    let open = || {
        let pmem = empty();
        pmem.map(0, &file, 0, bytes).expect("mapped");
        T::open(pmem, SHAPE).expect("it opens")
    };
    let (mut tree, mut model) = (open(), Model::new());
    for (number, step) in steps.iter().enumerate() {
        match *step {
            Step::Put(number, of) => {
                let is_new = tree.put(&key(number), &value(of)).expect("it puts");
                assert_eq!(is_new, model.insert(key(number).to_vec(), value(of)).is_none());
            }
            Step::Update(number, of) => {
                let was_there = tree.update(&key(number), &value(of)).expect("it updates");
                assert_eq!(was_there, model.contains_key(&key(number)[..]));
                if was_there {
                    model.insert(key(number).to_vec(), value(of));
                }
            }
            Step::Delete(number) => {
                let was_there = tree.delete(&key(number)).expect("it deletes");
                assert_eq!(was_there, model.remove(&key(number)[..]).is_some());
            }
            Step::Scan(from, count) => {
                let expected = model.range(key(from).to_vec()..).take(count).count();
                assert_eq!(tree.scan(&key(from), count, |_, _| ()).expect("it scans"), expected);
            }
            Step::Reopen => {
                drop(tree);
                tree = open();
            }
        }
        if number % 64 == 0 {
            compare(&tree, &model);
        }
    }
    compare(&tree, &model);
    drop(tree);
    compare(&open(), &model);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn trees_do_what_sorted_maps_do(steps in prop::collection::vec(step(), 1..600)) {
        run::<FpTree<Counted>>(&steps);
        run::<NvTree<Counted>>(&steps);
        run::<CachedFpTree<Counted>>(&steps);
    }
}

/// Keys in their order, and backwards, which fill parents of leaves one after the other.
#[test]
fn trees_take_keys_in_any_order() {
    fn fill<T: Tree<Counted>>(numbers: impl Iterator<Item = u64>) {
        let bytes = T::bytes_for(SHAPE, 10_000).expect("it fits").next_multiple_of(4096);
        let mut tree = T::open(memory(bytes), SHAPE).expect("it opens");
        let mut count = 0;
        for number in numbers {
            assert!(tree.put(&key(number), &value(number)).expect("it puts"));
            count += 1;
        }
        tree.check().expect("it is sound");
        assert_eq!(tree.footprint().records, count);
        for number in 0..count {
            let mut found = Vec::new();
            assert!(tree.get(&key(number), &mut found).expect("it gets"), "{number}");
            assert_eq!(found, value(number));
        }
    }
    fill::<FpTree<Counted>>(0..5000);
    fill::<NvTree<Counted>>(0..5000);
    fill::<FpTree<Counted>>((0..5000).rev());
    fill::<NvTree<Counted>>((0..5000).rev());
}

/// Fences of an operation that neither splits nor empties a leaf.
fn persists<T: Tree<Counted>>() -> [u64; 3] {
    let shape = TreeShape::new(16, 200).expect("it fits");
    let bytes = T::bytes_for(shape, 1000).expect("it fits").next_multiple_of(4096);
    let mut tree = T::open(memory(bytes), shape).expect("it opens");
    for number in 0..10_u64 {
        tree.put(&[number as u8; 16], &[1; 200]).expect("it puts");
    }
    let fences = |tree: &mut T, work: &dyn Fn(&mut T) -> bool| {
        tree.pmem().reset();
        assert!(work(tree));
        let total = tree.pmem().snapshot().total();
        assert_eq!((total.lines_flushed_clean, total.lines_reflushed), (0, total.lines_reflushed));
        total.fences
    };
    [
        fences(&mut tree, &|tree| tree.put(&[77; 16], &[2; 200]).expect("it puts")),
        fences(&mut tree, &|tree| tree.update(&[3; 16], &[3; 200]).expect("it updates")),
        fences(&mut tree, &|tree| tree.delete(&[5; 16]).expect("it deletes")),
    ]
}

/// HiKV, section 4.2.1: what a put, an update and a delete persist.
#[test]
fn persists_are_those_of_the_papers() {
    assert_eq!(persists::<FpTree<Counted>>(), [3, 3, 1]);
    assert_eq!(persists::<CachedFpTree<Counted>>(), [3, 3, 1]);
    assert_eq!(persists::<NvTree<Counted>>(), [2, 2, 2]);
}

/// What a scan reads is booked as a scan's, which is a get's.
#[test]
fn scans_count_what_they_read() {
    fn lines<T: Tree<Counted>>() -> u64 {
        let bytes = T::bytes_for(SHAPE, 1000).expect("it fits").next_multiple_of(4096);
        let mut tree = T::open(memory(bytes), SHAPE).expect("it opens");
        for number in 0..500 {
            tree.put(&key(number), &value(number)).expect("it puts");
        }
        tree.pmem().reset();
        assert_eq!(tree.scan(&key(100), 200, |_, _| ()).expect("it scans"), 200);
        let snapshot = tree.pmem().snapshot();
        let gets = snapshot.operations.get(&Operation::Get).expect("there is one");
        assert_eq!(gets.operations, 1);
        assert_eq!(gets.lines_read(), snapshot.total().lines_read());
        gets.lines_read()
    }
    // At the least the values, of which a line has some.
    let least = 200 * u64::from(SHAPE.value_bytes) / 64;
    assert!(lines::<FpTree<Counted>>() >= least);
    assert!(lines::<CachedFpTree<Counted>>() >= least);
    assert!(lines::<NvTree<Counted>>() >= least);
}

/// HiKV, section 4.7: one parent for each leaf takes far more DRAM than a tree over them.
#[test]
fn inner_nodes_of_nvtree_need_more_dram() {
    fn dram<T: Tree<Counted>>() -> u64 {
        let bytes = T::bytes_for(SHAPE, 10_000).expect("it fits").next_multiple_of(4096);
        let mut tree = T::open(memory(bytes), SHAPE).expect("it opens");
        for number in 0..10_000_u64 {
            tree.put(&key(number.wrapping_mul(0x9E37_79B9_7F4A_7C15)), &value(number))
                .expect("it puts");
        }
        tree.footprint().dram_bytes
    }
    let (fptree, nvtree) = (dram::<FpTree<Counted>>(), dram::<NvTree<Counted>>());
    assert!(nvtree > 4 * fptree, "{nvtree} against {fptree}");
}

/// A full pool refuses, and nothing has changed.
#[test]
fn full_pools_refuse() {
    fn fill<T: Tree<Counted>>() {
        let bytes = T::bytes_for(SHAPE, 100).expect("it fits");
        let mut tree = T::open(memory(bytes.next_multiple_of(4096)), SHAPE).expect("it opens");
        let mut count = 0;
        let error = loop {
            match tree.put(&key(count * 17 % 1009), &value(count)) {
                Ok(is_new) => assert!(is_new),
                Err(error) => break error,
            }
            count += 1;
        };
        assert!(matches!(error, PrimitivesError::Full), "{error}");
        assert!(count >= 100, "{count}");
        assert_eq!(tree.footprint().records, count);
        tree.check().expect("it is sound");
    }
    fill::<FpTree<Counted>>();
    fill::<NvTree<Counted>>();
}

/// Every word of the header and of a leaf's metadata damaged: an error or an answer, never a panic or a circle.
#[test]
fn damaged_trees_are_errors() {
    const SITE: Site = Site::new("test.damage");
    fn damage<T: Tree<Counted>>() {
        let bytes = T::bytes_for(SHAPE, 60).expect("it fits").next_multiple_of(4096);
        for word in 0..80 {
            for damaged in [u64::MAX, 64, 1 << 20, 0x0101_0101_0101_0101] {
                let mut tree = T::open(memory(bytes), SHAPE).expect("it opens");
                for number in 0..40 {
                    tree.put(&key(number), &value(number)).expect("it puts");
                }
                tree.pmem().store_u64(8 * word, damaged, SITE);
                let mut found = Vec::new();
                let _ = tree.get(&key(3), &mut found);
                let _ = tree.scan(&key(0), 100, |_, _| ());
                let _ = tree.check();
                let _ = tree.put(&key(100), &value(1));
                let _ = tree.delete(&key(5));
            }
        }
    }
    damage::<FpTree<Counted>>();
    damage::<NvTree<Counted>>();
}

#[test]
fn other_sizes_are_refused() {
    let bytes = FpTree::<Counted>::bytes_for(SHAPE, 100).expect("it fits").next_multiple_of(4096);
    let mut tree = FpTree::open(memory(bytes), SHAPE).expect("it opens");
    for (key, value) in [(&[0_u8; 11][..], &[0_u8; 20][..]), (&[0; 12], &[0; 21])] {
        assert!(matches!(tree.put(key, value), Err(PrimitivesError::Shape(_))));
    }
    assert!(TreeShape::new(16, 10_000).is_err());
    assert!(TreeShape::new(300, 8).is_err());
    assert!(FpTree::open(memory(4096), TreeShape { leaf_entries: 3, ..SHAPE }).is_err());
    assert_eq!(TreeShape::new(16, 200).expect("it fits").leaf_entries, 64);
    assert_eq!(TreeShape::new(16, 256).expect("it fits").leaf_entries, 57);
}
