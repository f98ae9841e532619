//! What the heap promises to engines, [`costs`], and [`space`] that is used again or never. Crashes are the crash lab's.

mod costs;
mod space;

use chimera_pmem::{Extent, Hardware, Site, SteppedEnvironment};

use super::*;
use crate::pool::runs::FoundRun;
use crate::pool::small::small_pool;
use crate::records::key_hash::KeyHash;
use crate::types::error::Error;

const HEAP: BlockKind = BlockKind::new(2, "heap");
const SITE: Site = Site::new("test");
const LAYOUTS: [RecordLayout; 2] = [RecordLayout::Checked, RecordLayout::Published];

fn new_pool(bytes: u64) -> Arc<Pool<Hardware>> {
    small_pool(Arc::new(SteppedEnvironment::in_memory(1)), 16 << 10, bytes)
}

/// Runs of four blocks.
fn new_heap(pool: &Arc<Pool<Hardware>>, layout: RecordLayout) -> ItemHeap<Hardware> {
    ItemHeap::new(pool.clone(), HEAP, layout, 4)
}

fn room(heap: &ItemHeap<Hardware>, key: &[u8], value: &[u8]) -> Result<Extent, Error> {
    let grow = || heap.grow(key.len(), value.len(), false);
    heap.allocate(key.len(), value.len()).map_or_else(grow, Ok)
}

fn hash(key: &[u8]) -> u64 {
    KeyHash::new(1).of(key)
}

fn write(heap: &ItemHeap<Hardware>, key: &[u8], value: &[u8]) -> Result<Extent, Error> {
    let room = room(heap, key, value)?;
    heap.write(room, hash(key), 7, key, value);
    Ok(room)
}

fn read(heap: &ItemHeap<Hardware>, at: u64) -> Option<(Vec<u8>, Vec<u8>)> {
    let (mut key, mut value) = (Vec::new(), Vec::new());
    let item = heap.decode(at)?;
    heap.read_key(&item, &mut key);
    let summed = heap.read_summed(&item, &mut value);
    heap.is_sound(&item, hash(&key), Some(summed)).then_some((key, value))
}

fn sample(number: u64) -> (Vec<u8>, Vec<u8>) {
    let key = [&number.to_le_bytes()[..], &vec![0x5a; number as usize % 29]].concat();
    (key, vec![number as u8; (number * 37 % 1500) as usize])
}

#[test]
fn items_of_every_size_come_back_and_never_overlap() {
    for layout in LAYOUTS {
        let pool = new_pool(1 << 20);
        let heap = new_heap(&pool, layout);
        let mut rooms: Vec<(u64, Extent)> = Vec::new();
        for number in 0..400 {
            let (key, value) = sample(number);
            let room = write(&heap, &key, &value).unwrap();
            assert!(room.offset().is_multiple_of(32));
            rooms.push((number, room));
            if number % 3 == 2 {
                let (_, gone) = rooms.swap_remove((number * 7) as usize % rooms.len());
                if let Some(run) = heap.free(gone) {
                    pool.free_run(run).unwrap();
                }
            }
        }
        rooms.sort_by_key(|(_, room)| room.offset());
        assert!(rooms.windows(2).all(|pair| pair[0].1.end() <= pair[1].1.offset()));
        for (number, room) in &rooms {
            assert_eq!(read(&heap, room.offset()), Some(sample(*number)), "{layout:?}");
            let item = heap.decode(room.offset()).unwrap();
            assert_eq!(heap.extent(&item), *room);
            assert!(heap.key_is(&item, &sample(*number).0) && !heap.key_is(&item, b"other"));
            assert_eq!(heap.version(&item), if layout == RecordLayout::Checked { 7 } else { 0 });
        }
    }
}

#[test]
fn what_is_marked_is_taken_and_everything_else_is_free() {
    let pool = new_pool(256 << 10);
    let heap = new_heap(&pool, RecordLayout::Checked);
    let rooms: Vec<_> =
        (0..100).map(|number| write(&heap, &sample(number).0, &[1; 100]).unwrap()).collect();
    let again = found(&pool);
    let kept: Vec<_> = rooms.iter().copied().step_by(40).collect();
    for room in &kept {
        again.mark(*room).unwrap();
    }
    assert!(again.mark(kept[1]).is_err(), "twice");
    let inside = Extent::new_checked(kept[1].offset() + 32, 32);
    assert!(again.mark(inside).is_err(), "in another one");
    for (at, bytes) in [(0, 32), (8, 32), (kept[0].offset() + 8, 32), (rooms[1].offset(), 1 << 40)]
    {
        assert!(again.mark(Extent::new_checked(at, bytes)).is_err(), "{bytes} bytes at {at}");
    }
    let empty = again.end_recovery();
    assert!(!empty.is_empty());
    for run in empty {
        pool.free_run(run).unwrap();
    }
    let before = pool.used_blocks();
    for number in 200..204 {
        write(&again, &sample(number).0, &[2; 100]).unwrap();
    }
    assert_eq!(pool.used_blocks(), before, "there was room in the runs that stayed");
    for (number, room) in (0..100).step_by(40).zip(kept) {
        assert_eq!(read(&again, room.offset()), Some((sample(number).0, vec![1; 100])));
    }
}

