//! Records in logs: how a session goes through a block, where a record's parts lie, and what makes it live.

use super::*;
use crate::pool::small::media_pool_of;
use crate::pool::tests::media::LeftOut;
use crate::records::lengths::Entry;
use crate::records::page_word::PageWord;

pub(super) const PAGE: u64 = 256;
pub(super) const BLOCK: u64 = 3 * PAGE;
/// Bytes of a record with a key of 5 and a value of 20 bytes.
pub(super) const SPAN: u64 = 24 + 8 + 24;

pub(super) fn fixture() -> Fixture<LogPages> {
    Fixture::new(&parameters(PAGE as u32, RecordLayout::Checked, 0, 0))
}

pub(super) fn key(number: u64) -> [u8; 5] {
    [b'k', number as u8, (number >> 8) as u8, 0xff, 0xee]
}

pub(super) fn value(number: u64, bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|at| (number * 7 + at * 3) as u8).collect()
}

/// The line that a byte lies in.
pub(super) fn line(at: u64) -> std::ops::Range<u64> {
    at / 64 * 64..at / 64 * 64 + 64
}

/// The lines of `length` bytes; none of no bytes.
pub(super) fn lines(at: u64, length: u64) -> std::ops::Range<u64> {
    if length == 0 { 0..0 } else { at / 64 * 64..(at + length).next_multiple_of(64) }
}

/// What the first word of a page says.
pub(super) fn head(fixture: &Fixture<LogPages>, block: u64, page: u64) -> Option<PageWord> {
    PageWord::load(&fixture.pool, fixture.page_at(block, page))
}

/// Puts records of these whole lengths, each with a key of 5 bytes.
pub(super) fn put_spans(
    fixture: &Fixture<LogPages>,
    point: &mut InsertPoint,
    spans: &[u64],
) -> Vec<Place> {
    let value = |bytes: u64| value(bytes, bytes as usize - 32);
    let put = |(number, bytes)| fixture.put(point, &key(number), &value(bytes)).expect("room");
    (0..).zip(spans.iter().copied()).map(put).collect()
}

/// A block whose pages have records of these whole lengths, left by its session.
pub(super) fn filled(fixture: &Fixture<LogPages>, spans: [&[u64]; 3]) -> (u64, Vec<Place>) {
    let block = fixture.block(0);
    let mut point = fixture.entered(block, false, 0);
    let mut places = Vec::new();
    for (page, spans) in spans.into_iter().enumerate() {
        if page > 0 {
            assert!(fixture.pages.advance(&fixture.pool, &mut point));
            fixture.enter(0, &mut point);
        }
        places.extend(put_spans(fixture, &mut point, spans));
    }
    let left = fixture.pages.leave(&fixture.pool, point).expect("each page was passed");
    assert_eq!([left.free, left.fillable, left.fillable_if_starved], fixture.room_in(block));
    (block, places)
}

#[test]
fn a_session_goes_through_the_pages_of_a_block_and_seals_each() {
    let fixture = fixture();
    let (pages, pool) = (&fixture.pages, &*fixture.pool);
    for chance in 0..5 {
        let block = fixture.block(0);
        let mut point = pages.begin(block, false, 0, chance);
        for step in 0..3 {
            let page = (chance + step) % 3;
            let page_at = fixture.page_at(block, page);
            let ((), asked) = fixture.media.watch(|| fixture.enter(0, &mut point));
            assert_eq!(asked, [Asked::AheadForWriting(page_at..page_at + PAGE)]);
            for number in 0..4 {
                let at = 8 + SPAN * number;
                let place = fixture.put(&mut point, &key(number), &value(number, 20)).unwrap();
                let (slot, record_at) = ((at / 8) as u32, page_at + at);
                assert_eq!(place, Place { block, page, slot, page_at, record_at });
                assert_eq!(pages.place_of(place.location()), place);
                assert!(fixture.is_live(&place));
                let expected = (key(number).to_vec(), value(number, 20));
                assert_eq!(fixture.read(&place), Some(expected));
            }
            assert_eq!(pages.room(&point, 5, 20), None, "24 bytes are left");
            assert_eq!(head(&fixture, block, page), Some(PageWord::open(0)));
            let seal = vec![Asked::Flush(line(page_at))];
            let (goes_on, asked) = fixture.media.watch(|| pages.advance(pool, &mut point));
            assert_eq!((goes_on, asked), (step < 2, if step < 2 { seal.clone() } else { vec![] }));
            if step == 2 {
                let (left, asked) = fixture.media.watch(|| pages.leave(pool, point));
                let left = left.expect("all pages were passed");
                assert_eq!(asked, seal);
                // Of each page its first word and the rest behind the log, in which no record fits.
                assert_eq!([left.free, left.fillable, left.fillable_if_starved], [12, 0, 0]);
            }
            let sealed = PageWord { flags: 0, end: 8 + 4 * SPAN };
            assert_eq!(head(&fixture, block, page), Some(sealed));
        }
        assert_eq!(fixture.room_in(block), [12, 0, 0]);
        assert_eq!(fixture.places(block).len(), 12);
    }
}

