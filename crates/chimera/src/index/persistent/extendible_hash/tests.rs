//! What the index promises to engines; [`crashes`] and [`damage`], and [`threads`] beside one another.

mod crashes;
mod damage;
mod threads;

use std::collections::BTreeMap;

use chimera_pmem::{Extent, Hardware, RealEnvironment, Site};

use super::*;
use crate::index::Probe;
use crate::index::persistent::buckets::Batch;
use crate::pool::runs::FoundRun;
use crate::pool::small::{media_pool, small_pool};
use crate::pool::tests::media::Media;
use crate::types::error::Result;

const KINDS: Kinds =
    Kinds { segment: BlockKind::new(2, "segment"), directory: BlockKind::new(3, "directory") };
const SITE: Site = Site::new("test");
/// Segments of two blocks of 256 bytes: six buckets, 24 slots.
const BLOCKS: u32 = 2;
const POOL_SEGMENT_BYTES: u64 = 16 << 10;

fn new_pool(bytes: u64) -> Arc<Pool<Hardware>> {
    small_pool(Arc::new(RealEnvironment::new()), POOL_SEGMENT_BYTES, bytes)
}

fn new_index<P: Pmem>(pool: &Arc<Pool<P>>) -> ExtendibleHash<P> {
    ExtendibleHash::new(pool.clone(), KINDS, BLOCKS, false)
}

/// The index that the runs of a pool make, how many orphans, which are freed, and how much damage.
fn recovered<P: Pmem>(
    pool: &Arc<Pool<P>>,
    salvages: bool,
) -> Result<(ExtendibleHash<P>, usize, u64)> {
    let mut index = ExtendibleHash::new(pool.clone(), KINDS, BLOCKS, salvages);
    pool.recover_runs(&[KINDS.segment, KINDS.directory], false, |run| {
        let FoundRun::InUse(run) = run else { panic!("a word of a run is damaged") };
        index.adopt(run);
        Ok(())
    })?;
    let Arranged { segments, orphans, mut damages } = index.arrange()?;
    for segment in &segments {
        index.recover_segment(segment, |_, entry| {
            damages += u64::from(entry.is_none());
            entry.is_some()
        });
    }
    let count = orphans.len();
    if damages == 0 {
        index.complete();
        orphans.into_iter().try_for_each(|run| pool.free_run(run))?;
    }
    Ok((index, count, damages))
}

