//! Blocks of logs as a whole.

use super::logs::{BLOCK, PAGE, SPAN, filled, fixture, head, key, line, put_spans};
use super::*;
use crate::pool::tests::media::LeftOut;
use crate::records::page_word::PageWord;

#[test]
fn a_block_has_room_in_words() {
    let fixture = fixture();
    let pages = &fixture.pages;
    assert_eq!((pages.pages_per_block(), pages.units_per_block()), (3, 96));
    assert_eq!((pages.capacities(), pages.reuse()), ((0, 0), Reuse::WholeBlock));
    assert_eq!(pages.page_number(2, 1), 7);
}

#[test]
fn a_formatted_block_has_its_flags_and_empty_logs() {
    let fixture = fixture();
    let (pages, pool) = (&fixture.pages, &*fixture.pool);
    for (flags, count) in [(0, 3), (block_flags::OWNED, 3), (block_flags::LARGE, 1)] {
        let block = fixture.block(flags);
        let at = fixture.page_at(block, 0);
        assert_eq!(block_flags::read(pool, block).unwrap(), flags);
        let image = fixture.media.image();
        let byte = |byte: u64| image[(at + byte) as usize];
        for page in 0..3 {
            let is_head = |byte: u64| byte < 16 && page < count;
            assert_eq!(head(&fixture, block, page).is_some(), page < count);
            assert!(
                (8..PAGE).all(|it| byte(page * PAGE + it) == if is_head(it) { 0 } else { 0x77 })
            );
        }
        assert!(pages.is_empty(pool, block) && pages.is_blank(pool, block));
        let room = BLOCK / count - 8;
        let units = u32::try_from(room / 8).unwrap();
        assert!(pages.has_room(pool, block, units) && !pages.has_room(pool, block, units + 1));
        let all = units * u32::try_from(count).unwrap();
        assert_eq!(fixture.room_in(block), [96, all, all]);
        assert_eq!((pages.gain(pool, block), fixture.places(block)), (0, vec![]));
        assert_eq!(fixture.usage(block), [count, 0, 0, 0, 0, 0, count * room]);
        let found = Found { room: [96, all, all], ..Found::default() };
        assert_eq!(fixture.scan(block, false), found);
        let heads = (0..count).map(|page| Asked::Flush(line(at + page * PAGE)));
        let ((), asked) = fixture.media.watch(|| pages.format(pool, block, flags));
        assert_eq!(asked, heads.collect::<Vec<_>>(), "the caller fences");
    }
}

#[test]
fn a_block_is_blank_while_each_page_is_open_and_empty() {
    let fixture = fixture();
    let (pages, pool) = (&fixture.pages, &*fixture.pool);
    for page in 0..3 {
        let block = fixture.block(0);
        let at = fixture.page_at(block, page);
        PageWord { flags: 0, end: 64 }.store(pool, at, SITE);
        assert!(!pages.is_blank(pool, block), "page {page} is sealed");
        PageWord::open(0).store(pool, at, SITE);
        assert!(pages.is_blank(pool, block));
        fixture.media.store_u64(at + 8, 1, SITE);
        assert!(!pages.is_blank(pool, block), "page {page} has something");
    }
}

#[test]
fn a_block_tells_what_is_live_and_what_is_free() {
    let fixture = fixture();
    let (pages, pool) = (&fixture.pages, &*fixture.pool);
    let (block, places) = filled(&fixture, [&[SPAN; 4], &[SPAN], &[]]);
    fixture.retire(&places[1]);
    let live = [&places[..1], &places[2..]].concat();
    assert_eq!(fixture.places(block), live);
    // 24 bytes behind the first log, 192 behind the second one.
    assert_eq!(fixture.room_in(block), [11 + 25 + 32, 24 + 31, 24 + 31]);
    assert_eq!(pages.gain(pool, block), 7);
    assert_eq!(fixture.usage(block), [3, 2, 0, 4, 4 * SPAN, SPAN, 24 + 192 + 248]);
    assert!(pages.has_room(pool, block, 31) && !pages.has_room(pool, block, 32));
    assert!(!pages.is_empty(pool, block) && !pages.is_blank(pool, block));
    let found = fixture.scan(block, false);
    assert_eq!(found.keys(), [&key(0)[..], &key(2), &key(3), &key(0)]);
    assert_eq!(found.records.iter().map(|it| it.0).collect::<Vec<_>>(), live);
    assert_eq!((found.room, found.damages), ([68, 55, 55], vec![]));
    for place in &live {
        assert_eq!(fixture.retire(place), 7);
    }
    assert!(pages.is_empty(pool, block) && !pages.is_blank(pool, block));
    assert_eq!(fixture.room_in(block), [96, 93, 93]);
    assert_eq!(pages.gain(pool, block), 5 * 7);
    assert_eq!(fixture.usage(block), [3, 0, 0, 0, 0, 0, 3 * 248]);
}