#[test]
fn a_session_that_leaves_early_seals_what_it_filled_and_knows_no_room() {
    let fixture = fixture();
    let (pages, pool) = (&fixture.pages, &*fixture.pool);
    let block = fixture.block(0);
    let empty = fixture.entered(block, false, 0);
    let (left, asked) = fixture.media.watch(|| pages.leave(pool, empty));
    assert!(left.is_none() && asked.is_empty(), "nothing to seal");
    let mut point = fixture.entered(block, false, 0);
    fixture.put(&mut point, &key(1), &[1; 20]).unwrap();
    let ((), asked) = fixture.media.watch(|| assert!(pages.leave(pool, point).is_none()));
    assert_eq!(asked, [Asked::Flush(line(point.page_at))]);
    assert_eq!(head(&fixture, block, 0), Some(PageWord { flags: 0, end: 64 }));
    let ((), asked) = fixture.media.watch(|| assert!(pages.leave(pool, point).is_none()));
    assert_eq!(asked, [], "it is sealed already");
}

#[test]
fn a_session_goes_on_where_the_log_of_a_page_ends() {
    let fixture = fixture();
    let (pages, pool) = (&fixture.pages, &*fixture.pool);
    // Room for one record without a value, nothing that is live, and no room.
    let spans: [&[u64]; 3] = [&[SPAN, SPAN, SPAN, 48], &[SPAN, SPAN], &[SPAN, SPAN, SPAN, SPAN]];
    let (block, places) = filled(&fixture, spans);
    for place in [0, 4, 5, 9] {
        fixture.retire(&places[place]);
    }
    let [first, second, third] = [0, 1, 2].map(|page| fixture.page_at(block, page));
    let mut point = pages.begin(block, true, 0, 0);
    let enter = |point: &mut InsertPoint| fixture.media.watch(|| fixture.enter(0, point)).1;
    let open = [Asked::Flush(line(first)), Asked::Fence];
    let ahead = Asked::AheadForWriting(lines(first + 224, 32));
    assert_eq!(enter(&mut point), [&open[..], &[ahead]].concat());
    assert_eq!(head(&fixture, block, 0), Some(PageWord::open(0)));
    assert_eq!(pages.room(&point, 1, 1), None);
    let place = fixture.put(&mut point, &[7], &[]).unwrap();
    assert_eq!(place.record_at, first + 224, "a record may end where the page does");
    assert_eq!(fixture.read(&place), Some((vec![7], vec![])));
    assert!(pages.advance(pool, &mut point));
    assert_eq!(head(&fixture, block, 0), Some(PageWord { flags: 0, end: PAGE }));

    let withdrawn = fixture.media.withdrawn_ranges().len();
    let cleared = [Asked::Flush(line(second)), Asked::Fence];
    let ahead = Asked::AheadForWriting(second..second + PAGE);
    assert_eq!(enter(&mut point), [&cleared[..], &[ahead]].concat());
    assert_eq!(fixture.media.withdrawn_ranges()[withdrawn..], [(second, PAGE)]);
    assert_eq!(pages.room(&point, 5, 20).map(|place| place.record_at), Some(second + 8));
    assert_eq!(head(&fixture, block, 1), Some(PageWord::open(0)));
    assert_eq!(fixture.media.load_u64(second + 8), 0);
    assert!(pages.advance(pool, &mut point), "an empty page is not sealed");
    assert_eq!(head(&fixture, block, 1), Some(PageWord::open(0)));

    assert_eq!(enter(&mut point), [Asked::AheadForWriting(lines(third + 232, 24))]);
    assert_eq!(pages.room(&point, 1, 0), None);
    let (left, asked) = fixture.media.watch(|| pages.leave(pool, point));
    assert_eq!(asked, [], "it was sealed, and stays so");
    // What was retired, the first word of each page, and what is behind the last log.
    let left = left.expect("all pages were passed");
    assert_eq!([left.free, left.fillable, left.fillable_if_starved], [8 + 32 + 11, 31, 31]);
    assert_eq!(fixture.room_in(block), [51, 31, 31]);
}

