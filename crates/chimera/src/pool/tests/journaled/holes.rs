//! Free runs of a pool with a journal that give their storage back.

use super::*;
use crate::pool::block_word::BlockKind;
use crate::pool::runs::{FoundRun, Run};

const LOG: BlockKind = BlockKind::new(1, "log");
/// What is stored in each block of a run.
const MARK: u64 = 7;

/// A pool with a run of all blocks of a segment but the last one, which is another run; what was stored in them is fenced.
fn with_runs(place: &Place) -> (Arc<Pool<Hardware>>, Run, Run) {
    let (pool, _) = place.open(&journaled()).unwrap();
    pool.mark_open().unwrap();
    pool.mark_recovered().unwrap();
    let long = pool.map.blocks_per_segment as u32 - 1;
    let runs = [long, 1].map(|blocks| take(&pool, blocks).unwrap());
    marks(&pool, long).for_each(|at| store(&pool, at, MARK));
    pool.pmem.fence(SITE);
    let [first, second] = runs;
    (pool, first, second)
}

fn take(pool: &Pool<Hardware>, blocks: u32) -> Result<Run> {
    pool.take_run(LOG, blocks, |_| ())
}

/// A word in the last page of each of so many blocks.
fn marks(pool: &Pool<Hardware>, blocks: u32) -> impl Iterator<Item = u64> {
    let map = &pool.map;
    (0..u64::from(blocks)).map(|block| map.block_at(block) + map.block_bytes - 64)
}

/// First block and length of each run in use.
fn recover(pool: &Pool<Hardware>) -> Result<Vec<(u64, u32)>> {
    let mut found = Vec::new();
    let note = |run| {
        match run {
            FoundRun::InUse(run) => found.push((run.first(), run.blocks())),
            FoundRun::Damaged(blocks) => panic!("{blocks:?} are damaged"),
        }
        Ok(())
    };
    pool.recover_runs(&[LOG], false, note)?;
    Ok(found)
}

fn full(deed: &Deed) -> Option<io::ErrorKind> {
    matches!(deed, Deed::Allocated(..)).then_some(io::ErrorKind::StorageFull)
}

fn is_punched(deed: &Deed) -> bool {
    matches!(deed, Deed::Punched(name, _) if name == "segment-000000")
}

fn is_data(deed: &Deed) -> bool {
    is_written("segment-000000")(deed)
}

/// First block and end of each part that storage was asked for since this was called last.
fn allocated(place: &Place, pool: &Pool<Hardware>) -> Vec<(u64, u64)> {
    let deeds = place.files.take(|deed| matches!(deed, Deed::Allocated(..)));
    let blocks = |at: u64| (0..100).find(|block| pool.map.block_in_segment(*block) >= at).unwrap();
    let ranges = deeds.into_iter().filter_map(|deed| match deed {
        Deed::Allocated(name, bytes) if name == "segment-000000" => Some(bytes),
        _ => None,
    });
    ranges.map(|bytes| (blocks(bytes.start), blocks(bytes.end))).collect()
}

#[test]
fn a_free_run_gives_its_storage_back_and_asks_for_it_before_it_is_taken() {
    let place = Place::new();
    let (pool, run, _other) = with_runs(&place);
    let blocks = run.blocks();
    pool.free_run(run).unwrap();
    place.files.take(|_| false);
    pool.release_free_runs();
    let deeds = place.deeds();
    let punched = first(&deeds, is_punched);
    assert!(deeds[..punched].iter().any(is_data), "what is pending is written back: {deeds:?}");
    assert!(!deeds[punched..].iter().any(is_data), "{deeds:?}");
    assert!(deeds[punched..].contains(&synced("segment-000000")), "{deeds:?}");
    assert!(marks(&pool, blocks).all(|at| pool.pmem.load_u64(at) == 0));
    pool.release_free_runs();
    assert!(!place.deeds().iter().any(is_punched), "once");

    // The block behind has the word of what stays free.
    let _run = take(&pool, 2).unwrap();
    assert_eq!(allocated(&place, &pool), [(0, 3)]);
    let _run = take(&pool, 1).unwrap();
    let expected = if blocks == 3 { vec![] } else { vec![(2, 4)] };
    assert_eq!(allocated(&place, &pool), expected);
    marks(&pool, 2).for_each(|at| store(&pool, at, MARK + 1));
    pool.pmem.fence(SITE);
    drop(pool);

    let (pool, _) = place.open(&journaled()).unwrap();
    let found = recover(&pool).unwrap();
    assert_eq!(found, [(0, 2), (2, 1), (u64::from(blocks), 1)]);
    assert!(marks(&pool, 2).all(|at| pool.pmem.load_u64(at) == MARK + 1));
}

