//! What the index promises to engines. Crashes are the crash lab's.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::thread;

use chimera_pmem::{Extent, Hardware, RealEnvironment, Site};

use super::*;
use crate::index::Probe;
use crate::pool::runs::FoundRun;
use crate::pool::small::small_pool;

const HASH: BlockKind = BlockKind::new(1, "hash");
const SITE: Site = Site::new("test");
/// Two blocks of 256 bytes: six buckets, 24 slots.
const SHAPE: HashShape = HashShape { partition_bits: 1, segment_blocks: 2 };

fn new_pool(bytes: u64) -> Arc<Pool<Hardware>> {
    small_pool(Arc::new(RealEnvironment::new()), 8192, bytes)
}

fn new_index(pool: &Arc<Pool<Hardware>>, salvages: bool) -> PartitionedHash<Hardware> {
    PartitionedHash::new(pool.clone(), HASH, SHAPE, salvages).unwrap()
}

/// The index that the runs of a pool make; how many orphans, and how much damage.
fn recovered(
    pool: &Arc<Pool<Hardware>>,
    salvages: bool,
) -> Result<(PartitionedHash<Hardware>, usize, u64)> {
    let mut index = new_index(pool, salvages);
    pool.recover_runs(&[HASH], false, |run| {
        let FoundRun::InUse(run) = run else { panic!("a word of a run is damaged") };
        index.adopt(run);
        Ok(())
    })?;
    let arranged = index.arrange()?;
    let mut damages = arranged.damages;
    for number in 0..index.segments() {
        index.recover_segment(number, |_, entry| {
            damages += u64::from(entry.is_none());
            entry.is_some()
        });
    }
    Ok((index, arranged.orphans.len(), damages))
}