#[test]
fn a_page_without_room_that_was_left_open_is_sealed_by_whoever_comes_to_it() {
    let fixture = fixture();
    let block = fixture.block(0);
    let mut point = fixture.entered(block, false, 0);
    put_spans(&fixture, &mut point, &[SPAN, SPAN, SPAN, SPAN]);
    // The session ends without leaving.
    let mut point = fixture.entered(block, true, 0);
    assert!(fixture.pages.advance(&fixture.pool, &mut point));
    assert_eq!(head(&fixture, block, 0), Some(PageWord { flags: 0, end: 232 }));
}

#[test]
fn a_damaged_page_is_left_alone_and_ends_the_account_of_room() {
    let fixture = fixture();
    let (pages, pool) = (&fixture.pages, &*fixture.pool);
    let (block, places) = filled(&fixture, [&[SPAN], &[SPAN, SPAN], &[SPAN]]);
    fixture.flip(places[1].record_at, 1 << 40);
    let before = fixture.media.image();
    let mut point = pages.begin(block, true, 0, 1);
    fixture.enter(0, &mut point);
    assert!(point.left.is_none() && pages.room(&point, 1, 0).is_none());
    assert!(pages.advance(pool, &mut point) && point.left.is_none());
    assert!(fixture.media.image() == before, "something was stored");
    fixture.enter(0, &mut point);
    assert!(point.left.is_none() && pages.room(&point, 1, 0).is_some());
    assert!(pages.advance(pool, &mut point));
    fixture.enter(0, &mut point);
    assert!(pages.leave(pool, point).is_none());
}

#[test]
fn a_record_that_was_begun_and_abandoned_ends_its_page() {
    let fixture = fixture();
    let (pages, pool) = (&fixture.pages, &*fixture.pool);
    for cause in [Abandoned::Begun, Abandoned::Damaged] {
        let block = fixture.block(0);
        let mut point = fixture.entered(block, false, 0);
        fixture.put(&mut point, &key(1), &[1; 20]).unwrap();
        let place = pages.room(&point, 5, 20).unwrap();
        fixture.write_body(&place, &key(2), &stored(&[2; 20]));
        pages.abandon(&mut point, cause);
        assert_eq!(pages.room(&point, 1, 0), None);
        assert!(pages.advance(pool, &mut point));
        assert_eq!(head(&fixture, block, 0), Some(PageWord { flags: 0, end: 64 }));
    }
}