/// A heap with the runs of `pool`, in which nothing is marked.
fn found(pool: &Arc<Pool<Hardware>>) -> ItemHeap<Hardware> {
    let heap = new_heap(pool, RecordLayout::Checked);
    pool.recover_runs(&[HEAP], false, |run| {
        let FoundRun::InUse(run) = run else { panic!("a word of a run is damaged") };
        heap.adopt(run);
        Ok(())
    })
    .unwrap();
    heap
}

#[test]
fn nothing_is_taken_in_runs_that_were_found_until_all_items_are_marked() {
    let pool = new_pool(256 << 10);
    let heap = new_heap(&pool, RecordLayout::Checked);
    let rooms: Vec<_> = (0..20).map(|_| write(&heap, b"key", &[1; 100]).unwrap()).collect();
    let again = found(&pool);
    let (end, units) = (pool.map.block_at(pool.used_blocks()), rooms[0].length().div_ceil(32) * 32);
    assert!(again.places().has(rooms[3].offset()) && !again.places().has(rooms[3].offset() + 8));
    assert!(!again.places().has(end) && !again.places().has(0));
    let fresh: Vec<_> = (0..5).map(|_| write(&again, b"key", &[2; 100]).unwrap()).collect();
    assert!(fresh.iter().all(|room| room.offset() > end));
    for room in &fresh {
        again.mark(*room).expect("it is taken");
    }
    // Before it is marked, and after.
    again.mark(rooms[1]).unwrap();
    for room in &rooms[..2] {
        assert_eq!(again.free(*room), None, "its run may have others");
    }
    for room in &rooms[2..6] {
        again.mark(*room).unwrap();
    }
    assert_eq!(again.free(fresh[0]), None);
    assert!(again.mark(fresh[0]).is_err(), "nothing is there any more");
    assert_eq!(again.counts().2, 8 * units);
    assert!(!again.give_back_empty());
    for run in again.end_recovery() {
        again.give_back(run);
    }
    assert_eq!(again.counts().2, 8 * units);
    let mut taken: Vec<_> =
        (0..30).map(|_| write(&again, b"key", &[3; 100]).unwrap().offset()).collect();
    taken.extend(rooms[2..6].iter().chain(&fresh[1..]).map(|room| room.offset()));
    taken.sort_unstable();
    assert!(taken.windows(2).all(|pair| pair[0] + units <= pair[1]), "taken twice");
    assert!(taken[0] < end, "what is free is used again");
}

#[test]
fn nothing_is_used_again_where_it_is_not_known_what_is_reached() {
    let pool = new_pool(256 << 10);
    let heap = new_heap(&pool, RecordLayout::Checked);
    let rooms: Vec<_> = (0..20).map(|_| write(&heap, b"key", &[1; 100]).unwrap()).collect();
    let again = found(&pool);
    again.mark(rooms[0]).unwrap();
    again.condemn_found();
    again.mark(rooms[1]).expect("all of it is taken");
    for room in &rooms {
        assert_eq!(again.free(*room), None);
    }
    assert_eq!(again.end_recovery(), []);
    let end = pool.map.block_at(pool.used_blocks());
    for _ in 0..30 {
        assert!(write(&again, b"key", &[2; 100]).unwrap().offset() > end);
    }
}

#[test]
fn a_run_whose_last_item_is_freed_is_given_back() {
    let pool = new_pool(256 << 10);
    let heap = new_heap(&pool, RecordLayout::Checked);
    let (key, value) = (b"a key", vec![3; 8000]);
    for _ in 0..50 {
        let small = write(&heap, key, &[1; 700]).unwrap();
        let large = write(&heap, key, &value).unwrap();
        // Room is taken in the larger one now.
        let run = heap.free(small).expect("the last item of a run");
        pool.free_run(run).unwrap();
        assert_eq!(heap.free(large), None, "one run is kept");
    }
    assert!(pool.used_blocks() < 100, "{} blocks", pool.used_blocks());
    let (runs, _, used) = heap.counts();
    assert_eq!((runs, used), (1, 0));
}

