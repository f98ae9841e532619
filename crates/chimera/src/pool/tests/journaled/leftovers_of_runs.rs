//! What a lost life has left in free runs.

use super::*;
use crate::pool::block_word::BlockKind;
use crate::pool::runs::FoundRun;
use crate::types::totals::Totals;

const NAME: &str = "segment-000000";
const KIND: BlockKind = BlockKind::new(1, "log");
/// Blocks of the free run. Behind it one is in use.
const FREE: u64 = 4;
/// What each byte was when the machine went down.
const LEFT: u8 = 7;

/// The runs of a pool are found, as an engine does.
fn open(place: &Place, options: &PoolOptions) -> Arc<Pool<Hardware>> {
    let (pool, _) = place.open(options).unwrap();
    recover(&pool);
    pool
}

fn recover(pool: &Pool<impl Pmem>) {
    pool.mark_open().unwrap();
    let mut found = 0;
    pool.recover_runs(&[KIND], false, |run| {
        assert!(matches!(run, FoundRun::InUse(_)));
        found += 1;
        Ok(())
    })
    .unwrap();
    assert_eq!(found, u64::from(pool.used_blocks() > FREE));
}

/// Something is behind the first page of each run.
fn fill(place: &Place) {
    let map = BlockMap::new(FILE_BYTES, &new_superblock().geometry).unwrap();
    let at = |block| map.block_in_segment(block);
    for part in [4096..at(FREE), at(FREE) + 4096..at(FREE + 1)] {
        place
            .file(NAME)
            .write_at(part.start, &vec![LEFT; (part.end - part.start) as usize])
            .unwrap();
    }
    place.files.take(|_| false);
}

/// The first run is free, and one in use lies behind it.
fn free_the_first_run(pool: &Pool<Hardware>) {
    let run = pool.take_bare_run(KIND, FREE as u32).unwrap();
    let _used = pool.take_bare_run(KIND, 1).unwrap();
    pool.free_run(run).unwrap();
}

/// A pool that was open in order, with a free run, when its process was killed.
fn left() -> Place {
    let place = Place::new();
    let pool = open(&place, &journaled());
    pool.mark_recovered().unwrap();
    free_the_first_run(&pool);
    drop(pool);
    fill(&place);
    place
}

/// Whether the free run has zeros, and nothing else was removed.
fn is_removed(place: &Place, pool: &Pool<impl Pmem>) -> bool {
    let bytes = place.bytes(NAME);
    let at = |block| pool.map.block_in_segment(block) as usize;
    assert!(bytes[at(FREE) + 4096..at(FREE + 1)].iter().all(|byte| *byte == LEFT));
    assert_ne!(bytes[..8], [0; 8], "the word of the run");
    let place = &bytes[4096..at(FREE)];
    let left = place.iter().filter(|byte| **byte != 0).count();
    assert!([0, place.len()].contains(&left), "{left} bytes of {}", place.len());
    left == 0
}

fn is_punched(deed: &Deed) -> bool {
    matches!(deed, Deed::Punched(name, bytes) if name == NAME && bytes.start == 4096)
}

fn assert_removed_durably(place: &Place, pool: &Pool<impl Pmem>) {
    assert!(is_removed(place, pool));
    let deeds = place.deeds();
    let punched = first(&deeds, is_punched);
    assert!(deeds[punched..].contains(&synced(NAME)), "{deeds:?}");
    assert_eq!(pool.pmem.load_u64(pool.map.block_at(0) + 4096), 0, "also where it is mapped");
}

#[test]
fn it_is_removed_durably_once_a_pool_that_was_not_closed_is_recovered() {
    let place = left();
    let pool = open(&place, &journaled());
    assert!(!is_removed(&place, &pool), "an engine may refuse the pool");
    pool.mark_recovered().unwrap();
    assert_removed_durably(&place, &pool);
    pool.mark_recovered().unwrap();
    assert!(!place.deeds().iter().any(is_punched), "only once");
}