#[test]
fn what_does_not_fit_a_page_goes_to_a_block_that_is_one() {
    let fixture = fixture();
    let pages = &fixture.pages;
    assert_eq!(
        [(5, 216), (5, 217), (1, 0)].map(|(key, beside)| pages.kind_of(key, beside)),
        [0, 1, 0]
    );
    assert_eq!(LogPages::KIND_FLAGS, [0, block_flags::LARGE]);
    let block = fixture.block(block_flags::LARGE);
    let at = fixture.page_at(block, 0);
    let mut point = pages.begin(block, false, 1, 2);
    let clear = |point: &mut InsertPoint| fixture.media.watch(|| fixture.enter(1, point)).1;
    let cleared = |from: u64| {
        let (now, rest) = (line(at + from), (from + 1).next_multiple_of(64));
        let rest = (rest < BLOCK).then_some(Asked::Flush(at + rest..at + BLOCK));
        [Asked::Flush(now)].into_iter().chain(rest).chain([Asked::Fence]).collect::<Vec<_>>()
    };
    assert_eq!(clear(&mut point), cleared(8));
    let rest = &fixture.media.image()[at as usize + 8..(at + BLOCK) as usize];
    assert!(rest.iter().all(|byte| *byte == 0));
    assert_eq!(clear(&mut point), [], "it is zero");
    assert!(!pages.advance(&fixture.pool, &mut point), "it has one page");
    let first = fixture.put(&mut point, &key(1), &[7; 300]).unwrap();
    assert_eq!((first.page, first.slot, first.record_at), (0, 1, at + 8));
    let second = fixture.put(&mut point, &key(2), &[8; 300]).unwrap();
    assert_eq!((second.page, second.slot, second.record_at), (0, 43, at + 344));
    assert_eq!(pages.room(&point, 5, 57), None);
    let third = fixture.put(&mut point, &key(3), &[9; 8]).unwrap();
    assert_eq!(third.record_at, at + 680);
    for (place, value) in [(first, vec![7; 300]), (second, vec![8; 300]), (third, vec![9; 8])] {
        assert_eq!(fixture.read(&place).map(|found| found.1), Some(value));
        assert_eq!(pages.place_of(place.location()), place);
    }
    // What lies behind the log is cleared, wherever in it something is.
    for dirty in [728, 760] {
        fixture.media.store_u64(at + dirty, 1, SITE);
        assert_eq!(clear(&mut point), cleared(720), "{dirty}");
        assert_eq!(fixture.media.load_u64(at + dirty), 0);
    }
}

#[test]
fn under_a_journal_a_record_that_needs_a_block_has_a_zero_behind_it_and_the_rest_stays() {
    let fixture = fixture();
    fixture.media.set_journaled();
    let block = fixture.block(block_flags::LARGE);
    let mut point = fixture.pages.begin(block, false, 1, 2);
    let ((), asked) = fixture.media.watch(|| fixture.enter(1, &mut point));
    assert_eq!(asked, [], "what lies behind the log stays");
    // From 8 to 312, and from there to the begin of a line.
    for bytes in [304, 264] {
        let at = point.page_at + point.log.tail;
        let put = || fixture.put(&mut point, &key(1), &vec![1; bytes as usize - 32]).unwrap();
        let (place, asked) = fixture.media.watch(put);
        let end = at + bytes;
        assert_eq!(place.record_at, at);
        assert_eq!(fixture.media.load_u64(end), 0);
        assert_eq!(fixture.media.load_u64(end + 8), 0x7777_7777_7777_7777);
        let next_line = (at + 1).next_multiple_of(64);
        let flushed = Asked::Flush(lines(next_line, end + 8 - next_line));
        assert_eq!(asked, [flushed, Asked::Fence, Asked::Flush(line(at)), Asked::Fence]);
    }
    // One to the end of the block has none.
    let mut point = fixture.entered(fixture.block(block_flags::LARGE), false, 1);
    let behind = point.page_at + BLOCK;
    fixture.media.store_u64(behind, 5, SITE);
    fixture.put(&mut point, &key(1), &[1; BLOCK as usize - 8 - 32]).unwrap();
    assert_eq!(fixture.media.load_u64(behind), 5);
}

