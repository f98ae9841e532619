//! Records in slots: how a session goes through a block, where a record's parts lie, and what makes it live.

use super::*;
use crate::pool::tests::media::LeftOut;

pub(super) const KEY: u32 = 5;
pub(super) const VALUE: u32 = 20;
const LAYOUTS: [RecordLayout; 2] = [RecordLayout::Checked, RecordLayout::Published];

pub(super) fn fixture(
    page_bytes: u32,
    layout: RecordLayout,
    value_bytes: u32,
) -> (Fixture<SlottedPages>, PageLayout) {
    let parameters = parameters(page_bytes, layout, KEY, value_bytes);
    let page = PageLayout::new(&parameters.geometry, layout, KEY, value_bytes).unwrap();
    (Fixture::new(&parameters), page)
}

pub(super) fn key(number: u64) -> [u8; KEY as usize] {
    let [a, b, c, d, ..] = number.to_le_bytes();
    [b'k', a, b, c, d]
}

pub(super) fn value(number: u64, bytes: u32) -> Vec<u8> {
    (0..u64::from(bytes)).map(|at| (number * 7 + at * 3) as u8).collect()
}

/// Fills a block from the page that `chance` chooses.
pub(super) fn fill(fixture: &Fixture<SlottedPages>, block: u64, chance: u64) -> Vec<Place> {
    let mut point = fixture.pages.begin(block, false, 0, chance);
    fixture.enter(0, &mut point);
    let mut places = Vec::new();
    loop {
        let number = places.len() as u64;
        if let Some(place) = fixture.put(&mut point, &key(number), &value(number, VALUE)) {
            places.push(place);
        } else if fixture.pages.advance(&fixture.pool, &mut point) {
            fixture.enter(0, &mut point);
        } else {
            break;
        }
    }
    assert!(fixture.pages.leave(&fixture.pool, point).is_none(), "others clear bits");
    places
}

#[test]
fn each_slot_of_a_block_takes_one_record_page_by_page() {
    for (layout, page_bytes) in LAYOUTS.into_iter().flat_map(|it| [(it, 512), (it, 2048)]) {
        let (fixture, page) = fixture(page_bytes, layout, VALUE);
        for chance in 0..5 {
            let block = fixture.block(0);
            let places = fill(&fixture, block, chance);
            let pages = (0..u64::from(PAGES)).map(|number| (chance + number) % u64::from(PAGES));
            let slots = pages.flat_map(|number| (0..page.slots).map(move |slot| (number, slot)));
            let expected: Vec<Place> = slots
                .map(|(number, slot)| {
                    let page_at = fixture.page_at(block, number);
                    let record_at = page_at + page.slot_at(slot);
                    Place { block, page: number, slot, page_at, record_at }
                })
                .collect();
            assert_eq!(places, expected);
            for (number, place) in (0..).zip(&places) {
                assert!(fixture.is_live(place));
                let expected = (key(number).to_vec(), value(number, VALUE));
                assert_eq!(fixture.read(place), Some(expected));
                assert_eq!(fixture.pages.place_of(place.location()), *place);
            }
        }
    }
}

#[test]
fn the_parts_of_a_record_are_where_its_layout_says() {
    for layout in LAYOUTS {
        let (fixture, page) = fixture(512, layout, VALUE);
        let (pages, pool) = (&fixture.pages, &*fixture.pool);
        let places = fill(&fixture, fixture.block(0), 0);
        let (place, own) = (places[3], value(3, VALUE));
        let record = pages.decode(pool, &place).unwrap();
        assert_eq!(record.place, place);
        assert!(pages.key_is(pool, &record, &key(3)) && !pages.key_is(pool, &record, &key(4)));
        assert!(pages.value_is(pool, &record, &own));
        assert!(!pages.value_is(pool, &record, &value(4, VALUE)));
        assert_eq!(pages.value_bytes(pool, &record), Some(20));
        assert_eq!(pages.fixed_value_bytes(), Some(20));
        let mut copied = vec![1; 100];
        assert!(pages.copy_value(pool, &record, &mut copied));
        assert_eq!(copied, own);
        let value_at = place.record_at + u64::from(page.value_at);
        for at in 0..30 {
            let word = [0, 8].contains(&at).then_some(value_at + at as u64);
            assert_eq!(pages.value_word(pool, &record, at), word, "{at}");
            assert_eq!(pages.expected_word(&place, 5, at), word, "{at}");
        }
        let head = pages.head(pool, &place, 5);
        assert_eq!((head.offset(), head.length()), (place.record_at, u64::from(page.key_at) + 5));
        let whole = pages.whole(pool, &place);
        let slot = (place.record_at, u64::from(page.slot_bytes));
        assert_eq!((whole.offset(), whole.length()), slot);
        let ((), asked) = fixture.media.watch(|| pages.prefetch_unknown(pool, &place));
        assert_eq!(asked, [], "all of it follows from the place");
        let is_checked = layout == RecordLayout::Checked;
        assert_eq!(pages.is_checked(), is_checked);
        assert_eq!(record.version(), if is_checked { VERSION } else { 0 });
        assert_eq!(record.leaves_out(8), !is_checked, "a word that no checksum covers");
        assert_eq!(record.unchecked(), UncheckedWord::NONE);
    }
}

