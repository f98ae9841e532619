//! Blocks of slots as a whole.

use super::slots::{KEY, VALUE, fill, fixture, key, value};
use super::*;
use crate::records::page_word::PageWord;

/// Pages with two words of bits: 32 slots, and 10.
const PAGE_BYTES: u32 = 2048;
const WORDS: [u32; 2] = [32, 10];
const SLOTS: u32 = 42;
const SLOT_BYTES: u64 = 48;

fn checked() -> Fixture<SlottedPages> {
    let (fixture, page) = fixture(PAGE_BYTES, RecordLayout::Checked, VALUE);
    assert_eq!((page.slots, page.bitset_words, page.slot_bytes), (SLOTS, 2, SLOT_BYTES as u32));
    fixture
}

#[test]
fn a_block_has_the_slots_of_its_pages() {
    let fixture = checked();
    let pages = &fixture.pages;
    assert_eq!(pages.pages_per_block(), 3);
    assert_eq!(pages.units_per_block(), 3 * SLOTS);
    assert_eq!(pages.capacities(), (SLOTS, 3 * SLOTS));
    assert_eq!(pages.reuse(), Reuse::InPlace);
    assert_eq!(
        [(0, 0), (0, 2), (5, 1)].map(|(block, page)| pages.page_number(block, page)),
        [0, 2, 16]
    );
    let of = |key| parameters(PAGE_BYTES, RecordLayout::Checked, key, VALUE);
    assert!(SlottedPages::takes(&of(KEY)) && !SlottedPages::takes(&of(0)));
    assert!(!LogPages::takes(&of(KEY)) && LogPages::takes(&of(0)));
    let too_large = parameters(PAGE_BYTES, RecordLayout::Checked, KEY, PAGE_BYTES);
    assert_eq!(damaged_at(SlottedPages::of(&*fixture.pool, &too_large)), 56);
}

#[test]
fn a_formatted_block_has_its_flags_and_nothing_else() {
    let fixture = checked();
    let (pages, pool) = (&fixture.pages, &*fixture.pool);
    for flags in [0, block_flags::OWNED] {
        let block = fixture.block(flags);
        assert_eq!(block_flags::read(pool, block).unwrap(), flags);
        for page in 1..3 {
            let word = PageWord::load(pool, fixture.page_at(block, page));
            assert_eq!(word, Some(PageWord::open(0)));
        }
        assert!(pages.is_blank(pool, block) && pages.is_empty(pool, block));
        assert!(pages.has_room(pool, block, 1));
        let all = 3 * SLOTS;
        assert_eq!((fixture.room_in(block), pages.gain(pool, block)), ([all; 3], all));
        assert_eq!(fixture.usage(block), [3, 0, 0, 0, 0, 0, u64::from(all) * SLOT_BYTES]);
        assert_eq!(fixture.places(block), []);
        assert_eq!(fixture.scan(block, false), Found { room: [all; 3], ..Found::default() });
        let heads = (0..3).map(|page| fixture.page_at(block, page));
        let heads: Vec<_> = heads.map(|at| Asked::Flush(at..at + 64)).collect();
        let ((), asked) = fixture.media.watch(|| pages.format(pool, block, flags));
        assert_eq!(asked, heads, "the caller fences");
        let ((), asked) = fixture.media.watch(|| pages.persist_empty(pool, block, 0));
        let words = heads.iter().flat_map(|head| [head.clone(), head.clone()]);
        assert_eq!(asked, words.chain([Asked::Fence]).collect::<Vec<_>>(), "a word each");
    }
}

#[test]
fn flags_are_set_and_cleared_durably_and_leave_the_rest_of_their_word() {
    use crate::records::block_flags::{FREE, LARGE, OWNED, change, read};
    let fixture = checked();
    let pool = &*fixture.pool;
    let block = fixture.block(OWNED);
    let at = fixture.page_at(block, 0);
    PageWord { flags: OWNED, end: 64 }.store(pool, at, SITE);
    for (set, clear, left) in [
        (OWNED, 0, OWNED),
        (LARGE | FREE, OWNED, LARGE | FREE),
        (0, FREE, LARGE),
        (LARGE, LARGE, LARGE),
        (0, 0, LARGE),
        (OWNED, LARGE, OWNED),
    ] {
        let ((), asked) = fixture.media.watch(|| change(pool, block, set, clear).unwrap());
        assert_eq!(asked, [Asked::Flush(at..at + 64), Asked::Fence]);
        assert_eq!(read(pool, block).unwrap(), left);
        assert_eq!(PageWord::load(pool, at), Some(PageWord { flags: left, end: 64 }));
    }
    fixture.flip(at, 1 << 50);
    assert_eq!(damaged_at(change(pool, block, OWNED, 0)), at);
    fixture.flip(at, 1 << 50);
    PageWord { flags: 2, end: 64 }.store(pool, at, SITE);
    assert_eq!(damaged_at(read(pool, block)), at, "a flag that nobody knows");
}

