//! Merging: of each key the newest entry stays.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::types::error::{Error, Result};

/// Knows of each record which key it is of.
#[derive(Default)]
struct Records {
    prefetched: BTreeSet<u64>,
    /// Questions, and those about records that were being loaded.
    asked: u32,
    expected: u32,
    dropped: Vec<u64>,
    /// The record that is damaged.
    damaged: Option<u64>,
}

impl MergeOwner for Records {
    fn prefetch(&mut self, slot: Slot) {
        self.prefetched.insert(slot.location);
    }

    fn is_same_key(&mut self, newer: Slot, older: Slot) -> Result<bool> {
        assert_eq!(newer.hash, older.hash);
        self.asked += 1;
        let is_expected = |slot: Slot| self.prefetched.contains(&slot.location);
        self.expected += u32::from(is_expected(newer) && is_expected(older));
        if self.damaged == Some(older.location) {
            return Err(Error::corrupted("a record", 8));
        }
        Ok(key_of(newer.found().unwrap()) == key_of(older.found().unwrap()))
    }

    fn dropped(&mut self, slot: Slot) {
        self.dropped.push(slot.location);
    }
}

/// Tables with these entries, the newest first, some in DRAM and some in persistent memory.
struct Sources {
    pool: Arc<Pool<Hardware>>,
    tables: Tables,
    /// Slots of each in persistent memory; none for one in DRAM, with its number.
    places: Vec<std::result::Result<PersistentTable, u32>>,
    entries: usize,
}

impl Sources {
    fn new(all: &[(bool, Vec<Slot>)]) -> Self {
        let mut sources =
            Self { pool: pool(), tables: Tables::new(128, false), places: Vec::new(), entries: 0 };
        let mut at = AT;
        for (is_persistent, slots) in all {
            sources.entries += slots.len();
            if !is_persistent {
                let number = sources.tables.take().unwrap();
                let table = sources.tables.table(number);
                for slot in slots {
                    table.insert(*slot, u32::MAX).unwrap();
                }
                sources.places.push(Err(number));
                continue;
            }
            let mut image = Image::default();
            assert!(image.fill(slots_for(slots.len() as u64, 80).unwrap(), slots.iter().copied()));
            let to = sources.pool.pmem.check(at, image.bytes()).unwrap();
            at += image.bytes();
            sources.places.push(Ok(image.write(&sources.pool.pmem, to, OWNER, sites::TABLE)));
            sources.pool.pmem.fence(sites::TABLE);
        }
        sources
    }

    fn sources(&self) -> Vec<Source<'_>> {
        let source = |place: &std::result::Result<PersistentTable, u32>| match place {
            Ok(table) => Source::Persistent(*table),
            Err(number) => Source::Volatile(self.tables.table(*number)),
        };
        self.places.iter().map(source).collect()
    }

    fn merge(&self, image: &mut Image, owner: &mut Records) -> Result<()> {
        let slots = slots_for(self.entries as u64, 100).unwrap();
        merge(&self.pool.pmem, &self.sources(), slots, image, owner)
    }

    fn merge_last(&self, load: u32, image: &mut Image, owner: &mut Records) -> Result<()> {
        let slots = slots_for(self.entries as u64, 100).unwrap();
        let last = |entries| slots_for(u64::from(entries), load).unwrap();
        let images = [image, &mut Image::default()];
        merge_last(&self.pool.pmem, &self.sources(), slots, last, images, owner)
    }
}

/// The entries that stay, sorted.
fn sorted(slots: impl Iterator<Item = Slot>) -> Vec<u64> {
    let mut locations: Vec<_> = slots.map(|slot| slot.location).collect();
    locations.sort_unstable();
    locations
}

