//! What each call flushes and fences, and what lies where.

use super::*;
use crate::pool::small::media_pool;
use crate::pool::tests::media::{Asked, Media};

fn media_log() -> (Media, RedoLog<Media>) {
    let media = Media::default();
    let pool = media_pool(&media, &[], 16 << 10, 64 << 10);
    let run = pool.take_bare_run(LOG, 4).unwrap();
    (media, RedoLog::new(pool, run, AREAS, AREA_BYTES))
}

fn flush(at: u64, length: u64) -> Asked {
    Asked::Flush(at / 64 * 64..(at + length).next_multiple_of(64))
}

#[test]
fn a_record_costs_its_lines_and_a_fence_and_then_its_change_is_decided() {
    let (media, log) = media_log();
    for (area, (key, value)) in
        [(b"key", Some(&[7; 200][..])), (b"abc", None)].into_iter().enumerate()
    {
        let at = log.area_at(area);
        let decided = media.decided();
        let (logged, asked) = media.watch(|| log.write(area, hash(key), key, value));
        let bytes = 24 + 8 + value.map_or(0, <[u8]>::len) as u64;
        assert_eq!(asked, [flush(at, bytes), Asked::Fence]);
        assert_eq!(media.decided(), decided + 1);
        let ((), asked) = media.watch(|| logged.withdraw());
        assert_eq!(asked, [flush(at + 8, 8), Asked::Fence]);
    }
    let ((), asked) = media.watch(|| log.clear_all([2, 0].into_iter()));
    let [third, first] = [2, 0].map(|area| flush(log.area_at(area) + 8, 8));
    assert_eq!(asked, [third, first, Asked::Fence]);
}

#[test]
fn records_of_an_area_are_counted_and_know_puts_from_deletes() {
    let (media, log) = media_log();
    for count in 1..5 {
        for value in [Some(&b"value"[..]), None] {
            drop(log.write(1, hash(b"key"), b"key", value));
            let at = log.area_at(1);
            let header = RecordHeader::load(&media, at + HEADER_AT);
            let place = at + 8 + u64::from(value.is_some());
            let summed = Summed::of(value.unwrap_or_default());
            assert_eq!(header.verify(place, hash(b"key"), Some(summed)), Ok(()));
            assert_eq!(header.version(), 2 * count - u64::from(value.is_some()));
        }
    }
}

#[test]
fn lengths_that_no_record_of_an_area_has_are_none() {
    let (media, log) = media_log();
    let at = log.area_at(1);
    let lengths = |word| {
        media.store_u64(at, word, sites::RECORD);
        log.lengths(at).map(|(is_put, lengths)| (is_put, lengths.span()))
    };
    let longest = Entry::record(at, 80, 216);
    assert_eq!(lengths(longest), Some((true, 320)));
    assert_eq!(lengths(Entry::retired(longest, at)), Some((false, 320)));
    for word in [Entry::record(at, 80, 217), Entry::record_of_chunks(at, 8), Entry::chunk(at, 8), 0]
    {
        assert_eq!(lengths(word), None, "{word:#x}");
    }
}

#[test]
fn a_run_has_room_for_its_areas_behind_the_line_of_the_pool() {
    let blocks = [(3, 320), (4, 256), (1, 192), (1, 193)]
        .map(|(areas, bytes)| run_blocks(areas, bytes, 256));
    assert_eq!(blocks, [4, 5, 1, 2]);
}