#[test]
fn a_record_may_leave_a_word_of_its_value_out_of_its_checksum() {
    let (fixture, page) = fixture(512, RecordLayout::Checked, VALUE);
    let mut point = fixture.entered(fixture.block(0), false, 0);
    let place = fixture.pages.room(&point, 5, 20).unwrap();
    let value = value(1, VALUE);
    let stored = Stored { unchecked: UncheckedWord::at(8), ..stored(&value) };
    fixture.write(&place, &key(1), &stored);
    fixture.pages.consume(&mut point, 5, 20);
    let record = fixture.pages.decode(&fixture.pool, &place).unwrap();
    assert_eq!([0, 8, 16].map(|at| record.leaves_out(at)), [false, true, false]);
    assert_eq!(record.unchecked(), UncheckedWord::at(8));
    for at in [0, 8, 16] {
        let word_at = place.record_at + u64::from(page.value_at) + at;
        fixture.flip(word_at, 2);
        assert_eq!(fixture.read(&place).is_some(), at == 8, "{at}");
        fixture.flip(word_at, 2);
    }
}

#[test]
fn the_last_word_of_a_value_is_one_where_all_of_it_is_the_value() {
    for (value_bytes, words) in [(24, vec![0, 8, 16]), (23, vec![0, 8]), (7, vec![])] {
        let (fixture, page) = fixture(512, RecordLayout::Checked, value_bytes);
        let mut point = fixture.entered(fixture.block(0), false, 0);
        let place = fixture.put(&mut point, &key(1), &value(1, value_bytes)).unwrap();
        let value_at = place.record_at + u64::from(page.value_at);
        let found = |at| fixture.pages.expected_word(&place, 5, at);
        assert_eq!(
            (0..40).filter_map(found).collect::<Vec<_>>(),
            words.iter().map(|at| value_at + at).collect::<Vec<_>>()
        );
    }
}

#[test]
fn the_published_layout_has_no_checksum() {
    for layout in LAYOUTS {
        let (fixture, _) = fixture(512, layout, VALUE);
        let point = fixture.entered(fixture.block(0), false, 0);
        let place = fixture.pages.room(&point, 5, 20).unwrap();
        let value = value(1, VALUE);
        let sum = fixture.pages.write_body(&fixture.pool, &place, &key(1), &stored(&value));
        let expected = stored(&value).value_checksum(place.record_at, Summed::of(&value));
        assert_eq!(sum, if layout == RecordLayout::Checked { expected } else { 0 });
    }
}

#[test]
fn keys_and_values_have_one_size() {
    let (fixture, _) = fixture(512, RecordLayout::Checked, VALUE);
    let pages = &fixture.pages;
    assert!(pages.check_key(&[1; 5]).is_ok() && pages.check_value(&[1; 20]).is_ok());
    for length in [0, 4, 6, 20] {
        let error = pages.check_key(&vec![1; length]).unwrap_err();
        let is_right = matches!(error, Error::KeySize { found, expected: 5 } if found == length);
        assert!(is_right, "{error}");
    }
    for length in [0, 19, 21, 5] {
        let error = pages.check_value(&vec![1; length]).unwrap_err();
        let is_right = matches!(error, Error::ValueSize { found, expected: 20 } if found == length);
        assert!(is_right, "{error}");
    }
    assert_eq!((pages.units_of(5, 20), pages.kind_of(5, 20)), (1, 0));
    assert!(pages.spilling().is_none(), "each value fits its slot");
}

fn line(at: u64) -> std::ops::Range<u64> {
    at / 64 * 64..at / 64 * 64 + 64
}

/// The lines of `length` bytes.
fn lines(at: u64, length: u64) -> std::ops::Range<u64> {
    at / 64 * 64..(at + length).next_multiple_of(64)
}