/// Which keys each table has, and whether as tombstones.
fn tables() -> impl Strategy<Value = Vec<(bool, BTreeMap<u64, bool>)>> {
    let keys = proptest::collection::btree_map(0..100_u64, proptest::bool::weighted(0.2), 0..60);
    proptest::collection::vec((any::<bool>(), keys), 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_newest_entries_stay(tables in tables(), alike in 1..5_u64, load in 50..=100_u32) {
        let hash_of = |key: u64| mixed(key / alike);
        // Of each key the first one.
        let (mut model, mut all, mut sources) = (BTreeMap::new(), Vec::new(), Vec::new());
        for (version, (is_persistent, keys)) in (0..).zip(tables) {
            let slot = |(key, is_tombstone)| slot_of(hash_of(key), key, version, is_tombstone);
            let slots: Vec<_> = keys.clone().into_iter().map(slot).collect();
            for (key, slot) in keys.into_keys().zip(&slots) {
                model.entry(key).or_insert(*slot);
                all.push(*slot);
            }
            sources.push((is_persistent, slots));
        }
        let sources = Sources::new(&sources);
        let (mut image, mut owner) = (Image::default(), Records::default());
        sources.merge(&mut image, &mut owner).unwrap();
        prop_assert_eq!(sorted(image.iter()), sorted(model.values().copied()));
        prop_assert_eq!(image.len() as usize, model.len());
        // Each entry stays or is dropped, once.
        let mut seen: Vec<_> = image.iter().map(|slot| slot.location).chain(owner.dropped).collect();
        seen.sort_unstable();
        prop_assert_eq!(seen, sorted(all.iter().copied()));

        let mut owner = Records::default();
        sources.merge_last(load, &mut image, &mut owner).unwrap();
        model.retain(|_, slot| !slot.found().unwrap().is_tombstone);
        prop_assert_eq!(sorted(image.iter()), sorted(model.values().copied()));
        prop_assert_eq!(Some(image.slots()), slots_for(model.len() as u64, load));
        let mut seen: Vec<_> = image.iter().map(|slot| slot.location).chain(owner.dropped).collect();
        seen.sort_unstable();
        prop_assert_eq!(seen, sorted(all.into_iter()));
        let to = sources.pool.pmem.check(AT, image.bytes()).unwrap();
        let table = image.write(&sources.pool.pmem, to, OWNER, sites::TABLE);
        sources.pool.pmem.fence(sites::TABLE);
        table.verify(&sources.pool.pmem).unwrap();
        for (key, slot) in model {
            prop_assert!(in_persistent(&sources.pool, table, hash_of(key)).unwrap().contains(&slot.location));
        }
    }
}

#[test]
fn records_are_being_loaded_when_they_are_asked_about() {
    let table = |version| (0..100).map(|key| slot_of(mixed(key), key, version, false)).collect();
    let sources = Sources::new(&[(true, table(1)), (false, table(0))]);
    let (mut image, mut owner) = (Image::default(), Records::default());
    sources.merge(&mut image, &mut owner).unwrap();
    assert_eq!((owner.asked, owner.dropped.len()), (100, 100));
    // But for those that are entered while the one that they supersede is on its way.
    assert!(owner.expected >= 90, "{} of {}", owner.expected, owner.asked);
    assert_eq!(owner.prefetched.len() as u32, 2 * owner.expected, "and no others");
}

#[test]
fn a_merge_of_damage_fails() {
    let slots = |version| (0..50).map(|key| slot_of(mixed(key), key, version, false)).collect();
    let sources = Sources::new(&[(false, slots(1)), (true, slots(0))]);
    let (mut image, mut owner) = (Image::default(), Records::default());
    owner.damaged = Some(slot_of(mixed(17), 17, 0, false).location);
    let outcome = sources.merge(&mut image, &mut owner);
    assert!(matches!(outcome, Err(Error::Corrupted { at: 8, .. })));
    let pmem = &sources.pool.pmem;
    for at in (AT..AT + PersistentTable::bytes_of(64)).step_by(8) {
        if (AT + 40..AT + 256).contains(&at) {
            continue;
        }
        let word = pmem.load_u64(at);
        for bit in [0, 20, 33, 63] {
            pmem.store_u64(at, word ^ 1 << bit, sites::TABLE);
            let outcome = sources.merge_last(90, &mut image, &mut Records::default());
            assert!(matches!(outcome, Err(Error::Corrupted { .. })), "bit {bit} at {at}");
        }
        pmem.store_u64(at, word, sites::TABLE);
    }
    sources.merge_last(90, &mut image, &mut Records::default()).unwrap();
    assert_eq!(image.len(), 50);
}

#[test]
fn an_image_that_is_begun_again_is_empty() {
    let mut image = Image::default();
    image.begin(512);
    assert!(image.enter(slot_of(1, 1, 0, false)));
    image.begin(64);
    assert_eq!((image.len(), image.iter().count()), (0, 0));
    assert!(std::panic::catch_unwind(|| Image::default().begin(24)).is_err());
}

/// Also where their chain goes on at the first slot.
#[test]
fn entries_of_one_hash_are_listed_in_the_order_of_the_probe() {
    for home in 0..16 {
        let hash = hash_at(home, 0);
        let slots: Vec<_> = (0..5).map(|version| slot_of(hash, 1, version, false)).collect();
        let tables = Tables::new(16, false);
        let volatile = tables.table(tables.take().unwrap());
        for slot in &slots {
            volatile.insert(*slot, u32::MAX).unwrap();
        }
        let mut image = Image::default();
        assert!(image.fill(16, slots.iter().copied()));
        let pool = pool();
        let (persistent, mut listed) = (written(&pool, 16, &slots), Vec::new());
        let listing = persistent.for_each(&pool.pmem, |slot| {
            listed.push(slot);
            Ok(())
        });
        listing.unwrap();
        let all = [volatile.iter().collect(), image.iter().collect(), listed];
        assert!(all.iter().all(|listed: &Vec<_>| *listed == slots), "home {home}: {all:?}");
    }
}