/// A power loss would bring back what was there, under what is stored where there are zeros now.
#[test]
fn holes_are_durable_before_they_are_used() {
    let place = Place::new();
    let (pool, run, _other) = with_runs(&place);
    pool.free_run(run).unwrap();
    pool.pmem.journal().unwrap().checkpoint().unwrap();
    place.files.take(|_| false);
    pool.punch_free_runs();
    assert!(!place.deeds().contains(&synced("segment-000000")));
    let _run = take(&pool, 2).unwrap();
    let deeds = place.files.take(|_| true);
    let is_synced = |deed: &Deed| *deed == synced("segment-000000");
    let is_allocated = |deed: &Deed| matches!(deed, Deed::Allocated(..));
    assert!(first(&deeds, is_synced) < first(&deeds, is_allocated), "{deeds:?}");
}

#[test]
fn a_hole_that_is_not_durable_is_not_used() {
    let place = Place::new();
    let (pool, run, _other) = with_runs(&place);
    pool.free_run(run).unwrap();
    let has_punched = AtomicBool::new(false);
    place.files.refuse(move |deed| {
        let before = has_punched.fetch_or(is_punched(deed), Ordering::Relaxed);
        (before && matches!(deed, Deed::Synced(_))).then_some(io::ErrorKind::Other)
    });
    pool.release_free_runs();
    place.files.refuse(|_| None);
    assert_ne!(take(&pool, 2).unwrap().first(), 0, "the hole is left alone");
    assert!(pool.pmem.journal().unwrap().settle().is_err(), "nothing is written any more");
}

#[test]
fn a_run_without_storage_is_not_taken() {
    let place = Place::new();
    let (pool, run, _other) = with_runs(&place);
    pool.free_run(run).unwrap();
    pool.release_free_runs();
    let full =
        |deed: &Deed| matches!(deed, Deed::Allocated(..)).then_some(io::ErrorKind::StorageFull);
    place.files.refuse(full);
    let used = pool.used_blocks();
    assert!(matches!(take(&pool, 2), Err(Error::PoolFull { .. })));
    assert_eq!(pool.used_blocks(), used);
    place.files.refuse(|_| None);
    while pool.ready_blocks() < used + 2 {
        pool.grow_beyond(pool.ready_blocks()).unwrap();
    }
    place.files.refuse(full);
    assert_eq!(take(&pool, 2).unwrap().first(), used, "blocks that are ready have storage");
    place.files.refuse(|_| None);
    assert_eq!(take(&pool, 2).unwrap().first(), 0, "nothing was changed");
}

/// They are ready, and behind the used ones.
#[test]
fn blocks_without_storage_that_are_given_back_ask_for_it_too() {
    let place = Place::new();
    let (pool, run, other) = with_runs(&place);
    pool.free_run(run).unwrap();
    pool.release_free_runs();
    pool.free_run(other).unwrap();
    assert_eq!(pool.used_blocks(), 0);
    place.files.take(|_| false);
    let _run = take(&pool, 2).unwrap();
    assert_eq!(allocated(&place, &pool), [(0, 2)]);
}

#[test]
fn short_runs_keep_their_storage() {
    let place = Place::new();
    let (pool, _first, _second) = with_runs(&place);
    let runs = [1, 1].map(|blocks| take(&pool, blocks).unwrap());
    let [run, _behind] = runs;
    pool.free_run(run).unwrap();
    place.files.take(|_| false);
    pool.release_free_runs();
    assert!(!place.deeds().iter().any(is_punched));
}

#[test]
fn opening_asks_for_the_storage_of_what_is_in_use_alone() {
    let place = Place::new();
    let (pool, run, other) = with_runs(&place);
    let (long, last) = (run.blocks(), other.first());
    pool.free_run(run).unwrap();
    pool.release_free_runs();
    drop(pool);
    let (pool, _) = place.open(&journaled()).unwrap();
    place.files.take(|_| false);
    assert_eq!(recover(&pool).unwrap(), [(u64::from(long), 1)]);
    assert_eq!(allocated(&place, &pool), [(0, 1), (last, last + 1)]);
    pool.ask_for_storage().unwrap();
    assert_eq!(allocated(&place, &pool), [], "asked for already");
    let _run = take(&pool, 2).unwrap();
    assert_eq!(allocated(&place, &pool), [(0, 3)]);
    drop(pool);

    let everything = PoolOptions { populate_at_open: true, ..journaled() };
    let (pool, _) = place.open(&everything).unwrap();
    place.files.take(|_| false);
    recover(&pool).unwrap();
    assert_eq!(allocated(&place, &pool), [(0, last + 1)]);
}

#[test]
fn a_lack_of_storage_is_an_error_at_open() {
    let place = Place::new();
    let (pool, _run, _other) = with_runs(&place);
    drop(pool);
    let is_lack = |error: Error| {
        let is_full = matches!(error, Error::PoolFull { .. });
        is_full && error.to_string().contains("a copy made with holes")
    };
    let (pool, _) = place.open(&journaled()).unwrap();
    place.files.refuse(full);
    assert!(recover(&pool).is_err_and(is_lack));
    // An engine without runs.
    assert!(pool.ask_for_storage().is_err_and(is_lack));
    place.files.refuse(|_| None);
    drop(pool);
    let (pool, _) = place.open(&reading()).unwrap();
    place.files.refuse(full);
    recover(&pool).unwrap();
    pool.ask_for_storage().unwrap();
}
