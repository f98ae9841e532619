//! Models of a shard: readers beside a MemTable that goes to the bypass index, and beside a bypass index that becomes a table.

use std::sync::Arc;

use loom::thread;

use super::*;
use crate::index::Probe;
use crate::index::probing_table::Tables;
use crate::sync::under_loom::model;

const HASH: u64 = 1;
/// Numbers of tables: the MemTable, the bypass index, and the one that takes its place.
const MEMTABLE: u32 = 0;
const BYPASS: u32 = 1;
const SPARE: u32 = 2;

/// A shard with its tables in DRAM.
struct Model {
    shard: Shard,
    tables: Tables,
    poison: Poison,
}

/// Where a reader has found the key.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    Dram(u64),
    Last,
    Nowhere,
}

/// The slot of a version of the only key.
fn slot(version: u64) -> Slot {
    Slot::new(HASH, 64 * version, 24, false)
}

impl Model {
    /// A shard whose key has these versions in the MemTable and in the bypass index.
    fn new(memtable: Option<u64>, bypass: Option<u64>) -> Arc<Self> {
        let tables = Tables::new(4, false);
        assert_eq!([(); 3].map(|()| tables.take().unwrap()), [MEMTABLE, BYPASS, SPARE]);
        for (table, version) in [(MEMTABLE, memtable), (BYPASS, bypass)] {
            version.into_iter().for_each(|it| tables.table(table).insert(slot(it), 4).unwrap());
        }
        let (shard, poison) = (Shard::new(BYPASS, 3), Poison::new(false));
        Arc::new(Self { shard, tables, poison })
    }

    /// Does `change` under both locks, as whoever changes tables does.
    fn change(&self, change: impl FnOnce(&Shard)) {
        let environment = model::environment();
        let work = self.shard.lock_work(&self.poison, &*environment);
        let writing = self.shard.lock_to_look(&self.poison, &*environment);
        self.shard.change(&work, &writing, change);
    }

    /// One attempt of a reader: what it makes of the key, if that is valid.
    fn read(&self) -> Option<Place> {
        let seen = self.shard.version().read_begin()?;
        let find = |table| self.tables.table(table).probe(HASH, |it| Probe::Found(it.offset / 64));
        let found = match find(MEMTABLE) {
            Probe::NotThis => find(self.shard.helper()),
            found => found,
        };
        let place = match found {
            Probe::Found(version) => Place::Dram(version),
            _ if self.shard.last().is_some() => Place::Last,
            _ => Place::Nowhere,
        };
        self.shard.version().read_is_valid(seen).then_some(place)
    }
}

/// Runs `write` beside a reader that tries twice; its valid answers.
fn beside(model: &Arc<Model>, write: impl FnOnce(&Model) + Send + 'static) -> Vec<Place> {
    let writer = thread::spawn({
        let model = model.clone();
        move || write(&model)
    });
    let answers = [model.read(), model.read()];
    writer.join().unwrap();
    answers.into_iter().flatten().collect()
}

#[test]
fn loom_a_key_is_found_while_its_memtable_goes_to_the_bypass_index() {
    model::check(2, || {
        let model = Model::new(Some(2), Some(1));
        let answers = beside(&model, |model| {
            model.tables.table(BYPASS).replace(HASH, slot(1).location, slot(2).location);
            model.change(|_| model.tables.table(MEMTABLE).clear());
        });
        assert!(answers.iter().all(|it| *it == Place::Dram(2)), "{answers:?}");
        assert_eq!(model.read(), Some(Place::Dram(2)));
    });
}

#[test]
fn loom_a_key_is_found_while_its_bypass_index_becomes_a_last_table() {
    model::check(2, || {
        let model = Model::new(None, Some(1));
        let answers = beside(&model, |model| {
            let last = Some(TableAt { at: 4096, bytes: 1024 });
            model.change(|shard| {
                shard.set_tables(&ShardTables { last, ..ShardTables::default() });
                shard.set_helper(SPARE);
            });
            model.tables.give_back(BYPASS);
        });
        assert!(!answers.contains(&Place::Nowhere), "{answers:?}");
        assert_eq!(model.read(), Some(Place::Last));
    });
}

#[test]
fn loom_a_key_is_found_while_its_bypass_index_grows() {
    model::check(2, || {
        let model = Model::new(None, Some(1));
        let answers = beside(&model, |model| {
            model.tables.table(SPARE).insert(slot(1), 4).unwrap();
            model.change(|shard| shard.set_helper(SPARE));
            model.tables.give_back(BYPASS);
        });
        assert!(answers.iter().all(|it| *it == Place::Dram(1)), "{answers:?}");
        assert_eq!(model.read(), Some(Place::Dram(1)));
    });
}