#[test]
fn a_block_tells_what_is_live_and_what_is_free() {
    let fixture = checked();
    let (pages, pool) = (&fixture.pages, &*fixture.pool);
    let block = fixture.block(0);
    let places = fill(&fixture, block, 0);
    let all = 3 * u64::from(SLOTS);
    assert!(!pages.has_room(pool, block, 1) && !pages.is_blank(pool, block));
    assert_eq!((fixture.room_in(block), pages.gain(pool, block)), ([0; 3], 0));
    assert_eq!(fixture.usage(block), [3, 3, 0, all, all * SLOT_BYTES, 0, 0]);
    assert_eq!(fixture.places(block), places);
    let found = fixture.scan(block, false);
    let record =
        |(number, place): (u64, &Place)| (*place, key(number).to_vec(), Some(value(number, VALUE)));
    assert_eq!(found.records, (0..).zip(&places).map(record).collect::<Vec<_>>());
    // One of the first word of a page, two of the second one, and all of the last page.
    let is_gone = |place: &Place| place.page == 2 || [7, 32, 41].contains(&place.slot);
    let (gone, left): (Vec<_>, Vec<_>) = places.into_iter().partition(is_gone);
    for place in &gone {
        assert_eq!(fixture.retire(place), 1);
    }
    let (free, live) = (gone.len() as u32, left.len() as u64);
    assert_eq!((free, live), (3 + 3 + SLOTS, all - 6 - u64::from(SLOTS)));
    assert_eq!((fixture.room_in(block), pages.gain(pool, block)), ([free; 3], free));
    assert!(pages.has_room(pool, block, 1) && !pages.is_empty(pool, block));
    let room = u64::from(free) * SLOT_BYTES;
    assert_eq!(fixture.usage(block), [3, 2, 0, live, live * SLOT_BYTES, 0, room]);
    assert_eq!(fixture.places(block), left);
    let found = fixture.scan(block, false);
    assert_eq!(found.records.iter().map(|(place, ..)| *place).collect::<Vec<_>>(), left);
    assert_eq!((found.room, found.damages), ([free; 3], vec![]));
    for place in &left {
        assert_eq!(fixture.retire(place), 1);
    }
    assert!(pages.is_empty(pool, block) && pages.is_blank(pool, block));
}

#[test]
fn a_damaged_first_word_of_a_page_is_told_of_once() {
    let fixture = checked();
    let (pages, pool) = (&fixture.pages, &*fixture.pool);
    for page in 0..3 {
        let block = fixture.block(0);
        let at = fixture.page_at(block, page);
        fixture.flip(at, 1 << 50);
        // That of the first page is told of with the block's flags.
        let is_told = page > 0;
        assert_eq!(block_flags::read(pool, block).is_ok(), is_told);
        assert_eq!(pages.is_blank(pool, block), !is_told);
        assert!(pages.is_empty(pool, block));
        assert_eq!(fixture.usage(block)[2], u64::from(is_told));
        let damages = is_told.then_some((at, DAMAGED_PAGE));
        assert_eq!(fixture.scan(block, false).damages, Vec::from_iter(damages));
        fixture.flip(at, 1 << 50);
        PageWord::open(1).store(pool, at, SITE);
        assert_eq!(pages.is_blank(pool, block), page == 0, "only the first page has flags");
    }
}

#[test]
fn the_slots_of_a_damaged_word_are_neither_free_nor_found() {
    let fixture = checked();
    let (pages, pool) = (&fixture.pages, &*fixture.pool);
    for word in 0..2 {
        let block = fixture.block(0);
        let places = fill(&fixture, block, 0);
        // One slot of each word is free.
        for place in places.iter().filter(|place| [3, 35].contains(&place.slot)) {
            fixture.retire(place);
        }
        let live = fixture.places(block);
        let at = fixture.page_at(block, 1) + PageLayout::bitset_at(word);
        fixture.flip(at, 1 << 33);
        let is_known = |place: &&Place| place.page != 1 || place.slot / 32 != word;
        let known: Vec<Place> = live.iter().filter(is_known).copied().collect();
        assert_eq!(fixture.places(block), known);
        assert_eq!((fixture.room_in(block), pages.gain(pool, block)), ([5; 3], 5));
        assert!(!pages.is_empty(pool, block));
        let (dead, count) = (u64::from(WORDS[word as usize]) * SLOT_BYTES, known.len() as u64);
        let expected = [3, 3, 1, count, count * SLOT_BYTES, dead, 5 * SLOT_BYTES];
        assert_eq!(fixture.usage(block), expected);
        let scanned = |found: &Found| found.records.iter().map(|it| it.0).collect::<Vec<_>>();
        let found = fixture.scan(block, false);
        assert_eq!(found.damages, [(at, "the bitset of a page is damaged")]);
        assert_eq!((scanned(&found), found.room), (known, [5; 3]));
        let found = fixture.scan(block, true);
        assert_eq!(found.damages, [(at, "the bitset of a page is damaged")]);
        assert_eq!((scanned(&found), found.room), (live, [5; 3]), "as the bits are");
    }
}

#[test]
fn salvage_of_the_published_layout_takes_the_bits_of_slots_alone() {
    let (fixture, page) = fixture(512, RecordLayout::Published, VALUE);
    let block = fixture.block(0);
    let places = fill(&fixture, block, 0);
    let at = fixture.page_at(block, 2) + PageLayout::bitset_at(0);
    fixture.flip(at, 1 << page.slots | 1 << 63);
    let found = fixture.scan(block, true);
    assert_eq!(found.damages, [(at, "the bitset of a page is damaged")]);
    assert_eq!(found.records.iter().map(|it| it.0).collect::<Vec<_>>(), places);
    let found = fixture.scan(block, false);
    assert_eq!(found.records.len(), 2 * page.slots as usize);
}