#[test]
fn a_block_that_was_written_under_a_journal_is_cleared_where_there_is_none() {
    let fixture = fixture();
    fixture.media.set_journaled();
    let block = fixture.block(block_flags::LARGE);
    let mut point = fixture.entered(block, false, 1);
    let at = point.page_at;
    let put = fixture.put(&mut point, &key(1), &[1; 300]).unwrap();
    assert_eq!(fixture.media.load_u64(at + 760), 0x7777_7777_7777_7777);
    let elsewhere = self::fixture();
    assert_eq!(elsewhere.block(block_flags::LARGE), block);
    let image = fixture.media.image();
    let all = elsewhere.pool.extent(at, BLOCK);
    elsewhere.media.copy(all, &image[at as usize..(at + BLOCK) as usize], SITE);
    let again = elsewhere.entered(block, true, 1);
    assert_eq!((again.log.tail, put.record_at), (point.log.tail, at + 8));
    for word in (again.log.tail..BLOCK).step_by(8) {
        assert_eq!(elsewhere.media.load_u64(at + word), 0, "{word}");
    }
}

#[test]
fn all_of_a_large_block_is_looked_at_before_it_counts_as_zero() {
    let fixture = fixture();
    let block = fixture.block(block_flags::LARGE);
    let at = fixture.page_at(block, 0);
    // Behind it another one that has something.
    let next = fixture.page_at(fixture.block(0), 0);
    let behind = || fixture.media.image()[next as usize..(next + BLOCK) as usize].to_vec();
    assert_eq!(next, at + BLOCK);
    let before = behind();
    fixture.entered(block, false, 1);
    let again = || {
        fixture.entered(block, false, 1);
    };
    assert_eq!(fixture.media.watch(again).1, []);
    for dirty in (16..BLOCK).step_by(8) {
        fixture.media.store_u64(at + dirty, 1 << 63, SITE);
        fixture.entered(block, false, 1);
        assert_eq!(fixture.media.load_u64(at + dirty), 0, "{dirty}");
    }
    assert!(behind() == before && before.contains(&0x77), "of the other block");
    // A log that ends where a line does.
    let mut point = fixture.entered(block, false, 1);
    fixture.put(&mut point, &key(1), &[1; 20]).unwrap();
    fixture.media.store_u64(at + 512, 1, SITE);
    let ((), asked) = fixture.media.watch(again);
    let cleared = [Asked::Flush(line(at + 64)), Asked::Flush(at + 128..at + BLOCK), Asked::Fence];
    assert_eq!(asked, cleared);
    fixture.media.store_u64(at + 512, 1, SITE);
    fixture.media.leave_out(Some(LeftOut::Step(steps::CLEAR_REST)));
    fixture.entered(block, false, 1);
    assert_eq!(fixture.media.load_u64(at + 512), 1, "as a tool wants");
}

#[test]
fn a_record_in_a_page_has_a_zero_behind_it_which_is_flushed_with_it() {
    let fixture = fixture();
    let block = fixture.block(0);
    let mut point = fixture.entered(block, false, 0);
    let mut ends = Vec::new();
    for bytes in [56, 40, 48, 104] {
        let at = point.page_at + point.log.tail;
        let (place, asked) = fixture
            .media
            .watch(|| fixture.put(&mut point, &key(1), &vec![1; bytes as usize - 32]).unwrap());
        assert_eq!(place.record_at, at);
        let end = at + bytes;
        let is_ended = end < place.page_at + PAGE;
        assert_eq!(is_ended, bytes < 104);
        if is_ended {
            assert_eq!(fixture.media.load_u64(end), 0);
            assert_eq!(fixture.media.load_u64(end + 8), 0x7777_7777_7777_7777);
        }
        let flushed = end + if is_ended { 8 } else { 0 };
        let next_line = (at + 1).next_multiple_of(64);
        let mut expected = Vec::new();
        if next_line < flushed {
            expected.extend([Asked::Flush(lines(next_line, flushed - next_line)), Asked::Fence]);
        }
        ends.push(expected.is_empty());
        assert_eq!(fixture.media.take_published(), [(at, vec![(at + 8, end)])]);
        expected.extend([Asked::Flush(line(at)), Asked::Fence]);
        assert_eq!(asked, expected, "a record of {bytes} bytes at {at}");
    }
    // From 8 to 64, where the end is in the next line; from 64 to 104; to 152; to the end of the page.
    assert_eq!(ends, [false, true, false, false]);
    let next = fixture.media.load_u64(fixture.page_at(block, 1));
    assert_eq!(next, PageWord::open(0).encode(fixture.page_at(block, 1)), "of the next page");
}

