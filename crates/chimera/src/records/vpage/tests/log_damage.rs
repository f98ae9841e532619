//! Logs in which something is damaged, and what a scan tells of them.

use super::logs::{SPAN, filled, fixture, key, put_spans, value};
use super::*;
use crate::pool::tests::media::LeftOut;
use crate::records::lengths::Entry;
use crate::records::page_word::PageWord;

const LENGTHS: &str = "the lengths of a record are damaged: what follows in its page is lost";
const LOST: &str = "the log of a page ends before its end: records are lost";
const BEYOND: &str = "the log of a page goes on behind its end";

/// The numbers of the keys that a scan finds in blocks whose keys count up in each page.
fn numbers(found: &Found) -> Vec<u8> {
    found.keys().iter().map(|key| key[1]).collect()
}

fn block() -> (Fixture<LogPages>, u64, Vec<Place>) {
    let fixture = fixture();
    let (block, places) = filled(&fixture, [&[SPAN; 2], &[SPAN; 4], &[SPAN; 3]]);
    (fixture, block, places)
}

#[test]
fn damaged_lengths_hide_what_follows_but_for_salvage() {
    let (fixture, block, places) = block();
    let usage = fixture.usage(block);
    for (number, found, salvaged) in [
        (2, vec![0, 1, 0, 1, 2], vec![0, 1, 1, 2, 3, 0, 1, 2]),
        (3, vec![0, 1, 0, 0, 1, 2], vec![0, 1, 0, 2, 3, 0, 1, 2]),
        (5, vec![0, 1, 0, 1, 2, 0, 1, 2], vec![0, 1, 0, 1, 2, 0, 1, 2]),
        (8, vec![0, 1, 0, 1, 2, 3, 0, 1], vec![0, 1, 0, 1, 2, 3, 0, 1]),
    ] {
        let at = places[number].record_at;
        for bit in [0, 1, 20, 40, 63] {
            fixture.flip(at, 1 << bit);
            let seen = fixture.scan(block, false);
            assert_eq!((numbers(&seen), &seen.damages[..]), (found.clone(), &[(at, LENGTHS)][..]));
            assert_eq!(seen.room[0], 0, "what follows damage is not known to be free");
            let seen = fixture.scan(block, true);
            // A log that was gone on with behind damage does not say where it ends.
            assert_eq!((numbers(&seen), seen.damages), (salvaged.clone(), vec![(at, LENGTHS)]));
            fixture.flip(at, 1 << bit);
        }
    }
    assert_eq!(fixture.usage(block), usage);
}

#[test]
fn a_log_that_ends_before_its_seal_has_lost_records() {
    let (fixture, block, places) = block();
    for (number, found, salvaged) in [
        (2, vec![0, 1, 0, 1, 2], vec![0, 1, 1, 2, 3, 0, 1, 2]),
        (4, vec![0, 1, 0, 1, 0, 1, 2], vec![0, 1, 0, 1, 3, 0, 1, 2]),
        (5, vec![0, 1, 0, 1, 2, 0, 1, 2], vec![0, 1, 0, 1, 2, 0, 1, 2]),
    ] {
        let at = places[number].record_at;
        let word = fixture.media.load_u64(at);
        fixture.media.store_u64(at, 0, SITE);
        let seen = fixture.scan(block, false);
        assert_eq!((numbers(&seen), &seen.damages[..]), (found.clone(), &[(at, LOST)][..]));
        assert_eq!(numbers(&fixture.scan(block, true)), salvaged);
        assert_eq!(fixture.usage(block)[2], 1);
        // While the page is open it may end there.
        let head_at = places[number].page_at;
        let sealed = PageWord::load(&fixture.pool, head_at).unwrap();
        PageWord::open(0).store(&fixture.pool, head_at, SITE);
        let seen = fixture.scan(block, true);
        assert_eq!((numbers(&seen), seen.damages), (found.clone(), vec![]));
        assert_eq!(fixture.usage(block)[2], 0);
        sealed.store(&fixture.pool, head_at, SITE);
        fixture.media.leave_out(Some(LeftOut::Step(steps::SEAL_CHECK)));
        assert_eq!(fixture.scan(block, false).damages, [], "as a tool wants");
        fixture.media.leave_out(None);
        fixture.media.store_u64(at, word, SITE);
    }
}

#[test]
fn a_log_that_goes_on_behind_its_seal_is_told_of_at_the_seal() {
    let (fixture, block, places) = block();
    let at = fixture.page_at(block, 1);
    for (records, end) in [(1, 64), (2, 120), (3, 176)] {
        PageWord { flags: 0, end }.store(&fixture.pool, at, SITE);
        for is_salvage in [false, true] {
            let found = fixture.scan(block, is_salvage);
            assert_eq!(found.damages, [(at + end, BEYOND)], "{records} records");
            assert_eq!(numbers(&found), [0, 1, 0, 1, 2, 3, 0, 1, 2], "they are records, too");
            assert_eq!(found.room[0], 0);
        }
    }
    // A page that is full to its end, and sealed before.
    let (full, _) = filled(&fixture, [&[248], &[SPAN], &[SPAN]]);
    PageWord { flags: 0, end: 64 }.store(&fixture.pool, fixture.page_at(full, 0), SITE);
    let found = fixture.scan(full, true);
    assert_eq!(found.damages, [(fixture.page_at(full, 0) + 64, BEYOND)]);
    assert_eq!(places.len(), 9);
}

