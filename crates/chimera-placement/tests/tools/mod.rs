//! What the tests share: databases in every placement.

#![allow(dead_code, reason = "each test file uses a part")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chimera_placement::arena::Arena;
use chimera_placement::database::{CacheKind, Database, DatabaseOptions, Direction};
use chimera_placement::heap::{Heap, Share};
use chimera_placement::region::RegionOptions;
use chimera_placement::tier::Tier;

/// Ways to place the components.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Dram,
    Cache(u8),
    Both(u8),
    HyperClock,
    Tier { compressed: bool, exclusive: bool },
}

pub(crate) const WAYS: [Way; 9] = [
    Way::Dram,
    Way::Cache(100),
    Way::Cache(40),
    Way::Both(100),
    Way::Both(60),
    Way::HyperClock,
    Way::Tier { compressed: false, exclusive: false },
    Way::Tier { compressed: true, exclusive: true },
    Way::Tier { compressed: true, exclusive: false },
];

/// A database with small components, so that all of them are used up, and where it lies.
pub(crate) struct Setup {
    pub(crate) way: Way,
    pub(crate) directory: PathBuf,
    pub(crate) arena: Arc<Arena>,
    pub(crate) cache_heap: Option<Arc<Heap>>,
    pub(crate) memtable_heap: Option<Arc<Heap>>,
    pub(crate) tier: Option<Arc<Tier>>,
    pub(crate) options: DatabaseOptions,
}

impl Setup {
    pub(crate) fn new(scratch: &Path, way: Way) -> Self {
        Self::with_pmem(scratch, way, 32 << 20)
    }

    pub(crate) fn with_pmem(scratch: &Path, way: Way, bytes: u64) -> Self {
        let directory = scratch.join("db");
        let region = RegionOptions { directory: scratch.to_owned(), bytes, require_dax: false };
        let arena = Arc::new(Arena::open(&region).unwrap());
        let heap = |share| {
            let share = Share::percent(share).unwrap();
            Some(Arc::new(Heap::new(Arc::clone(&arena), share, None)))
        };
        let mut options = DatabaseOptions {
            cache_bytes: 1 << 20,
            write_buffer_bytes: 1 << 20,
            ..DatabaseOptions::default()
        };
        let (mut cache_heap, mut memtable_heap, mut tier) = (None, None, None);
        match way {
            Way::Dram => {}
            Way::Cache(share) => cache_heap = heap(share),
            Way::Both(share) => (cache_heap, memtable_heap) = (heap(share), heap(share)),
            Way::HyperClock => {
                cache_heap = heap(100);
                options.cache_kind = CacheKind::HyperClock;
            }
            Way::Tier { compressed, exclusive } => {
                options.cache_bytes = 256 << 10;
                options.tier_is_exclusive = exclusive;
                tier = heap(100).map(|heap| Arc::new(Tier::new(heap, 2 << 20, compressed)));
            }
        }
        options.cache_heap.clone_from(&cache_heap);
        options.memtable_heap.clone_from(&memtable_heap);
        options.tier.clone_from(&tier);
        Self { way, directory, arena, cache_heap, memtable_heap, tier, options }
    }

    pub(crate) fn open(&self) -> Database {
        Database::open(&self.directory, &self.options).unwrap()
    }
}

pub(crate) fn key(number: u64) -> Vec<u8> {
    format!("{number:016}").into_bytes()
}

/// A value that says whose it is, and of which length it is supposed to be.
pub(crate) fn value(number: u64, version: u64) -> Vec<u8> {
    let length = 200 + (number * 37 + version * 11) % 1400;
    let mut value = format!("{number}:{version}:").into_bytes();
    while value.len() < length as usize {
        value.push((value.len() as u64 * number + version) as u8);
    }
    value
}

/// All records of one snapshot, which are the same in both directions.
pub(crate) fn listed(database: &Database) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut iter = database.cursor().unwrap();
    let mut all = |direction| {
        iter.seek_to_end(direction).unwrap();
        std::iter::from_fn(|| iter.step(direction).unwrap()).collect::<Vec<_>>()
    };
    let forward = all(Direction::Forward);
    let mut backward = all(Direction::Backward);
    backward.reverse();
    assert!(forward == backward, "{} records forward, {} backward", forward.len(), backward.len());
    forward
}

pub(crate) fn got(database: &Database, key: &[u8]) -> Option<Vec<u8>> {
    let mut value = Vec::new();
    database.get(key, &mut value).unwrap().then_some(value)
}

/// Puts, overwrites and deletes; says what must be there.
pub(crate) fn load(database: &Database, records: u64) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut model = BTreeMap::new();
    for version in 0..3 {
        for number in 0..records {
            let number = number * 7919 % records;
            if version == 0 || number % 3 == version {
                database.put(&key(number), &value(number, version)).unwrap();
                model.insert(key(number), value(number, version));
            }
        }
    }
    for number in (0..records).step_by(5) {
        database.delete(&key(number)).unwrap();
        model.remove(&key(number));
    }
    model
}

pub(crate) fn assert_has(database: &Database, model: &BTreeMap<Vec<u8>, Vec<u8>>, records: u64) {
    for number in 0..records + 10 {
        assert_eq!(got(database, &key(number)).as_ref(), model.get(&key(number)), "{number}");
    }
    let expected = model.iter().map(|(key, value)| (key.clone(), value.clone()));
    assert!(expected.eq(listed(database)), "iterators");
}