#[test]
fn the_rest_of_a_page_is_room_where_it_is_worth_it() {
    let fixture = fixture();
    // What is left: a fourth of the page and less, room for the shortest record and less.
    for (spans, fillable, starved) in [
        ([184, 192, 200], 8, 8 + 7 + 6),
        ([208, 216, 224], 0, 5),
        ([248, 240, 176], 9, 9),
        ([56, 248, 248], 24, 24),
    ] {
        let (block, _) = filled(&fixture, [&spans[..1], &spans[1..2], &spans[2..]]);
        let free = 96 - u32::try_from(spans.iter().sum::<u64>() / 8).unwrap();
        assert_eq!(fixture.room_in(block), [free, fillable, starved], "{spans:?}");
        assert_eq!(fixture.scan(block, false).room, [free, fillable, starved]);
    }
}

#[test]
fn what_follows_damage_is_no_room() {
    let fixture = fixture();
    let (pages, pool) = (&fixture.pages, &*fixture.pool);
    let (block, places) = filled(&fixture, [&[SPAN], &[SPAN, SPAN], &[SPAN]]);
    let first = fixture.page_at(block, 0);
    fixture.retire(&places[0]);
    for word_at in [places[2].record_at, fixture.page_at(block, 1)] {
        fixture.flip(word_at, 1 << 40);
        assert!(!pages.is_empty(pool, block));
        assert_eq!(fixture.room_in(block), [0, 31 + 24, 31 + 24]);
        assert_eq!(pages.gain(pool, block), 7, "of the sound pages");
        let usage = fixture.usage(block);
        assert_eq!(usage[..3], [3, 2, 1]);
        assert_eq!(usage[6], 248 + 192);
        assert!(pages.has_room(pool, block, 31) && !pages.has_room(pool, block, 32));
        fixture.flip(word_at, 1 << 40);
    }
    // In two pages.
    for place in [&places[2], &places[3]] {
        fixture.flip(place.record_at, 1 << 40);
    }
    assert_eq!(fixture.room_in(block), [0, 31, 31]);
    for place in [&places[2], &places[3]] {
        fixture.flip(place.record_at, 1 << 40);
    }
    fixture.flip(first, 1 << 40);
    assert!(!pages.is_empty(pool, block) && !pages.is_blank(pool, block));
    assert_eq!((fixture.room_in(block), fixture.places(block)), ([0; 3], vec![]));
    assert_eq!((fixture.usage(block), pages.gain(pool, block)), ([0; 7], 0));
    assert!(!pages.has_room(pool, block, 1));
    // Nothing live, and one page damaged.
    fixture.flip(first, 1 << 40);
    places[1..].iter().for_each(|place| assert_eq!(fixture.retire(place), 7));
    assert!(pages.is_empty(pool, block));
    fixture.flip(places[3].record_at, 1);
    assert!(!pages.is_empty(pool, block));
}