#[test]
fn a_large_record_is_followed_by_nothing_that_was_written_with_it() {
    let fixture = fixture();
    let block = fixture.block(block_flags::LARGE);
    let mut point = fixture.entered(block, false, 1);
    let place = fixture.pages.room(&point, 5, 300).unwrap();
    fixture.media.store_u64(place.record_at + 336, 0x55, SITE);
    let (_, asked) = fixture.media.watch(|| fixture.put(&mut point, &key(1), &[1; 300]));
    assert_eq!(fixture.media.load_u64(place.record_at + 336), 0x55);
    let first = line(place.record_at);
    let rest = first.end..lines(place.record_at, 336).end;
    let record = [Asked::Flush(rest), Asked::Fence, Asked::Flush(first), Asked::Fence];
    assert_eq!(asked, record);
}

#[test]
fn leaving_out_the_zero_or_its_flush_is_what_a_tool_may_do() {
    let fixture = fixture();
    let mut point = fixture.entered(fixture.block(0), false, 0);
    let place = fixture.pages.room(&point, 5, 20).unwrap();
    fixture.media.leave_out(Some(LeftOut::Step(steps::END)));
    fixture.write_body(&place, &key(1), &stored(&[1; 20]));
    assert_eq!(fixture.media.load_u64(place.record_at + SPAN), 0x7777_7777_7777_7777);
    fixture.media.leave_out(Some(LeftOut::Step(steps::END_FLUSH)));
    let (_, asked) = fixture.media.watch(|| fixture.put(&mut point, &key(1), &[1; 20]));
    assert_eq!(fixture.media.load_u64(place.record_at + SPAN), 0);
    assert_eq!(asked, [Asked::Flush(line(place.record_at)), Asked::Fence]);
}

#[test]
fn the_parts_of_a_record_are_where_its_lengths_say() {
    let fixture = fixture();
    let (pages, pool) = (&fixture.pages, &*fixture.pool);
    let mut point = fixture.entered(fixture.block(0), false, 0);
    fixture.put(&mut point, &key(0), &value(0, 3)).unwrap();
    let place = fixture.put(&mut point, &key(1), &value(1, 20)).unwrap();
    let record = pages.decode(pool, &place).unwrap();
    assert_eq!((record.place, record.version()), (place, VERSION));
    assert!(pages.key_is(pool, &record, &key(1)));
    assert!(!pages.key_is(pool, &record, &key(2)) && !pages.key_is(pool, &record, &key(1)[..4]));
    let own = value(1, 20);
    assert!(pages.value_is(pool, &record, &own) && !pages.value_is(pool, &record, &own[..19]));
    assert!(!pages.value_is(pool, &record, &value(2, 20)));
    assert_eq!((pages.value_bytes(pool, &record), pages.fixed_value_bytes()), (Some(20), None));
    let mut copied = vec![1; 100];
    assert!(pages.copy_value(pool, &record, &mut copied));
    assert_eq!(copied, own);
    for at in 0..30 {
        let word = [0, 8].contains(&at).then_some(place.record_at + 32 + at as u64);
        assert_eq!(pages.value_word(pool, &record, at), word, "{at}");
    }
    assert_eq!(pages.value_word(pool, &record, usize::MAX - 7), None);
    let whole = fixture.put(&mut point, &key(2), &value(2, 24)).unwrap();
    let whole = pages.decode(pool, &whole).unwrap();
    assert_eq!([16, 24].map(|at| pages.value_word(pool, &whole, at).is_some()), [true, false]);
    // Where the value ends is not known before its lengths are read, but where the block does.
    let end = fixture.page_at(place.block, 0) + BLOCK;
    for at in (0..usize::try_from(BLOCK).unwrap()).chain([usize::MAX - 7, usize::MAX]) {
        let word = (at as u64).checked_add(place.record_at + 32);
        let word = word.filter(|word| at.is_multiple_of(8) && *word < end);
        assert_eq!(pages.expected_word(&place, 5, at), word, "{at}");
    }
    let head = pages.head(pool, &place, 5);
    assert_eq!((head.offset(), head.length()), (place.record_at, 29));
    let whole = pages.whole(pool, &place);
    assert_eq!((whole.offset(), whole.length()), (place.record_at, 256));
    let ((), asked) = fixture.media.watch(|| pages.prefetch_unknown(pool, &place));
    assert_eq!(asked, [Asked::Ahead(lines(place.record_at, 256))]);
    let ((), asked) = fixture.media.watch(|| pages.prefetch_retire(pool, &place));
    assert_eq!(asked, [Asked::AheadForWriting(line(place.record_at))]);
    assert!(pages.is_checked());
    assert_eq!((pages.units_of(5, 20), pages.units_of(1, 0), pages.units_of(8, 9)), (7, 4, 6));
    assert!(pages.spilling().is_some());
}