/// Each item is larger than the run that the one before it has left empty.
#[test]
fn runs_that_are_empty_and_too_small_are_given_back() {
    let pool = new_pool(256 << 10);
    let heap = new_heap(&pool, RecordLayout::Checked);
    for blocks in 5..48 {
        let room = write(&heap, b"a key", &vec![3; 256 * blocks - 200]).unwrap();
        if let Some(run) = heap.free(room) {
            heap.give_back(run);
        }
        assert_eq!(heap.counts().0, 1, "runs with room for {blocks} blocks");
    }
    // Two in turn, the smaller one in a run that room was taken in before.
    for _ in 0..50 {
        for bytes in [3000, 9000] {
            let room = write(&heap, b"a key", &vec![3; bytes]).unwrap();
            if let Some(run) = heap.free(room) {
                heap.give_back(run);
            }
        }
    }
    assert!(heap.counts().0 <= 2, "{:?}", heap.counts());
    assert!(heap.give_back_empty() && !heap.give_back_empty());
    assert_eq!(heap.counts(), (0, 0, 0));
    assert_eq!(pool.count_runs(&[HEAP]).free_blocks, pool.used_blocks());
}

#[test]
fn a_full_pool_is_an_error_and_room_that_is_freed_is_found() {
    let pool = new_pool(48 << 10);
    let heap = new_heap(&pool, RecordLayout::Checked);
    let mut rooms = Vec::new();
    let error = loop {
        match write(&heap, b"key", &[1; 200]) {
            Ok(room) => rooms.push(room),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::PoolFull { .. }), "{error}");
    assert!(rooms.len() > 50);
    let last = rooms[20];
    assert_eq!(heap.free(last), None);
    assert_eq!(write(&heap, b"key", &[1; 200]).unwrap().offset(), last.offset());
    assert!(write(&heap, b"key", &[1; 200]).is_err());
}

#[test]
fn every_flipped_bit_of_an_item_is_noticed() {
    let pool = new_pool(64 << 10);
    let heap = new_heap(&pool, RecordLayout::Checked);
    let (key, value) = (vec![1; 13], vec![2; 43]);
    let room = write(&heap, &key, &value).unwrap();
    let at = room.offset();
    for bit in 0..8 * room.length() {
        let word_at = at + bit / 64 * 8;
        let word = pool.pmem.load_u64(word_at);
        pool.pmem.store_u64(word_at, word ^ 1 << (bit % 64), SITE);
        let found = read(&heap, at);
        let is_padding = found == Some((key.clone(), value.clone()));
        let in_padding = (24 + 13..24 + 16).contains(&(bit / 8)) || bit / 8 >= 24 + 16 + 43;
        assert!(found.is_none() || is_padding && in_padding, "bit {bit}");
        pool.pmem.store_u64(word_at, word, SITE);
    }
    assert_eq!(read(&heap, at), Some((key, value)));
}

#[test]
fn hostile_positions_and_lengths_are_refused() {
    for layout in LAYOUTS {
        let pool = new_pool(64 << 10);
        let heap = new_heap(&pool, layout);
        let room = write(&heap, b"key", &[1; 100]).unwrap();
        for at in [1, 12, 1 << 20, u64::MAX, u64::MAX - 7, room.offset() + 4] {
            assert_eq!(heap.decode(at), None, "{at}");
        }
        let too_long = layout::encode(layout, 3, 1 << 20);
        pool.pmem.store_u64(room.offset(), too_long, SITE);
        assert_eq!(heap.decode(room.offset()), None, "beyond the used blocks");
    }
}

#[test]
fn limits_are_what_the_layout_and_the_pool_have_room_for() {
    let pool = new_pool(64 << 10);
    for layout in LAYOUTS {
        let heap = new_heap(&pool, layout);
        let limits = heap.limits();
        let (key, value) = (vec![1; limits.key_bytes], vec![2; limits.value_bytes]);
        let room = write(&heap, &key, &value).unwrap();
        assert_eq!(read(&heap, room.offset()), Some((key, value)));
        if let Some(run) = heap.free(room) {
            pool.free_run(run).unwrap();
        }
    }
}

#[test]
fn sparing_runs_double_up_to_the_usual_length() {
    let pool = new_pool(1 << 20);
    let heap = new_heap(&pool, RecordLayout::Checked);
    let mut runs = Vec::new();
    for _ in 0..6 {
        let before = pool.count_runs(&[HEAP]).kinds[0].blocks;
        heap.grow(8, 8, true).unwrap();
        runs.push(pool.count_runs(&[HEAP]).kinds[0].blocks - before);
    }
    assert_eq!(runs, [1, 1, 2, 4, 4, 4]);
    let before = pool.count_runs(&[HEAP]).kinds[0].blocks;
    heap.grow(8, 10 * pool.map.block_bytes as usize, true).unwrap();
    assert_eq!(pool.count_runs(&[HEAP]).kinds[0].blocks - before, 11);
}