/// Well mixed.
fn hash_of(number: u64) -> u64 {
    let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

fn record(number: u64) -> Extent {
    Extent::new_checked(64 * (number + 1), 64)
}

fn insert<P: Pmem>(index: &ExtendibleHash<P>, hash: u64, number: u64) -> Result<()> {
    while !index.insert(hash, record(number))? {
        index.make_room(hash)?;
    }
    Ok(())
}

/// All positions of a hash, sorted.
fn positions<P: Pmem>(index: &ExtendibleHash<P>, hash: u64) -> Result<Vec<u64>> {
    loop {
        let mut found = Vec::new();
        let outcome = index.find_once(hash, &mut |at| {
            found.push(at);
            Probe::<()>::NotThis
        });
        if let Some(outcome) = outcome {
            found.sort_unstable();
            return outcome.map(|_| found);
        }
        std::thread::yield_now();
    }
}

/// Every entry and everything damaged, by a listing.
fn listed<P: Pmem>(index: &ExtendibleHash<P>) -> (Vec<(u64, u64)>, Vec<u64>) {
    let (mut batch, mut next, mut entries, mut damages) =
        (Batch::default(), Some(0), Vec::new(), Vec::new());
    while let Some(from) = next {
        index.list(from, &mut batch);
        assert!(batch.next.is_none_or(|next| next > from));
        let is_inside =
            |(hash, _): &(u64, u64)| *hash >= from && batch.next.is_none_or(|next| *hash < next);
        assert!(batch.entries.is_sorted() && batch.entries.iter().all(is_inside));
        entries.extend(&batch.entries);
        damages.extend(&batch.damages);
        next = batch.next;
    }
    (entries, damages)
}

fn assert_holds<P: Pmem>(index: &ExtendibleHash<P>, model: &BTreeMap<u64, u64>) {
    assert_eq!(index.len(), model.len() as u64);
    let expected: Vec<_> = model.iter().map(|(hash, at)| (*hash, *at)).collect();
    assert!(listed(index) == (expected, Vec::new()));
    for (hash, at) in model {
        assert_eq!(positions(index, *hash).unwrap(), [*at]);
    }
}

#[test]
fn entries_are_found_replaced_and_removed_while_the_index_grows() {
    let pool = new_pool(1 << 20);
    let (index, mut model) = (new_index(&pool), BTreeMap::new());
    for number in 0..2000 {
        let hash = hash_of(number);
        assert_eq!(positions(&index, hash).unwrap(), [0; 0]);
        insert(&index, hash, number).unwrap();
        model.insert(hash, record(number).offset());
        let other = hash_of(number * 7 % (number + 1));
        if let Some(at) = model.get_mut(&other) {
            let new = record(10_000 + number);
            assert!(index.swap(other, *at, new).unwrap(), "its entry");
            assert!(!index.swap(other, *at, new).unwrap(), "not any more");
            *at = new.offset();
        }
        if number % 3 == 0 {
            let gone = hash_of(number / 2);
            if let Some(at) = model.remove(&gone) {
                assert!(!index.remove(gone, at + 64).unwrap());
                assert!(index.remove(gone, at).unwrap());
            }
        }
    }
    assert!(index.segments() > 32, "{} segments", index.segments());
    assert!(index.directory_depth() > 5);
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
fn windows_fill_well_before_a_segment_of_the_published_size_is_split() {
    let pool = small_pool(Arc::new(RealEnvironment::new()), 64 << 10, 8 << 20);
    let blocks = SEGMENT_BYTES / 256;
    let index = ExtendibleHash::new(pool, KINDS, blocks, false);
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
    let index = new_index(&pool);
    let most = u64::from(buckets::WINDOW_BUCKETS * buckets::PER_BUCKET);
    for number in 0..most {
        insert(&index, 77, number).unwrap();
    }
    let error = insert(&index, 77, most).unwrap_err();
    assert!(matches!(error, Error::KeyCollisions), "{error}");
    assert!(index.segments() < 200, "splitting ends: {} segments", index.segments());
    assert_eq!(positions(&index, 77).unwrap().len() as u64, most);
    assert!(index.remove(77, record(3).offset()).unwrap());
    insert(&index, 77, most).unwrap();
    insert(&index, hash_of(5), 5).unwrap();
    assert_eq!(recovered(&pool, false).unwrap().0.len(), most + 1);
}

#[test]
fn a_full_pool_is_an_error_and_changes_no_entry() {
    // With room for a segment, and none for a directory; then for ever more.
    for bytes in (1..20).map(|kib| (kib + 1) << 10).chain([48 << 10]) {
        let pool = new_pool(bytes);
        let (index, mut model) = (new_index(&pool), BTreeMap::new());
        let error = (0..).find_map(|number| {
            let outcome = insert(&index, hash_of(number), number);
            if outcome.is_ok() {
                model.insert(hash_of(number), record(number).offset());
            }
            outcome.err()
        });
        assert!(matches!(error, Some(Error::PoolFull { .. })), "{error:?}");
        assert_holds(&index, &model);
        let (again, orphans, _) = recovered(&pool, false).unwrap();
        assert_eq!(orphans, 0);
        assert_holds(&again, &model);
    }
}

#[test]
fn an_entry_costs_a_line_and_a_fence() {
    let media = Media::default();
    let pool = media_pool(&media, &[], POOL_SEGMENT_BYTES, 1 << 20);
    let index = new_index(&pool);
    insert(&index, hash_of(0), 0).unwrap();
    let cost = |work: &dyn Fn()| {
        let before = media.counts();
        work();
        (media.counts().0 - before.0, media.counts().1 - before.1)
    };
    assert_eq!(cost(&|| assert!(index.insert(hash_of(1), record(1)).unwrap())), (1, 1));
    let (hash, old) = (hash_of(1), record(1).offset());
    assert_eq!(cost(&|| assert!(index.swap(hash, old, record(2)).unwrap())), (1, 1));
    let old = record(2).offset();
    assert_eq!(cost(&|| assert!(index.remove(hash, old).unwrap())), (1, 1));
}
