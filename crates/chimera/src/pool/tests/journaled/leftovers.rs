//! What a lost life has left behind the used blocks.

use super::*;

const NAME: &str = "segment-000000";
/// Blocks in use, and what each byte was when the machine went down.
const USED: u64 = 3;
const LEFT: u8 = 7;

/// Bytes of the segment: the last page of what is used, which no replay writes, and what is not used.
fn parts(pool: &Pool<impl Pmem>) -> [std::ops::Range<usize>; 2] {
    let map = &pool.map;
    let at = |block| map.block_in_segment(block) as usize;
    [at(USED) - 4096..at(USED), at(USED)..map.header_in_segment() as usize]
}

/// Something is in every block.
fn fill(place: &Place) {
    let length = place.bytes(NAME).len() - 4096;
    place.file(NAME).write_at(0, &vec![LEFT; length]).unwrap();
    place.files.take(|_| false);
}

fn is_punched(deed: &Deed) -> bool {
    matches!(deed, Deed::Punched(name, _) if name == NAME)
}

/// Whether used blocks have what was in them, and no others.
fn is_removed(place: &Place, [used, unused]: [std::ops::Range<usize>; 2]) -> bool {
    let bytes = place.bytes(NAME);
    assert!(bytes[used].iter().all(|byte| *byte == LEFT), "nothing of what is used is removed");
    let left = bytes[unused.clone()].iter().filter(|byte| **byte != 0).count();
    assert!([0, unused.len()].contains(&left), "{left} bytes of {unused:?}");
    left == 0
}

/// A pool that was open with a journal, in order, when its process was killed.
fn left() -> Place {
    let place = Place::killed(USED);
    let (pool, _) = place.open(&journaled()).unwrap();
    pool.mark_open().unwrap();
    pool.mark_recovered().unwrap();
    drop(pool);
    fill(&place);
    place
}

#[test]
fn it_is_removed_durably_before_a_pool_that_was_not_closed_is_open() {
    let place = left();
    let (pool, _) = place.open(&journaled()).unwrap();
    assert!(is_removed(&place, parts(&pool)));
    let deeds = place.deeds();
    let punched = first(&deeds, is_punched);
    assert!(deeds[punched..].contains(&synced(NAME)), "{deeds:?}");
    assert_eq!(pool.pmem.load_u64(pool.map.block_at(USED)), 0, "also where it is mapped");
    drop(pool);
    // An opening without a journal uses the blocks as well. The one before was cut off.
    fill(&place);
    let pool = place.open_without().unwrap();
    assert!(is_removed(&place, parts(&pool)));
    assert!(place.deeds().contains(&synced(NAME)));
}

#[test]
fn where_a_file_system_makes_no_holes_zeros_are_written() {
    let place = left();
    place.files.refuse(|deed| is_punched(deed).then_some(io::ErrorKind::Unsupported));
    let (pool, _) = place.open(&journaled()).unwrap();
    assert!(is_removed(&place, parts(&pool)));
    drop(pool);
    // Nothing is written where there are zeros.
    place.files.take(|_| false);
    let (_pool, _) = place.open(&journaled()).unwrap();
    assert!(!place.deeds().iter().any(is_written(NAME)));
}

#[test]
fn a_failure_is_an_error_and_leaves_it_for_the_next_opening() {
    let place = left();
    let (pool, _) = place.open(&reading()).unwrap();
    let [_, unused] = parts(&pool);
    drop(pool);
    // What the journal has is written.
    let is_behind = move |bytes: &std::ops::Range<u64>| {
        bytes.start >= unused.start as u64 && bytes.end <= unused.end as u64
    };
    let fails = move |deed: &Deed| match deed {
        Deed::Punched(name, bytes) | Deed::Written(name, bytes) => name == NAME && is_behind(bytes),
        _ => false,
    };
    place.files.refuse(move |deed| fails(deed).then_some(io::ErrorKind::Other));
    let error = place.open(&journaled()).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("clear unused space of"), "{error}");
    place.files.refuse(|_| None);
    let (pool, _) = place.open(&journaled()).unwrap();
    assert!(is_removed(&place, parts(&pool)));
}

#[test]
fn nothing_is_removed_by_readers_nor_from_a_pool_that_was_closed() {
    let place = left();
    let (pool, _) = place.open(&reading()).unwrap();
    assert!(!is_removed(&place, parts(&pool)));
    drop(pool);
    let place = Place::closed(USED);
    fill(&place);
    let (pool, _) = place.open(&journaled()).unwrap();
    assert!(!is_removed(&place, parts(&pool)));
    assert!(!place.deeds().iter().any(is_punched));
}

/// That the pool is open again is in the journal alone, and was lost with all else; so it was when the pool was made.
#[test]
fn it_is_removed_although_the_superblock_says_that_the_pool_was_closed() {
    for place in [Place::closed(USED), Place::killed(USED)] {
        let (pool, _) = place.open(&journaled()).unwrap();
        let before = ["superblock", "journal"].map(|name| (name, place.bytes(name)));
        pool.mark_open().unwrap();
        drop(pool);
        fill(&place);
        for (name, bytes) in before {
            place.file(name).write_at(0, &bytes).unwrap();
        }
        let (pool, _) = place.open(&journaled()).unwrap();
        assert!(is_removed(&place, parts(&pool)));
    }
}

/// Where all storage was asked for, it is not given back: somebody else could take it.
#[test]
fn storage_that_was_asked_for_stays() {
    let place = left();
    let options = PoolOptions { populate_at_open: true, ..journaled() };
    let (pool, _) = place.open(&options).unwrap();
    assert!(is_removed(&place, parts(&pool)) && !place.deeds().iter().any(is_punched));
}

/// What somebody put in the place of a segment is not changed before that is noticed.
#[test]
fn nothing_is_removed_where_a_segment_is_not_of_this_pool() {
    let place = left();
    let header = place.bytes(NAME).len() as u64 - 4096;
    place.flip(NAME, header + 8);
    let before = place.bytes(NAME);
    let error = place.open_without().map(|_| ()).unwrap_err();
    assert!(matches!(error, Error::Corrupted { .. }), "{error}");
    assert!(place.bytes(NAME) == before && !place.deeds().iter().any(is_punched));
}