#[test]
fn a_header_is_flushed_where_it_reaches_into_another_line() {
    let fixture = fixture();
    let mut point = fixture.entered(fixture.block(0), false, 0);
    let places = put_spans(&fixture, &mut point, &[32, 40, 56]);
    let [first, second, third] = places[..] else { panic!("three") };
    assert_eq!([first, second, third].map(|it| it.record_at - it.page_at), [8, 40, 80]);
    for (place, is_more) in [(first, false), (second, false), (third, false)] {
        let flush = || fixture.pages.flush_header(&fixture.pool, &place);
        assert_eq!(fixture.media.watch(flush), (is_more, vec![]));
    }
    let crossing = Place { record_at: first.page_at + 48, slot: 6, ..first };
    let flush = || fixture.pages.flush_header(&fixture.pool, &crossing);
    let rest = Asked::Flush(line(first.page_at + 64));
    assert_eq!(fixture.media.watch(flush), (true, vec![rest]));
}

#[test]
fn records_become_live_and_are_retired_by_one_word() {
    let fixture = fixture();
    let (pages, pool) = (&fixture.pages, &*fixture.pool);
    let mut point = fixture.entered(fixture.block(0), false, 0);
    let live = fixture.put(&mut point, &key(1), &[1; 20]).unwrap();
    let next = pages.room(&point, 5, 20).unwrap();
    assert!(!fixture.is_live(&next), "the log ends there");
    let cost = vec![Asked::Flush(line(live.record_at)), Asked::Fence];
    assert_eq!(fixture.media.watch(|| fixture.retire(&live)), (7, cost));
    assert!(!fixture.is_live(&live));
    assert_eq!(fixture.retire(&live), 7, "once more");
    for (word, is_live) in [(Entry::chunk(next.record_at, 16), Ok(false)), (77, Err(()))] {
        fixture.media.store_u64(next.record_at, word, SITE);
        let before = fixture.media.image();
        let committed = pages.commit(pool, &next, &key(2), &stored(&[2; 20]));
        assert_eq!(damaged_at(committed), next.record_at, "something lies there");
        let retired = pages.retire(pool, &next, |_| panic!("it is no record"));
        assert_eq!(damaged_at(retired), next.record_at);
        assert_eq!(pages.is_live(pool, &next).map_err(|_| ()), is_live);
        assert!(pages.decode(pool, &next).is_none());
        assert!(fixture.media.image() == before, "something was stored");
    }
    fixture.media.leave_out(Some(LeftOut::Step(steps::COMMIT_CHECK)));
    pages.commit(pool, &next, &key(2), &stored(&[2; 20])).unwrap();
    assert!(fixture.is_live(&next), "as a tool wants");
}