/// The seals that a page may have.
#[test]
fn a_seal_lies_behind_the_start_of_the_log_and_in_the_page() {
    let fixture = fixture();
    let (block, places) = filled(&fixture, [&[SPAN; 4], &[248], &[]]);
    let damaged = || fixture.usage(block)[2];
    let seal = |page, flags, end| {
        PageWord { flags, end }.store(&fixture.pool, fixture.page_at(block, page), SITE);
        damaged()
    };
    assert_eq!(damaged(), 0);
    assert_eq!([8, 16, 224, 240, 256, 264].map(|end| seal(0, 0, end)), [1; 6]);
    assert_eq!((seal(0, 0, 232), seal(0, 0, 0)), (0, 0));
    assert_eq!([256, 264, 248, 8].map(|end| seal(1, 0, end)), [0, 1, 1, 1]);
    assert_eq!(seal(1, 0, 0), 0, "it need not be sealed to be full");
    // An empty page is open, and a seal where its log begins is none.
    assert_eq!([8, 16, 0].map(|end| seal(2, 0, end)), [1, 1, 0]);
    assert_eq!(
        [seal(1, block_flags::FREE, 0), seal(1, 0, 0)],
        [1, 0],
        "flags are the first page's"
    );
    assert_eq!(seal(0, block_flags::FREE, 232), 0);
    assert_eq!(fixture.scan(block, false).records.len(), places.len());
    // A page with flags that nobody knows, which the flags of the block would be damage of.
    seal(0, 2, 232);
    let found = fixture.scan(block, false);
    assert_eq!((found.damages, found.records.len(), found.room[0]), (vec![], places.len(), 0));
}

#[test]
fn emptying_a_block_makes_its_pages_open_and_empty() {
    let fixture = fixture();
    let (pages, pool) = (&fixture.pages, &*fixture.pool);
    let (block, places) = filled(&fixture, [&[SPAN; 4], &[SPAN], &[SPAN]]);
    block_flags::change(pool, block, block_flags::OWNED, 0).unwrap();
    for place in &places {
        assert_eq!(fixture.retire(place), 7);
    }
    let withdrawn = fixture.media.withdrawn_ranges().len();
    let ((), asked) = fixture.media.watch(|| pages.persist_empty(pool, block, 0));
    let at = fixture.page_at(block, 0);
    let flush = |page: u64| Asked::Flush(line(at + page * PAGE));
    assert_eq!(asked, [flush(0), flush(1), flush(2), Asked::Fence]);
    assert_eq!(fixture.media.withdrawn_ranges()[withdrawn..], [(at, BLOCK)]);
    assert!(pages.is_blank(pool, block));
    assert_eq!(block_flags::read(pool, block).unwrap(), block_flags::OWNED, "as they were");
}

/// Where its next use is as pages, their heads would lie inside of what it held.
#[test]
fn emptying_a_large_block_makes_all_pages_that_it_is_to_have_empty() {
    let fixture = fixture();
    let (pages, pool) = (&fixture.pages, &*fixture.pool);
    let next = [0, 0, 0, block_flags::LARGE, block_flags::LARGE];
    let cases = [(false, false), (false, true), (true, false), (false, false), (true, false)];
    for ((is_damaged, leaves_out), next) in cases.into_iter().zip(next) {
        let block = fixture.block(block_flags::LARGE);
        let at = fixture.page_at(block, 0);
        let mut point = fixture.entered(block, false, 1);
        let place = fixture.put(&mut point, &[0x55; 9], &[0x55; 500]).unwrap();
        fixture.retire(&place);
        if is_damaged {
            fixture.flip(at, 1 << 40);
        }
        if leaves_out {
            fixture.media.leave_out(Some(LeftOut::Step(steps::CLEAR_HEADS)));
        }
        let ((), asked) = fixture.media.watch(|| pages.persist_empty(pool, block, next));
        let flush = |page: u64| Asked::Flush(line(at + page * PAGE));
        let own = [flush(0), Asked::Fence];
        let others = [flush(1), flush(2), Asked::Fence];
        let stays_large = next > 0 && !is_damaged;
        let expected = match (is_damaged, leaves_out) {
            (false, false) if stays_large => own.to_vec(),
            (false, false) => [&own[..], &others].concat(),
            (_, true) => own.to_vec(),
            (true, _) => [&own[1..], &others].concat(),
        };
        assert_eq!(asked, expected);
        fixture.media.leave_out(None);
        for page in 1..3 {
            let is_empty = head(&fixture, block, page) == Some(PageWord::open(0));
            assert_eq!(is_empty, !leaves_out && !stays_large);
        }
        let flags = block_flags::read(pool, block).ok();
        assert_eq!(flags, (!is_damaged).then_some(block_flags::LARGE));
    }
}

