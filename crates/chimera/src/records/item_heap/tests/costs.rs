//! What each call asks of the memory, and what of an item can be read.

use super::*;
use crate::pool::small::media_pool;
use crate::pool::tests::media::{Asked, Media};

fn media_heap(layout: RecordLayout) -> (Media, Arc<Pool<Media>>, ItemHeap<Media>) {
    let media = Media::default();
    let pool = media_pool(&media, &[], 16 << 10, 256 << 10);
    let heap = ItemHeap::new(pool.clone(), HEAP, layout, 4);
    (media, pool, heap)
}

fn lines(at: u64, length: u64) -> std::ops::Range<u64> {
    at / 64 * 64..(at + length).next_multiple_of(64)
}

#[test]
fn an_item_costs_its_lines_and_a_fence_and_none_when_it_is_freed() {
    for layout in LAYOUTS {
        let (media, _pool, heap) = media_heap(layout);
        for bytes in [0, 5, 33, 100, 200] {
            let value = vec![3; bytes];
            let grow = || heap.grow(3, bytes, false).unwrap();
            let room = heap.allocate(3, bytes).unwrap_or_else(grow);
            let ((), asked) = media.watch(|| heap.write(room, hash(b"key"), 7, b"key", &value));
            assert_eq!(asked, [Asked::Flush(lines(room.offset(), room.length())), Asked::Fence]);
            let ((), asked) = media.watch(|| heap.prefetch(room.offset()));
            assert_eq!(asked, [Asked::Ahead(lines(room.offset(), 64))]);
            let withdrawn = media.withdrawn_ranges().len();
            let (_, asked) = media.watch(|| heap.free(room));
            assert_eq!(asked, []);
            let gone = (room.offset(), room.length());
            assert_eq!(media.withdrawn_ranges()[withdrawn..], [gone], "nothing leads to it");
        }
        let ((), asked) = media.watch(|| heap.prefetch(media.mapped()));
        assert_eq!(asked, [], "nothing lies there");
    }
}

#[test]
fn an_item_lies_in_the_used_blocks_with_all_its_bytes() {
    for layout in LAYOUTS {
        let (media, pool, heap) = media_heap(layout);
        let room = heap.grow(3, 100, false).unwrap();
        heap.write(room, hash(b"key"), 7, b"key", &[1; 100]);
        let end = pool.map.block_at(pool.used_blocks());
        let at = room.offset();
        let value_bytes = (end - at - span_of(layout, 3, 0)) as usize;
        for (bytes, is_inside) in [(value_bytes, true), (value_bytes + 1, false)] {
            media.store_u64(at, layout::encode(layout, 3, bytes), SITE);
            let item = Item { at, key_bytes: 3, value_bytes: bytes };
            assert_eq!(heap.decode(at), is_inside.then_some(item), "{layout:?}");
        }
        // In blocks that are not in use, what lies there is no item.
        for behind in [end, end + 8, end + 256] {
            media.store_u64(behind, layout::encode(layout, 3, 0), SITE);
            assert_eq!(heap.decode(behind), None);
        }
    }
}

fn span_of(layout: RecordLayout, key_bytes: usize, value_bytes: usize) -> u64 {
    layout::span(layout, key_bytes, value_bytes)
}

#[test]
fn the_key_of_an_item_is_its_length_and_all_its_bytes() {
    for layout in LAYOUTS {
        let (_media, _pool, heap) = media_heap(layout);
        let room = heap.grow(3, 5, false).unwrap();
        heap.write(room, hash(b"key"), 7, b"key", b"value");
        let item = heap.decode(room.offset()).unwrap();
        assert!(heap.key_is(&item, b"key"));
        for other in [&b"kez"[..], b"ke", b"", b"key\0"] {
            assert!(!heap.key_is(&item, other), "{other:?}");
        }
        let mut value = vec![9; 30];
        heap.read_value(&item, &mut value);
        assert_eq!(value, b"value");
        value.clear();
        heap.read_value(&item, &mut value);
        assert_eq!(value, b"value");
    }
}

#[test]
fn limits_are_whole_units_where_a_run_is_the_limit() {
    let limits = |pool: Arc<Pool<Hardware>>, layout| {
        let limits = new_heap(&pool, layout).limits();
        (limits.key_bytes, limits.value_bytes)
    };
    // 48 blocks of 256 bytes without a line: a fourth of that for the key.
    let [checked, published] = LAYOUTS.map(|layout| limits(new_pool(64 << 10), layout));
    assert_eq!(checked, (3056, (12_224 - 24 - 3056) / 32 * 32));
    assert_eq!(published, (1023, (12_224 - 8 - 1024) / 32 * 32));
    // Where runs are long, the word of an item is.
    let long = || small_pool(Arc::new(SteppedEnvironment::in_memory(1)), 8 << 20, 16 << 20);
    assert_eq!(limits(long(), RecordLayout::Published), (1023, (4 << 20) - 1));
    let (key_bytes, value_bytes) = limits(long(), RecordLayout::Checked);
    assert_eq!((key_bytes, value_bytes % 32), (4096, 0));
}

/// Recovery tells tools of all that nothing leads to.
#[test]
fn what_no_item_was_marked_in_is_withdrawn_when_recovery_ends() {
    let (media, pool, heap) = media_heap(RecordLayout::Checked);
    // Runs of 30 units; items of 5.
    let rooms: Vec<_> = (0..12)
        .map(|_| {
            let grow = || heap.grow(3, 120, false).unwrap();
            let room = heap.allocate(3, 120).unwrap_or_else(grow);
            heap.write(room, hash(b"key"), 7, b"key", &[1; 120]);
            room
        })
        .collect();
    let starts = [rooms[0], rooms[6]].map(Extent::offset);
    for condemns in [false, true] {
        let again = ItemHeap::new(pool.clone(), HEAP, RecordLayout::Checked, 4);
        pool.recover_runs(&[HEAP], false, |run| {
            let FoundRun::InUse(run) = run else { panic!("a word of a run is damaged") };
            again.adopt(run);
            Ok(())
        })
        .unwrap();
        for room in [0, 2, 11] {
            again.mark(rooms[room]).unwrap();
        }
        if condemns {
            again.condemn_found();
            again.condemn_found();
        }
        let withdrawn = media.withdrawn_ranges().len();
        assert_eq!(again.end_recovery(), []);
        let expected = [(starts[0] + 160, 160), (starts[0] + 480, 480), (starts[1], 800)];
        let expected = if condemns { &[][..] } else { &expected };
        assert_eq!(media.withdrawn_ranges()[withdrawn..], *expected);
        assert_eq!(again.counts(), (2, 1920, if condemns { 1920 } else { 480 }));
    }
}