#[test]
fn a_record_costs_its_lines_and_that_of_its_bit() {
    for layout in LAYOUTS {
        let (fixture, page) = fixture(512, layout, VALUE);
        let (pages, pool) = (&fixture.pages, &*fixture.pool);
        let mut point = fixture.entered(fixture.block(0), false, 0);
        for _ in 0..6 {
            let (place, asked) = fixture.media.watch(|| fixture.put(&mut point, &key(1), &[5; 20]));
            let place = place.unwrap();
            let slot = Asked::Flush(lines(place.record_at, u64::from(page.slot_bytes)));
            let bit = Asked::Flush(line(place.page_at));
            assert_eq!(asked, [slot, Asked::Fence, bit, Asked::Fence]);
            let record = (place.record_at, place.record_at + u64::from(page.slot_bytes));
            assert_eq!(fixture.media.take_published(), [(place.page_at + 8, vec![record])]);
        }
        let place = fixture.put(&mut point, &key(1), &[5; 20]).unwrap();
        let (is_more, asked) = fixture.media.watch(|| pages.flush_header(pool, &place));
        assert_eq!((is_more, asked), (true, vec![Asked::Flush(lines(place.record_at, 16))]));
        let ((), asked) = fixture.media.watch(|| pages.prefetch_retire(pool, &place));
        assert_eq!(asked, [Asked::AheadForWriting(line(place.page_at))]);
        // Once more changes nothing.
        pages.commit(pool, &place, &key(1), &stored(&[5; 20])).unwrap();
        assert!(fixture.is_live(&place));
        let others: Vec<_> = fixture.places(place.block);
        let (units, asked) = fixture.media.watch(|| fixture.retire(&place));
        assert_eq!((units, asked), (1, vec![Asked::Flush(line(place.page_at)), Asked::Fence]));
        assert!(!fixture.is_live(&place));
        assert_eq!(fixture.places(place.block), others[..6]);
    }
}

#[test]
fn of_a_bitset_of_several_lines_the_line_with_the_bit_is_flushed() {
    let (fixture, page) = fixture(8192, RecordLayout::Checked, 0);
    let (pages, pool) = (&fixture.pages, &*fixture.pool);
    assert!(page.bitset_words > 9);
    let mut point = fixture.entered(fixture.block(0), true, 0);
    while point.slots.word < 8 {
        assert!(pages.advance(pool, &mut point));
    }
    let bits = line(point.page_at + 64);
    let flush = [Asked::Flush(bits.clone()), Asked::Fence];
    assert_eq!(fixture.media.watch(|| fixture.enter(0, &mut point)).1, flush);
    let (place, asked) = fixture.media.watch(|| fixture.put(&mut point, &key(1), &[]).unwrap());
    assert_eq!((place.slot, &asked[2..]), (8 * 32, &flush[..]));
    let ((), asked) = fixture.media.watch(|| pages.prefetch_retire(pool, &place));
    assert_eq!(asked, [Asked::AheadForWriting(bits.clone())]);
    let ((), asked) = fixture.media.watch(|| pages.prefetch_shared(pool, &point));
    assert_eq!(asked[1], Asked::AheadForWriting(bits));
    assert_eq!(fixture.media.watch(|| fixture.retire(&place)), (1, flush.to_vec()));
    let ((), asked) = fixture.media.watch(|| pages.format(pool, place.block, 0));
    assert_eq!(asked[0], Asked::Flush(lines(point.page_at, 8 + 8 * u64::from(page.bitset_words))));
}

#[test]
fn a_damaged_word_of_bits_refuses_records_and_keeps_its_slots() {
    let (fixture, page) = fixture(512, RecordLayout::Checked, VALUE);
    let (pages, pool) = (&fixture.pages, &*fixture.pool);
    let block = fixture.block(0);
    let mut point = fixture.entered(block, false, 0);
    let live = fixture.put(&mut point, &key(1), &[5; 20]).unwrap();
    let next = pages.room(&point, 5, 20).unwrap();
    let word_at = live.page_at + PageLayout::bitset_at(0);
    fixture.flip(word_at, 1 << 40);
    let before = fixture.media.image();
    assert_eq!(damaged_at(pages.is_live(pool, &live)), word_at);
    let committed = pages.commit(pool, &next, &key(2), &stored(&[5; 20]));
    assert_eq!(damaged_at(committed), word_at);
    let retired = pages.retire(pool, &live, |_| panic!("it is not known to be live"));
    assert_eq!(damaged_at(retired), word_at);
    assert!(fixture.media.image() == before, "something was stored");
    let (damaged, asked) = fixture.media.watch(|| fixture.entered(block, true, 0));
    assert!(pages.room(&damaged, 5, 20).is_none() && asked.is_empty());
    // As a tool that leaves the check out.
    fixture.media.leave_out(Some(LeftOut::Step(steps::COMMIT_CHECK)));
    assert!(fixture.is_live(&live) && !fixture.is_live(&next));
    assert_eq!(fixture.room_in(block)[0], PAGES * page.slots - 1);
}