#[test]
fn pages_that_were_left_open_are_sealed_where_their_logs_end() {
    let fixture = fixture();
    let (pages, pool) = (&fixture.pages, &*fixture.pool);
    let block = fixture.block(0);
    let mut point = fixture.entered(block, false, 0);
    put_spans(&fixture, &mut point, &[SPAN; 3]);
    let at = fixture.page_at(block, 0);
    let seal = || fixture.media.watch(|| pages.seal_open(pool, block));
    assert_eq!(seal(), (true, vec![Asked::Flush(line(at))]), "the caller fences");
    assert_eq!(head(&fixture, block, 0), Some(PageWord { flags: 0, end: 8 + 3 * SPAN }));
    assert_eq!([1, 2].map(|page| head(&fixture, block, page)), [Some(PageWord::open(0)); 2]);
    assert_eq!(seal(), (false, vec![]), "empty pages stay open");
    // Two of them, which is more than none.
    let another = fixture.block(0);
    for page in [0, 2] {
        let mut point = pages.begin(another, false, 0, page);
        fixture.enter(0, &mut point);
        put_spans(&fixture, &mut point, &[SPAN]);
    }
    let at_of = |page| Asked::Flush(line(fixture.page_at(another, page)));
    let both = fixture.media.watch(|| pages.seal_open(pool, another));
    assert_eq!(both, (true, vec![at_of(0), at_of(2)]));
    // A page that is damaged stays as it is, also beside one that is sealed.
    for page in 0..2 {
        PageWord::open(0).store(pool, fixture.page_at(block, page), SITE);
    }
    fixture.flip(at + 8 + SPAN, 1 << 40);
    let mut other = pages.begin(block, false, 0, 1);
    fixture.enter(0, &mut other);
    put_spans(&fixture, &mut other, &[SPAN]);
    assert_eq!(seal(), (true, vec![Asked::Flush(line(at + PAGE))]));
    assert_eq!(head(&fixture, block, 0), Some(PageWord::open(0)));
    assert_eq!(head(&fixture, block, 1), Some(PageWord { flags: 0, end: 64 }));
}

/// A seal that is stored while a page is looked at is no damage.
#[test]
fn a_page_that_is_sealed_or_opened_meanwhile_may_end_anywhere() {
    let fixture = fixture();
    let (block, places) = filled(&fixture, [&[SPAN; 2], &[], &[]]);
    let at = fixture.page_at(block, 0);
    // One more record than the seal says.
    let next = Place { slot: 15, record_at: at + 120, ..places[0] };
    fixture.write(&next, &key(9), &stored(&[1; 20]));
    assert_eq!(fixture.usage(block)[2], 1, "the log goes on");
    let is_sound = |_: &Record, _: &[u8]| true;
    let scan = Scan { flags: 0, salvage: false, values: true, is_sound: &is_sound };
    for new in [0, 176, 120] {
        PageWord { flags: 0, end: 120 }.store(&fixture.pool, at, SITE);
        let (mut keys, mut damages) = (Vec::new(), Vec::new());
        let buffers = &mut PageBuffers::default();
        fixture.pages.scan(&fixture.pool, &scan, block, buffers, &mut |one| match one {
            Scanned::Record { key, .. } => {
                keys.push(key.to_vec());
                PageWord { flags: 0, end: new }.store(&fixture.pool, at, SITE);
            }
            Scanned::Damage { at, .. } => damages.push(at),
        });
        let is_changed = new != 120;
        assert_eq!(keys, [key(0), key(1), key(9)].map(|key| key.to_vec()));
        assert_eq!(damages, Vec::from_iter((!is_changed).then_some(at + 120)));
    }
}