#[test]
fn lengths_that_no_record_of_the_block_has_lead_nowhere() {
    let fixture = fixture();
    let mut point = fixture.entered(fixture.block(0), false, 0);
    let place = fixture.put(&mut point, &key(1), &[1; 20]).unwrap();
    let decoded = |key_bytes, beside_bytes| {
        let word = Entry::record(place.record_at, key_bytes, beside_bytes);
        fixture.media.store_u64(place.record_at, word, SITE);
        fixture.pages.decode(&fixture.pool, &place).is_some()
    };
    // Keys have up to 192 bytes here, and a block 760 behind its first word.
    assert_eq!(
        [(192, 0), (193, 0), (5, 728), (5, 729)].map(|(key, beside)| decoded(key, beside)),
        [true, false, true, false]
    );
    let last = Place { page: 2, page_at: place.page_at + 2 * PAGE, slot: 1, ..place };
    let last = Place { record_at: last.page_at + 8, ..last };
    for (beside_bytes, is_inside) in [(216, true), (217, false)] {
        let word = Entry::record(last.record_at, 5, beside_bytes);
        fixture.media.store_u64(last.record_at, word, SITE);
        let found = fixture.pages.decode(&fixture.pool, &last);
        assert_eq!(found.is_some(), is_inside, "{beside_bytes} bytes in the last page");
    }
}

#[test]
fn keys_and_values_have_any_length_up_to_limits() {
    let fixture = fixture();
    let pages = &fixture.pages;
    assert!(pages.check_key(&[1]).is_ok() && pages.check_key(&[1; 192]).is_ok());
    for length in [0, 193] {
        let error = pages.check_key(&vec![1; length]).unwrap_err();
        let is_right = matches!(error, Error::KeyLength { found, most: 192 } if found == length);
        assert!(is_right, "{error}");
    }
    assert!(pages.check_value(&[]).is_ok() && pages.check_value(&[1; 5000]).is_ok());
    // Nobody looks at the bytes.
    let longest = vec![0; LogPages::VALUE_BYTES_MAX + 1];
    assert!(pages.check_value(&longest[1..]).is_ok() && pages.check_value(&longest).is_err());
    assert_eq!(
        [128, 256, 4160, 4168, 8192].map(LogPages::key_bytes_max),
        [64, 192, 4096, 4096, 4096]
    );
    assert_eq!([544, 545].map(|bytes| pages.is_spilled(bytes)), [false, true]);
    // What a chunk's header has more than a record's, and a sixteenth of the page.
    assert_eq!(pages.spill_key_bytes_min(), 16 + 16);
}

#[test]
fn blocks_are_at_most_as_large_as_locations_can_say() {
    for (block_bytes, is_right) in [(524_288 - 64, true), (524_288, false)] {
        let pool = media_pool_of(&Media::default(), &[], (1 << 20, block_bytes), 1 << 21, false);
        let usual = parameters(block_bytes, RecordLayout::Checked, 0, 0);
        let geometry = Geometry { pages_per_block: 1, segment_bytes: 1 << 20, ..usual.geometry };
        let pages = LogPages::of(&*pool, &PageParameters { geometry, ..usual });
        if is_right {
            let most = 0xfff0;
            let pages = pages.unwrap();
            assert_eq!([most, most + 1].map(|bytes| pages.is_spilled(bytes)), [false, true]);
        } else {
            assert_eq!(damaged_at(pages), 56);
        }
    }
}

#[test]
fn the_same_place_of_the_next_page_is_loaded_ahead() {
    let fixture = fixture();
    let (pages, pool) = (&fixture.pages, &*fixture.pool);
    let block = fixture.block(0);
    let mut point = pages.begin(block, false, 0, 1);
    for next in [Some(2), Some(0), None] {
        fixture.enter(0, &mut point);
        fixture.put(&mut point, &key(1), &[1; 60]).unwrap();
        let ((), asked) = fixture.media.watch(|| pages.prefetch_next(pool, &point, 5, 20));
        let ahead = next.map(|page| lines(fixture.page_at(block, page) + 104, SPAN));
        assert_eq!(asked, Vec::from_iter(ahead.map(Asked::AheadForWriting)));
        let ((), asked) = fixture.media.watch(|| pages.prefetch_shared(pool, &point));
        assert_eq!(asked, [Asked::AheadForWriting(line(point.page_at + 104))]);
        put_spans(&fixture, &mut point, &[152]);
        let ((), asked) = fixture.media.watch(|| pages.prefetch_shared(pool, &point));
        assert_eq!(asked, [], "the page is full");
        pages.advance(pool, &mut point);
    }
}