/// The check of a word in the published layout is that it has no bits but those of slots.
#[test]
fn bits_that_stand_for_no_slot_are_no_slots_without_the_check() {
    let (fixture, page) = fixture(512, RecordLayout::Published, VALUE);
    let block = fixture.block(0);
    let mut point = fixture.entered(block, false, 0);
    let live = fixture.put(&mut point, &key(1), &[5; 20]).unwrap();
    let word_at = live.page_at + PageLayout::bitset_at(0);
    fixture.flip(word_at, 1 << page.slots);
    assert_eq!(damaged_at(fixture.pages.is_live(&fixture.pool, &live)), word_at);
    fixture.media.leave_out(Some(LeftOut::Step(steps::COMMIT_CHECK)));
    assert!(fixture.is_live(&live));
    assert_eq!(fixture.places(block), [live]);
}

#[test]
fn a_session_goes_on_in_the_free_slots_of_a_block_that_was_in_use() {
    let (fixture, page) = fixture(512, RecordLayout::Checked, VALUE);
    let (pages, pool) = (&fixture.pages, &*fixture.pool);
    let block = fixture.block(0);
    let places = fill(&fixture, block, 0);
    let of_page = |number: u64, slot: u32| places[(number as u32 * page.slots + slot) as usize];
    let (full, asked) = fixture.media.watch(|| fixture.entered(block, true, 0));
    assert!(pages.room(&full, 5, 20).is_none() && asked.is_empty(), "nothing is free");
    for slot in [3, 5] {
        fixture.retire(&of_page(1, slot));
    }
    let mut point = pages.begin(block, true, 0, 1);
    let ((), asked) = fixture.media.watch(|| fixture.enter(0, &mut point));
    let bits = line(fixture.page_at(block, 1));
    assert_eq!(asked, [Asked::Flush(bits), Asked::Fence], "what others cleared is durable");
    assert_eq!(pages.room(&point, 5, 20), Some(of_page(1, 3)));
    pages.abandon(&mut point, Abandoned::Begun);
    assert_eq!(fixture.put(&mut point, &key(1), &[1; 20]), Some(of_page(1, 3)));
    let mut damaged = point;
    pages.abandon(&mut damaged, Abandoned::Damaged);
    assert_eq!(pages.room(&damaged, 5, 20), None);
    assert_eq!(fixture.put(&mut point, &key(2), &[2; 20]), Some(of_page(1, 5)));
    assert_eq!(pages.room(&point, 5, 20), None);
    // The pages of the block follow each other around its end.
    let mut pages_met = vec![point.page];
    while pages.advance(pool, &mut point) {
        pages_met.push(point.page);
    }
    assert_eq!(pages_met, [1, 2, 0]);
}

#[test]
fn the_next_slot_is_loaded_ahead_but_for_the_line_it_may_share() {
    for (value_bytes, is_longer) in [(200, true), (100, true), (41, true), (40, false), (20, false)]
    {
        let (fixture, page) = fixture(1024, RecordLayout::Checked, value_bytes);
        let slot_bytes = u64::from(page.slot_bytes);
        assert_eq!(slot_bytes > 64, is_longer);
        let mut point = fixture.entered(fixture.block(0), false, 0);
        for slot in 0..page.slots {
            let ahead = |point| fixture.pages.prefetch_next(&fixture.pool, point, 5, 20);
            let ((), asked) = fixture.media.watch(|| ahead(&point));
            let next = point.page_at + page.slot_at(slot + 1) + 64;
            let has_next = is_longer && slot + 1 < page.slots;
            let expected = has_next.then(|| Asked::AheadForWriting(lines(next, slot_bytes - 64)));
            assert_eq!(asked, Vec::from_iter(expected), "slot {slot}");
            let shared = |point| fixture.pages.prefetch_shared(&fixture.pool, point);
            let ((), asked) = fixture.media.watch(|| shared(&point));
            let both = [point.page_at + page.slot_at(slot), point.page_at];
            assert_eq!(asked, both.map(|at| Asked::AheadForWriting(line(at))));
            fixture.pages.consume(&mut point, 5, 20);
        }
        let shared = || fixture.pages.prefetch_shared(&fixture.pool, &point);
        assert_eq!(fixture.media.watch(shared).1, [], "nothing comes next");
    }
}