#[test]
fn it_is_removed_before_a_recovery_takes_blocks() {
    for blocks in [1, 5] {
        let place = left();
        let pool = open(&place, &journaled());
        place.files.take(|_| false);
        let run = pool.take_bare_run(KIND, blocks).unwrap();
        assert_eq!(run.first(), if blocks == 1 { 0 } else { 5 });
        let has_storage = place.files.take(
            |deed| matches!(deed, Deed::Allocated(name, bytes) if name == NAME && bytes.start == 0),
        );
        assert_eq!(has_storage.is_empty(), blocks > 1, "of all of its first block");
    }
    for blocks in [1, 5] {
        let place = left();
        let pool = open(&place, &journaled());
        place.files.take(|_| false);
        let _run = pool.take_bare_run(KIND, blocks).unwrap();
        assert_removed_durably(&place, &pool);
    }
}

/// All of them are fresh once the last run is free, too.
#[test]
fn it_is_removed_before_blocks_that_were_given_back_are_taken() {
    let place = left();
    let (pool, _) = place.open(&journaled()).unwrap();
    pool.mark_open().unwrap();
    let mut used = None;
    let visit = |run| {
        used = Some(run);
        Ok(())
    };
    pool.recover_runs(&[KIND], false, visit).unwrap();
    let Some(FoundRun::InUse(run)) = used else { panic!("{used:?}") };
    pool.free_run(run).unwrap();
    assert_eq!(pool.used_blocks(), 0);
    let taken = pool.take_bare_run(KIND, 1).unwrap();
    assert_eq!((taken.first(), pool.pmem.load_u64(pool.map.block_at(0) + 4096)), (0, 0));
    assert!(place.deeds().contains(&synced(NAME)));
}

#[test]
fn where_no_holes_are_made_zeros_are_written() {
    let place = left();
    place
        .files
        .refuse(|deed| matches!(deed, Deed::Punched(..)).then_some(io::ErrorKind::Unsupported));
    let pool = open(&place, &journaled());
    pool.mark_recovered().unwrap();
    // What is pending has nothing to say of it.
    assert!(is_removed(&place, &pool));
    drop(pool);
    let kept = PoolOptions { populate_at_open: true, ..journaled() };
    let place = left();
    let pool = open(&place, &kept);
    pool.mark_recovered().unwrap();
    assert!(is_removed(&place, &pool) && !place.deeds().iter().any(is_punched));
}

/// Before it is marked as open: the journal goes then, and whoever comes next would not know.
#[test]
fn an_opening_without_a_journal_removes_it_at_once() {
    let place = left();
    let pool = place.open_without().unwrap();
    let words = || (4096..pool.map.block_at(FREE) - pool.map.block_at(0)).step_by(8);
    let is_zero = |at| pool.pmem.load_u64(pool.map.block_at(0) + at) == 0;
    assert!(!words().any(is_zero));
    pool.mark_open().unwrap();
    assert!(words().all(is_zero));
    assert!(!place.has("journal"));
    let used = pool.pmem.load_u64(pool.map.block_at(FREE) + 4096);
    assert_eq!(used, u64::from_le_bytes([LEFT; 8]), "nothing of what is used");
    // Where the words of runs are damaged nobody knows what is free.
    let place = left();
    let pool = place.open_without().unwrap();
    pool.pmem.store_u64(pool.map.block_at(0), 1, SITE);
    pool.mark_open().unwrap();
    assert_ne!(pool.pmem.load_u64(pool.map.block_at(0) + 4096), 0);
}