#[test]
fn a_damaged_first_word_of_a_page_leaves_its_records() {
    let (fixture, block, _) = block();
    for page in [1, 2] {
        let at = fixture.page_at(block, page);
        fixture.flip(at, 1 << 40);
        let found = fixture.scan(block, false);
        assert_eq!(found.damages, [(at, DAMAGED_PAGE)]);
        assert_eq!((found.records.len(), found.room[0]), (9, 0));
        fixture.flip(at, 1 << 40);
    }
    // That of the first page is told of with the flags of the block, which the caller has read.
    fixture.flip(fixture.page_at(block, 0), 1 << 40);
    let found = fixture.scan(block, false);
    assert_eq!((found.damages, found.records.len(), found.room[0]), (vec![], 9, 0));
    let at = fixture.page_at(block, 2);
    fixture.flip(at, 1 << 40);
    assert_eq!(fixture.scan(block, false).damages, [(at, DAMAGED_PAGE)], "of the others always");
}

/// In the first page, too, where its flags are right and its end is not.
#[test]
fn an_end_that_cannot_be_is_told_of_where_the_flags_are_right() {
    let (fixture, block, _) = block();
    let at = fixture.page_at(block, 0);
    PageWord { flags: 0, end: 264 }.store(&fixture.pool, at, SITE);
    assert!(block_flags::read(&fixture.pool, block).is_ok());
    let found = fixture.scan(block, false);
    assert_eq!((found.damages, found.records.len()), (vec![(at, DAMAGED_PAGE)], 9));
}

#[test]
fn salvage_resumes_where_a_record_is_sound_and_lies_in_its_log() {
    let (fixture, block, places) = block();
    let place = places[2];
    fixture.flip(place.record_at, 1);
    // In the value of the damaged record: words that look like lengths.
    let inside = place.record_at + 32;
    for (key_bytes, beside_bytes) in [(5, 20), (5, 1000), (1, 0), (192, 500)] {
        let word = Entry::record(inside, key_bytes, beside_bytes);
        fixture.media.store_u64(inside, word, SITE);
        let found = fixture.scan(block, true);
        assert_eq!(numbers(&found), [0, 1, 1, 2, 3, 0, 1, 2], "{key_bytes} and {beside_bytes}");
    }
    fixture.media.store_u64(inside, Entry::chunk(inside, 8), SITE);
    assert_eq!(numbers(&fixture.scan(block, true)), [0, 1, 1, 2, 3, 0, 1, 2]);
    // Damage again behind the place where it was resumed.
    fixture.flip(places[4].record_at, 1);
    let found = fixture.scan(block, true);
    assert_eq!(numbers(&found), [0, 1, 1, 3, 0, 1, 2]);
    assert_eq!(found.damages, [place, places[4]].map(|place| (place.record_at, LENGTHS)));
    // A record with a key that does not match its checksum is none.
    fixture.flip(places[3].record_at + 24, 1);
    let found = fixture.scan(block, true);
    assert_eq!(numbers(&found), [0, 1, 3, 0, 1, 2]);
    assert_eq!(found.damages, [(place.record_at, LENGTHS)]);
    // Nor is what lies behind the seal.
    PageWord { flags: 0, end: 176 }.store(&fixture.pool, place.page_at, SITE);
    assert_eq!(numbers(&fixture.scan(block, true)), [0, 1, 0, 1, 2]);
}

#[test]
fn a_scan_may_take_lengths_whatever_their_check() {
    let (fixture, block, places) = block();
    fixture.flip(places[3].record_at, 1 << 40);
    fixture.media.leave_out(Some(LeftOut::Step(steps::LENGTHS_CHECK)));
    let found = fixture.scan(block, false);
    assert_eq!((numbers(&found), found.damages), (vec![0, 1, 0, 1, 2, 3, 0, 1, 2], vec![]));
    // Zero in the lower half is the end.
    PageWord::open(0).store(&fixture.pool, places[3].page_at, SITE);
    fixture.media.store_u64(places[3].record_at, 1 << 40, SITE);
    let found = fixture.scan(block, false);
    assert_eq!((numbers(&found), found.damages), (vec![0, 1, 0, 0, 1, 2], vec![]));
}

#[test]
fn a_key_that_is_too_long_for_the_pages_is_damage() {
    let fixture = fixture();
    let block = fixture.block(block_flags::LARGE);
    let mut point = fixture.entered(block, false, 1);
    fixture.put(&mut point, &key(1), &value(1, 20)).unwrap();
    let place = fixture.pages.room(&point, 192, 8).unwrap();
    for (bytes, is_damaged) in [(192, false), (193, true)] {
        fixture.media.store_u64(place.record_at, Entry::record(place.record_at, bytes, 8), SITE);
        assert_eq!(fixture.usage(block)[2], u64::from(is_damaged), "{bytes}");
    }
    // A block in which nothing can follow.
    let rest = 768 - (place.record_at - place.page_at) - 32;
    for (beside, is_damaged) in [(rest, false), (rest + 1, true)] {
        let word = Entry::record(place.record_at, 5, beside as usize);
        fixture.media.store_u64(place.record_at, word, SITE);
        assert_eq!(fixture.usage(block)[2], u64::from(is_damaged), "{beside}");
    }
}

#[test]
fn records_of_a_page_that_is_open_are_those_up_to_the_first_zero() {
    let fixture = fixture();
    let block = fixture.block(0);
    let mut point = fixture.entered(block, false, 0);
    for count in 0..4 {
        assert_eq!(fixture.scan(block, false).records.len(), count);
        assert_eq!(fixture.usage(block)[3], count as u64);
        put_spans(&fixture, &mut point, &[SPAN]);
    }
}