/// Well mixed.
fn hash_of(number: u64) -> u64 {
    let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

fn record(number: u64) -> Extent {
    Extent::new_checked(64 * (number + 1), 64)
}

fn insert(index: &PartitionedHash<Hardware>, hash: u64, number: u64) -> Result<()> {
    while !index.insert(hash, record(number)) {
        index.make_room(hash)?;
    }
    Ok(())
}

/// All positions of a hash, sorted.
fn positions(index: &PartitionedHash<Hardware>, hash: u64) -> Vec<u64> {
    let mut found = Vec::new();
    let answer = index.find(hash, |at| {
        found.push(at);
        Probe::<()>::NotThis
    });
    assert_eq!(answer.unwrap(), None);
    found.sort_unstable();
    found
}

fn assert_holds(index: &PartitionedHash<Hardware>, model: &BTreeMap<u64, u64>) {
    assert_eq!(index.len(), model.len() as u64);
    let (mut batch, mut next, mut listed) = (Batch::default(), Some(0), BTreeMap::new());
    while let Some(from) = next {
        index.list(from, &mut batch);
        assert!(batch.entries.is_sorted() && batch.damages.is_empty());
        for (hash, at) in &batch.entries {
            assert!(*hash >= from && batch.next.is_none_or(|next| *hash < next));
            assert!(listed.insert(*hash, *at).is_none(), "listed twice");
        }
        next = batch.next;
    }
    assert!(listed == *model);
    for (hash, at) in model {
        assert_eq!(positions(index, *hash), [*at]);
    }
}

#[test]
fn entries_are_found_replaced_and_removed_while_the_index_grows() {
    let pool = new_pool(1 << 20);
    let (index, mut model) = (new_index(&pool, false), BTreeMap::new());
    for number in 0..2000 {
        let hash = hash_of(number);
        assert_eq!(positions(&index, hash), [0; 0]);
        insert(&index, hash, number).unwrap();
        model.insert(hash, record(number).offset());
        let other = hash_of(number * 7 % (number + 1));
        if let Some(at) = model.get_mut(&other) {
            let new = record(10_000 + number);
            assert!(index.swap(other, *at, new, || ()), "its entry");
            assert!(!index.swap(other, *at, new, || ()), "not any more");
            *at = new.offset();
        }
        if number % 3 == 0 {
            let gone = hash_of(number / 2);
            if let Some(at) = model.remove(&gone) {
                assert!(!index.remove(gone, at + 64, || ()));
                assert!(index.remove(gone, at, || ()));
            }
        }
    }
    assert!(index.segments() > 32, "{} segments", index.segments());
    assert_holds(&index, &model);
    let (again, orphans, damages) = recovered(&pool, false).unwrap();
    assert_eq!((orphans, damages, again.segments()), (0, 0, index.segments()));
    assert_holds(&again, &model);
    // What was split off and is still in the slots is used again.
    for number in 2000..2500 {
        insert(&again, hash_of(number), number).unwrap();
        model.insert(hash_of(number), record(number).offset());
    }
    assert_holds(&recovered(&pool, false).unwrap().0, &model);
}

#[test]
fn windows_fill_well_before_a_segment_is_split() {
    let pool = new_pool(8 << 20);
    let shape = HashShape { partition_bits: 0, segment_blocks: 16 };
    let index = PartitionedHash::new(pool, HASH, shape, false).unwrap();
    for number in 0..20_000 {
        insert(&index, hash_of(number), number).unwrap();
    }
    let slots = index.segments() * u64::from(index.slots_per_segment());
    let load = index.len() as f64 / slots as f64;
    assert!((0.35..0.95).contains(&load), "a load of {load}");
}

#[test]
fn keys_of_one_hash_have_their_places_until_a_window_is_full() {
    let pool = new_pool(1 << 20);
    let index = new_index(&pool, false);
    let most = u64::from(buckets::WINDOW_BUCKETS * buckets::PER_BUCKET);
    for number in 0..most {
        insert(&index, 77, number).unwrap();
    }
    let error = insert(&index, 77, most).unwrap_err();
    assert!(matches!(error, Error::KeyCollisions), "{error}");
    assert!(index.segments() < 200, "splitting ends: {} segments", index.segments());
    assert_eq!(positions(&index, 77).len() as u64, most);
    assert!(index.remove(77, record(3).offset(), || ()));
    insert(&index, 77, most).unwrap();
    insert(&index, hash_of(5), 5).unwrap();
}

#[test]
fn a_full_pool_is_an_error_and_changes_nothing() {
    let pool = new_pool(40 << 10);
    let (index, mut model) = (new_index(&pool, false), BTreeMap::new());
    let error = (0..).find_map(|number| {
        let outcome = insert(&index, hash_of(number), number);
        if outcome.is_ok() {
            model.insert(hash_of(number), record(number).offset());
        }
        outcome.err()
    });
    assert!(matches!(error, Some(Error::PoolFull { .. })));
    assert!(model.len() > 100);
    assert_holds(&index, &model);
    assert_holds(&recovered(&pool, false).unwrap().0, &model);
}

#[test]
fn a_damaged_slot_or_header_is_said_and_never_silent() {
    let pool = new_pool(1 << 20);
    let index = new_index(&pool, false);
    (0..200).for_each(|number| insert(&index, hash_of(number), number).unwrap());
    let hash = hash_of(17);
    let segment = index.segment_of(hash).unwrap();
    let slots = index.slots(segment);
    let at = slots.offset(slots.find(hash, record(17).offset()).unwrap());
    let header = segment.at();
    for word_at in [at, at + 8, header] {
        let word = pool.pmem.load_u64(word_at);
        for bit in 0..64 {
            pool.pmem.store_u64(word_at, word ^ 1 << bit, SITE);
            let mut batch = Batch::default();
            index.list(hash, &mut batch);
            if word_at == header {
                assert_eq!(batch.damages, [header]);
                assert!(matches!(recovered(&pool, false), Err(Error::Corrupted { .. })));
                assert!(recovered(&pool, true).unwrap().2 > 0);
            } else {
                assert!(index.find(hash, |_| Probe::<()>::NotThis).is_err(), "bit {bit}");
                assert_eq!(batch.damages, [at]);
                let (salvaged, _, damages) = recovered(&pool, true).unwrap();
                assert_eq!((damages, salvaged.len()), (1, 199));
                assert_eq!(positions(&salvaged, hash), [0; 0]);
            }
        }
        pool.pmem.store_u64(word_at, word, SITE);
    }
    assert_eq!(positions(&index, hash), [record(17).offset()]);
}

/// All hashes that a listing gives.
fn listed(index: &PartitionedHash<Hardware>) -> Vec<u64> {
    let (mut hashes, mut batch, mut next) = (Vec::new(), Batch::default(), Some(0));
    while let Some(from) = next {
        index.list(from, &mut batch);
        hashes.extend(batch.entries.iter().map(|(hash, _)| *hash));
        next = batch.next;
    }
    hashes
}

#[test]
fn a_listing_of_what_was_salvaged_goes_on_behind_a_gap() {
    let pool = new_pool(1 << 20);
    let index = new_index(&pool, false);
    let mut hashes: Vec<u64> = (0..300).map(hash_of).collect();
    (0..300).for_each(|number| insert(&index, hash_of(number), number).unwrap());
    hashes.sort_unstable();
    assert_eq!(listed(&index), hashes);
    for lost in hashes.iter().step_by(40) {
        let segment = index.segment_of(*lost).unwrap();
        let (at, prefix) = (segment.at(), segment.prefix());
        let word = pool.pmem.load_u64(at);
        pool.pmem.store_u64(at, word ^ 1, SITE);
        let (salvaged, _, damages) = recovered(&pool, true).unwrap();
        let kept: Vec<u64> = hashes.iter().copied().filter(|hash| !prefix.covers(*hash)).collect();
        assert!(damages > 0 && kept.len() < hashes.len());
        assert_eq!(listed(&salvaged), kept, "all but those of {prefix:?}");
        pool.pmem.store_u64(at, word, SITE);
    }
}

#[test]
fn a_damaged_slot_is_noticed_also_after_its_segment_was_split() {
    for victim in 0..12 {
        let pool = new_pool(1 << 20);
        let index = new_index(&pool, false);
        (0..12).for_each(|number| insert(&index, hash_of(number), number).unwrap());
        let hash = hash_of(victim);
        let slots = index.slots(index.segment_of(hash).unwrap());
        let at = slots.offset(slots.find(hash, record(victim).offset()).unwrap());
        pool.pmem.store_u64(at + 8, pool.pmem.load_u64(at + 8) ^ 1 << 20, SITE);
        for number in 100..500 {
            insert(&index, hash_of(number), number).unwrap();
            let found = index.find(hash, |_| Probe::<()>::NotThis);
            assert!(found.is_err(), "{victim} seems to be gone in {} segments", index.segments());
        }
        assert!(index.segments() > 20);
    }
}

/// What a crash leaves between the run of a split and the word that publishes it.
#[test]
fn a_segment_beside_the_one_it_was_split_off_is_an_orphan() {
    let pool = new_pool(1 << 20);
    let (index, mut model) = (new_index(&pool, false), BTreeMap::new());
    for number in 0..10 {
        insert(&index, hash_of(number), number).unwrap();
        model.insert(hash_of(number), record(number).offset());
    }
    let segments = index.segments();
    let old = index.segment(0);
    let (at, prefix) = (old.at(), old.prefix());
    let word = pool.pmem.load_u64(at);
    let mut numbers = (100..).filter(|number| prefix.covers(hash_of(*number)));
    let full = numbers.find(|number| !index.insert(hash_of(*number), record(*number)));
    // Nothing is entered after the split: it might take the place of an entry that moved.
    index.make_room(hash_of(full.expect("a window is full"))).unwrap();
    assert_eq!(index.segments(), segments + 1);
    pool.pmem.store_u64(at, word, SITE);
    let (again, orphans, _) = recovered(&pool, false).unwrap();
    assert_eq!((orphans, again.segments()), (1, segments));
    let found: Vec<_> = model.keys().filter(|hash| positions(&again, **hash).len() == 1).collect();
    assert_eq!(found.len(), model.len(), "the copies that moved are not needed");
    // That is why recovery frees it before anybody splits the other one again.
    let mut numbers = (10_000..).filter(|number| prefix.covers(hash_of(*number)));
    let full = numbers.find(|number| !again.insert(hash_of(*number), record(*number)));
    again.make_room(hash_of(full.expect("a window is full"))).unwrap();
    assert!(matches!(recovered(&pool, false), Err(Error::Corrupted { .. })), "two of one prefix");
}

#[test]
fn a_walk_meets_every_entry_that_stays_once_while_segments_are_split() {
    for (pause, shape) in [(1, SHAPE), (3, HashShape { partition_bits: 1, segment_blocks: 16 })] {
        let pool = new_pool(2 << 20);
        let new = PartitionedHash::new(pool.clone(), HASH, shape, false).unwrap();
        (0..600).for_each(|number| insert(&new, hash_of(number), number).unwrap());
        let mut index = PartitionedHash::new(pool.clone(), HASH, shape, false).unwrap();
        pool.recover_runs(&[HASH], false, |run| {
            let FoundRun::InUse(run) = run else { panic!("a word of a run is damaged") };
            index.adopt(run);
            Ok(())
        })
        .unwrap();
        index.arrange().unwrap();
        (0..index.segments()).for_each(|number| index.recover_segment(number, |_, _| true));
        let (segments, mut walk) = (index.segments(), Walk::default());
        let (mut met, mut steps) = (BTreeMap::new(), 0);
        let mut meet = |found: &[FoundSlot]| {
            for (_, entry) in found {
                let (hash, at) = entry.expect("no damage");
                *met.entry((hash, at)).or_insert(0) += 1;
                assert!(index.find_once(hash, &mut Probe::Found).is_none(), "it is locked");
            }
        };
        while index.walk(&mut walk, &mut meet) {
            steps += 1;
            if steps % pause == 0 && steps < 40 {
                for number in 60 * steps..60 * steps + 60 {
                    insert(&index, hash_of(1000 + number), 1000 + number).unwrap();
                }
                assert!(index.remove(hash_of(steps), record(steps).offset(), || ()));
            }
            assert!(walk.segments() <= index.segments());
        }
        assert!(!index.walk(&mut walk, |_| panic!("everything was walked")));
        assert!(index.segments() >= 2 * segments, "{segments}, then {}", index.segments());
        assert_eq!(walk.segments(), index.segments());
        assert!(met.values().all(|times| *times == 1), "met twice");
        for number in steps + 1..600 {
            assert!(met.contains_key(&(hash_of(number), record(number).offset())), "{number}");
        }
    }
}

#[test]
fn readers_find_what_is_there_while_segments_are_split() {
    let pool = new_pool(4 << 20);
    let index = new_index(&pool, false);
    let (stay, is_over) = (200, AtomicBool::new(false));
    (0..stay).for_each(|number| insert(&index, hash_of(number), number).unwrap());
    thread::scope(|scope| {
        for reader in 0..2 {
            let (index, is_over) = (&index, &is_over);
            scope.spawn(move || {
                let mut number = reader;
                while !is_over.load(Ordering::Relaxed) {
                    number = (number + 1) % stay;
                    assert_eq!(positions_of_key(index, number), Some(record(number).offset()));
                    assert_eq!(positions_of_key(index, 1_000_000 + number), None);
                }
            });
        }
        for number in 1000..6000 {
            insert(&index, hash_of(number), number).unwrap();
            if number % 4 > 0 {
                assert!(index.remove(hash_of(number), record(number).offset(), || ()));
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(index.segments() > 50);
}

/// The position of a key whose hash no other has.
fn positions_of_key(index: &PartitionedHash<Hardware>, number: u64) -> Option<u64> {
    index.find(hash_of(number), Probe::Found).unwrap()
}