/// A pool that was closed, of which a life was lost: the superblock still says that it is closed.
#[test]
fn an_opening_that_is_refused_leaves_it_for_the_next_one() {
    let place = left();
    let pool = open(&place, &journaled());
    pool.mark_recovered().unwrap();
    pool.close_with([0; CLOSED_WORDS], Totals { records: 1, ..Totals::default() }).unwrap();
    drop(pool);
    let before = |place: &Place| ["superblock", "journal"].map(|name| (name, place.bytes(name)));
    let (pool, _) = place.open(&journaled()).unwrap();
    let kept = before(&place);
    pool.mark_open().unwrap();
    drop(pool);
    for (name, bytes) in kept {
        place.file(name).write_at(0, &bytes).unwrap();
    }
    fill(&place);
    let (pool, opened) = place.open(&journaled()).unwrap();
    assert!(opened.clean);
    pool.mark_open().unwrap();
    pool.close_as_it_was().unwrap();
    drop(pool);
    let (pool, opened) = place.open(&journaled()).unwrap();
    assert!(opened.clean && !is_removed(&place, &pool));
    recover(&pool);
    pool.mark_recovered().unwrap();
    assert_removed_durably(&place, &pool);
}

#[test]
fn a_failure_is_an_error_and_the_next_one_does_it_again_unless_it_is_one_of_a_sync() {
    for fails_to_sync in [false, true] {
        let fails: fn(&Deed) -> bool =
            if fails_to_sync { |deed| *deed == synced(NAME) } else { is_punched };
        let place = left();
        let pool = open(&place, &journaled());
        // The journal has nothing to sync by itself.
        pool.pmem.journal().unwrap().checkpoint().unwrap();
        place.files.refuse(move |deed| fails(deed).then_some(io::ErrorKind::Other));
        let error = pool.remove_leftovers_of_runs().unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{error}");
        assert!(pool.take_bare_run(KIND, 1).is_err(), "nothing is taken before");
        place.files.refuse(|_| None);
        place.files.take(|_| false);
        if fails_to_sync {
            // The kernel does not try again to write what it could not.
            assert!(pool.remove_leftovers_of_runs().is_err());
            assert!(pool.pmem.journal().unwrap().settle().is_err());
        } else {
            pool.remove_leftovers_of_runs().unwrap();
            assert_removed_durably(&place, &pool);
        }
    }
}

#[test]
fn nothing_is_removed_from_a_pool_that_was_closed_nor_by_readers() {
    let place = left();
    let before = place.bytes(NAME);
    let (pool, _) = place.open(&reading()).unwrap();
    pool.recover_runs(&[KIND], false, |_| Ok(())).unwrap();
    pool.mark_recovered().unwrap();
    assert!(place.bytes(NAME) == before);
    drop(pool);
    let pool = open(&place, &journaled());
    pool.mark_recovered().unwrap();
    pool.close().unwrap();
    drop(pool);
    fill(&place);
    let pool = open(&place, &journaled());
    pool.mark_recovered().unwrap();
    assert!(!is_removed(&place, &pool));
}

/// What is stored to a run that was free is written once, from the second page on.
#[test]
fn a_run_that_was_free_is_taken_once_that_is_written_back() {
    let place = Place::new();
    let pool = open(&place, &journaled());
    pool.mark_recovered().unwrap();
    free_the_first_run(&pool);
    let journal = pool.pmem.journal().unwrap();
    journal.sync().unwrap();
    // The word that says so is pending.
    let run = pool.take_bare_run(KIND, FREE as u32).unwrap();
    let at = pool.map.block_at(0) + 8192;
    let put = |at| {
        store(&pool, at, 9);
        pool.pmem.fence(SITE);
        word(&place.bytes(NAME), at - pool.map.base)
    };
    assert_eq!(put(at), 0);
    journal.checkpoint().unwrap();
    pool.free_run(run).unwrap();
    journal.checkpoint().unwrap();
    let _run = pool.take_bare_run(KIND, FREE as u32).unwrap();
    let [first, second] = [0, 4096].map(|page| pool.map.block_at(0) + page + 64);
    assert_eq!((put(first), put(second)), (0, 9));
    assert_eq!(put(at + 64), 0, "this page has stores of its own");
    let last = pool.map.block_at(FREE) - 8;
    assert_eq!(put(last), 9);
}
