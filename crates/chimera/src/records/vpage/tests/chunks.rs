//! Values that are spilled to chunks, each in a block that is one page.

use chimera_pmem::Fenced;

use super::logs::{BLOCK, PAGE, SPAN, fixture, key, line, lines, put_spans, value};
use super::*;
use crate::pool::Location;
use crate::pool::tests::media::LeftOut;
use crate::records::chunks::{Chunk, Descriptor};
use crate::records::lengths::Entry;

const NAME: u64 = 0x1234_5678_9abc_def0;
/// Three chunks: of 64, 720 and 716 bytes.
const VALUE_BYTES: usize = 1500;
/// From the start of a chunk to its fields, and of a record with a key of 5 bytes to its descriptor.
const FIELDS: [u64; 5] = [0, 8, 16, 24, 32];
const NEXT: u64 = 24;
const DESCRIPTOR_AT: u64 = 32;

/// A record whose value is spilled, and where its chunks lie.
struct Spilled {
    fixture: Fixture<LogPages>,
    place: Place,
    value: Vec<u8>,
    /// In the order of the value.
    blocks: Vec<u64>,
}

/// Writes the chunks of a value, the last one first, and the record that leads to them.
fn spill(
    fixture: &Fixture<LogPages>,
    place: &Place,
    name: u64,
    value: &[u8],
    points: &mut [InsertPoint],
) {
    let (mut next, mut end, mut chunks) = (None, value.len(), Vec::new());
    for (position, point) in (0..).zip(points) {
        let start = end.saturating_sub(LogPages::room_for_chunk(point)).next_multiple_of(8);
        let bytes = &value[start..end];
        let chunk = Chunk { record: place.location(), name, next, position, bytes };
        let (location, all) = LogPages::write_chunk(&fixture.pool, point, &chunk);
        (next, end) = (Some(location), start);
        chunks.push(all);
    }
    assert_eq!(end, 0, "all of the value");
    let first = next.map_or(0, Location::raw);
    let beside = Descriptor { first, name, bytes: value.len() as u32 }.to_bytes();
    let stored = Stored { value, beside: &beside, chunks: &chunks, unchecked: UncheckedWord::NONE };
    fixture.write(place, &key(1), &stored);
    let mut depends_on = vec![(place.record_at + 8, place.record_at + SPAN)];
    depends_on.extend(chunks.iter().map(|chunk| (chunk.offset(), chunk.end())));
    assert_eq!(fixture.media.take_published().pop(), Some((place.record_at, depends_on)));
}

fn chunk_point(fixture: &Fixture<LogPages>) -> InsertPoint {
    fixture.entered(fixture.block(block_flags::LARGE), false, 1)
}

fn spilled() -> Spilled {
    let fixture = fixture();
    let mut point = fixture.entered(fixture.block(0), false, 0);
    put_spans(&fixture, &mut point, &[SPAN]);
    let place = fixture.pages.room(&point, 5, 24).unwrap();
    let mut points = [(); 3].map(|()| chunk_point(&fixture));
    let value = value(5, VALUE_BYTES);
    spill(&fixture, &place, NAME, &value, &mut points);
    fixture.pages.consume(&mut point, 5, 24);
    let blocks = points.iter().rev().map(|point| point.block.unwrap()).collect();
    Spilled { fixture, place, value, blocks }
}

impl Spilled {
    fn record(&self) -> Record {
        self.fixture.pages.decode(&self.fixture.pool, &self.place).unwrap()
    }

    /// Where chunk number `number` of the value begins.
    fn chunk_at(&self, number: usize) -> u64 {
        self.fixture.page_at(self.blocks[number], 0) + 8
    }

    /// Whether the value can be found, which each way to look at it must agree on.
    fn is_found(&self) -> bool {
        let Fixture { pool, pages, .. } = &self.fixture;
        let record = self.record();
        let (mut read, mut copied) = (vec![1; 7], vec![2; 7]);
        let is_read = pages.read_value(pool, &record, &mut read).is_some();
        assert_eq!(pages.copy_value(pool, &record, &mut copied), is_read);
        assert!(!is_read || read == self.value && copied == self.value);
        assert_eq!(pages.value_is(pool, &record, &self.value), is_read);
        assert_eq!(pages.value_word(pool, &record, 0).is_some(), is_read);
        assert_eq!(pages.value_word(pool, &record, 64).is_some(), is_read);
        let found = self.fixture.scan(self.place.block, false);
        let scanned = found.records.iter().find(|(place, ..)| *place == self.place);
        assert_eq!(scanned.map(|(.., value)| value.is_some()), Some(is_read));
        is_read
    }

    /// Live bytes in the block of each chunk.
    fn live(&self) -> [u64; 3] {
        let live = self.blocks.iter().map(|block| {
            let usage = self.fixture.usage(*block);
            let is_live = usage[4] > 0;
            assert_eq!(self.fixture.places(*block), Vec::from_iter(is_live.then_some(self.place)));
            assert_eq!(self.fixture.pages.is_empty(&self.fixture.pool, *block), !is_live);
            let room = if is_live { BLOCK - 8 - usage[4] } else { BLOCK - 8 };
            assert_eq!(usage, [1, u64::from(is_live), 0, 0, usage[4], 0, room]);
            usage[4]
        });
        live.collect::<Vec<_>>().try_into().unwrap()
    }
}

#[test]
fn a_spilled_value_comes_back_from_its_chunks() {
    let spilled = spilled();
    let (pages, pool) = (&spilled.fixture.pages, &*spilled.fixture.pool);
    let (record, own) = (spilled.record(), &spilled.value);
    assert!(record.lengths.is_spilled && spilled.is_found());
    assert_eq!(spilled.fixture.read(&spilled.place), Some((key(1).to_vec(), own.clone())));
    assert_eq!(pages.value_bytes(pool, &record), Some(VALUE_BYTES));
    for (at, is_alike) in [(0, false), (63, false), (64, false), (800, false), (1499, false)] {
        let mut other = own.clone();
        other[at] ^= 1;
        assert_eq!(pages.value_is(pool, &record, &other), is_alike);
    }
    assert!(!pages.value_is(pool, &record, &own[..1499]) && !pages.value_is(pool, &record, &[]));
    assert!(!pages.value_is(pool, &record, &[&own[..], &[0]].concat()));
    for at in 0..VALUE_BYTES + 20 {
        let word = pages.value_word(pool, &record, at);
        let has_word = at.is_multiple_of(8) && at + 8 <= VALUE_BYTES;
        let found = word.map(|word| pool.pmem.load_u64(word).to_le_bytes().to_vec());
        assert_eq!(found, has_word.then(|| own[at..at + 8].to_vec()), "{at}");
    }
    let [first, second, third] = spilled.blocks[..] else { panic!("three") };
    let units = [(first, 13), (second, 95), (third, 95)];
    assert_eq!(pages.chunks_of(pool, &record), units);
    let beside = spilled.fixture.places(spilled.place.block)[0];
    let beside = pages.decode(pool, &beside).unwrap();
    assert_eq!(pages.chunks_of(pool, &beside), [], "its value lies beside its key");
    // So would one that looks like a descriptor.
    let word = pool.pmem.load_u64(spilled.place.record_at);
    let plain = Entry::record(spilled.place.record_at, 5, 24);
    pool.pmem.store_u64(spilled.place.record_at, plain, SITE);
    assert_eq!(pages.chunks_of(pool, &spilled.record()), []);
    pool.pmem.store_u64(spilled.place.record_at, word, SITE);
    assert_eq!(spilled.live(), [104, 760, 760]);
    let is_sound = |_: &Record, _: &[u8]| true;
    let scan = Scan { flags: 0, salvage: false, values: false, is_sound: &is_sound };
    let (mut values, block) = (Vec::new(), spilled.place.block);
    pages.scan(pool, &scan, block, &mut PageBuffers::default(), &mut |one| {
        let Scanned::Record { record, value, .. } = one else { panic!("damage") };
        values.push((record.place, value.map(<[u8]>::len)));
    });
    assert_eq!(values[1], (spilled.place, Some(0)), "it was not asked for");
}

#[test]
fn a_chunk_takes_what_its_block_has_room_for_and_costs_its_lines() {
    let fixture = fixture();
    let mut point = chunk_point(&fixture);
    let at = fixture.page_at(point.block.unwrap(), 0);
    let place = Place { block: 0, page: 0, slot: 1, page_at: 0, record_at: 8 };
    for (tail, bytes, room) in [(8, 100, 720), (152, 8, 576), (200, 440, 528), (680, 1, 48)] {
        assert_eq!((point.log.tail, LogPages::room_for_chunk(&point)), (tail, room));
        let bytes = value(1, bytes);
        let record = place.location();
        let chunk = Chunk { record, name: NAME, next: None, position: 0, bytes: &bytes };
        let write = || LogPages::write_chunk(&fixture.pool, &mut point, &chunk);
        let ((location, all), asked) = fixture.media.watch(write);
        let span = 40 + bytes.len().next_multiple_of(8) as u64;
        assert_eq!(asked, [Asked::Flush(lines(at + tail, span))], "the caller fences");
        assert_eq!((all.offset(), all.length()), (at + tail, span));
        assert_eq!(fixture.pages.place_of(location).record_at, at + tail);
    }
    // 40 bytes are left, and then less than a header.
    assert_eq!((point.log.tail, LogPages::room_for_chunk(&point)), (728, 0));
    point.log.tail = 760;
    assert_eq!(LogPages::room_for_chunk(&point), 0);
    point.log.tail = BLOCK - 40 - 15;
    assert_eq!(LogPages::room_for_chunk(&point), 8, "whole words");
    point.log.end = 1 << 20;
    assert_eq!(LogPages::room_for_chunk(&point), 0xfff0, "as many as the word can say");
}

#[test]
fn under_a_journal_the_log_ends_behind_a_chunk_before_it_is_written() {
    let fixture = fixture();
    fixture.media.set_journaled();
    let mut point = chunk_point(&fixture);
    let at = fixture.page_at(point.block.unwrap(), 0);
    let place = Place { block: 0, page: 0, slot: 1, page_at: 0, record_at: 8 };
    let mut write = |tail: u64, bytes: usize| {
        point.log.tail = tail;
        let (record, bytes) = (place.location(), value(1, bytes));
        let chunk = Chunk { record, name: NAME, next: None, position: 0, bytes: &bytes };
        fixture.media.watch(|| LogPages::write_chunk(&fixture.pool, &mut point, &chunk)).1
    };
    for (tail, bytes) in [(8, 100), (152, 8), (200, 440)] {
        let end = at + tail + 40 + u64::next_multiple_of(bytes, 8);
        assert_eq!(fixture.media.load_u64(end), 0x7777_7777_7777_7777, "it was in use before");
        let asked = write(tail, bytes as usize);
        // The caller fences the chunk.
        let chunk = Asked::Flush(lines(at + tail, end - at - tail));
        assert_eq!(asked, [Asked::Flush(line(end)), Asked::Fence, chunk]);
        assert_eq!(fixture.media.load_u64(end), 0);
    }
    // Where the log ends there already, nothing is to be done, nor at the end of the block.
    fixture.media.store_u64(at + 152, 0, SITE);
    assert_eq!(write(8, 104), [Asked::Flush(lines(at + 8, 144))]);
    assert_eq!(write(624, 104), [Asked::Flush(lines(at + 624, 144))]);
    // Whoever walks the log meets what was there before, if it does not end.
    for (left_out, damaged) in [(None, 0), (Some(LeftOut::Step(END_AHEAD)), 1)] {
        let block = fixture.block(block_flags::LARGE);
        let mut point = fixture.entered(block, false, 1);
        fixture.media.leave_out(left_out);
        let (record, bytes) = (place.location(), value(1, 100));
        let chunk = Chunk { record, name: NAME, next: None, position: 0, bytes: &bytes };
        LogPages::write_chunk(&fixture.pool, &mut point, &chunk);
        assert_eq!(fixture.usage(block)[2], damaged, "{left_out:?}");
    }
}

/// What leads to the bytes passes the journal, and others may yet flush words of records that were in the block before.
#[test]
fn in_an_emptied_block_the_bytes_of_a_chunk_are_new_in_a_shared_place() {
    let fixture = fixture();
    fixture.media.set_journaled();
    let mut point = chunk_point(&fixture);
    let at = fixture.page_at(point.block.unwrap(), 0);
    let record = Place { block: 0, page: 0, slot: 1, page_at: 0, record_at: 8 }.location();
    let bytes = value(1, 104);
    let chunk = Chunk { record, name: NAME, next: None, position: 0, bytes: &bytes };
    for emptied in [None, Some(Fenced::default())] {
        point.log.tail = 8;
        point.emptied = emptied;
        // The log ends there already.
        fixture.media.store_u64(at + 152, 0, SITE);
        let write = || LogPages::write_chunk(&fixture.pool, &mut point, &chunk);
        let asked = fixture.media.watch(write).1;
        let expected = if emptied.is_none() {
            vec![Asked::Flush(lines(at + 8, 144))]
        } else {
            let fields = Asked::Flush(lines(at + 8, 40));
            vec![fields, Asked::Shared, Asked::Flush(lines(at + 48, 104))]
        };
        assert_eq!(asked, expected);
    }
}

#[test]
fn chunks_are_live_while_their_record_is() {
    let spilled = spilled();
    let fixture = &spilled.fixture;
    assert_eq!(fixture.retire(&spilled.place), 7);
    assert!(fixture.read(&spilled.place).is_none(), "its chunks may be used again");
    let record = spilled.record();
    assert!(!fixture.pages.copy_value(&fixture.pool, &record, &mut Vec::new()));
    assert_eq!(spilled.live(), [0; 3]);
}

#[test]
fn chunks_are_not_live_where_their_record_does_not_name_them() {
    let spilled = spilled();
    let fixture = &spilled.fixture;
    let word_at = spilled.place.record_at;
    let live = fixture.media.load_u64(word_at);
    let other_words = [
        0,
        live ^ 1 << 40,
        Entry::chunk(word_at, 24),
        Entry::record(word_at, 5, 24),
        Entry::record_of_chunks(word_at, 9),
        Entry::retired(live, word_at),
    ];
    for word in other_words {
        fixture.media.store_u64(word_at, word, SITE);
        assert_eq!(spilled.live(), [0; 3], "{word:#x}");
    }
    fixture.media.store_u64(word_at, live, SITE);
    for bit in 0..64 {
        fixture.flip(word_at + DESCRIPTOR_AT + 8, 1 << bit);
        assert_eq!(spilled.live(), [0; 3], "bit {bit} of the name");
        fixture.flip(word_at + DESCRIPTOR_AT + 8, 1 << bit);
        // Of the name of a chunk, and of the place of its record.
        for field in [8, 16] {
            fixture.flip(spilled.chunk_at(1) + field, 1 << bit);
            assert_eq!(spilled.live(), [104, 0, 760], "bit {bit} at {field}");
            fixture.flip(spilled.chunk_at(1) + field, 1 << bit);
        }
    }
    assert_eq!(spilled.live(), [104, 760, 760]);
}

#[test]
fn a_value_is_found_whole_or_not_at_all() {
    let spilled = spilled();
    let fixture = &spilled.fixture;
    let descriptor = spilled.place.record_at + DESCRIPTOR_AT;
    let mut words = vec![descriptor, descriptor + 8, descriptor + 16];
    for chunk in 0..3 {
        words.extend(FIELDS.map(|field| spilled.chunk_at(chunk) + field));
    }
    // The last chunk leads nowhere.
    words.retain(|word| *word != spilled.chunk_at(2) + NEXT);
    for word in words {
        for bit in 0..64 {
            fixture.flip(word, 1 << bit);
            assert!(!spilled.is_found(), "bit {bit} at {word}");
            fixture.flip(word, 1 << bit);
        }
        let before = fixture.media.load_u64(word);
        let beyond = fixture.pool.used_blocks() << 19 | 2;
        let others = [0, u64::MAX, before.wrapping_add(1 << 19), beyond];
        for other in others.into_iter().filter(|other| *other != before) {
            fixture.media.store_u64(word, other, SITE);
            assert!(!spilled.is_found(), "{other:#x} at {word}");
        }
        fixture.media.store_u64(word, before, SITE);
    }
    fixture.media.store_u64(spilled.chunk_at(2) + NEXT, 77, SITE);
    assert!(spilled.is_found());
}

#[test]
fn a_chunk_lies_in_its_block_with_all_its_bytes() {
    let fixture = fixture();
    let mut point = fixture.entered(fixture.block(0), false, 0);
    let place = fixture.pages.room(&point, 5, 24).unwrap();
    let mut chunk = chunk_point(&fixture);
    chunk.log.tail = 600;
    let at = chunk.page_at + 600;
    spill(&fixture, &place, NAME, &value(1, 128), &mut [chunk]);
    fixture.pages.consume(&mut point, 5, 24);
    let _next = fixture.block(0);
    let record = fixture.pages.decode(&fixture.pool, &place).unwrap();
    let mut read = |bytes: u32| {
        let descriptor = Descriptor { first: 0, name: 0, bytes }.to_bytes();
        let word = u64::from_le_bytes(descriptor[16..].try_into().unwrap());
        fixture.media.store_u64(place.record_at + DESCRIPTOR_AT + 16, word, SITE);
        fixture.media.store_u64(at, Entry::chunk(at, bytes as usize), SITE);
        fixture.pages.copy_value(&fixture.pool, &record, &mut Vec::new())
    };
    assert_eq!([128, 121, 129, 200, 720].map(&mut read), [true, true, false, false, false]);
    assert!(read(128));
    // All of its last word is the value's.
    assert!(fixture.pages.value_word(&fixture.pool, &record, 120).is_some());
    assert!(fixture.pages.value_word(&fixture.pool, &record, 128).is_none());
}

#[test]
fn each_spilled_value_of_a_page_is_scanned_by_itself() {
    let fixture = fixture();
    let block = fixture.block(0);
    let mut point = fixture.entered(block, false, 0);
    for name in [1, 2] {
        let place = fixture.pages.room(&point, 5, 24).unwrap();
        spill(&fixture, &place, name, &value(name, 600), &mut [chunk_point(&fixture)]);
        fixture.pages.consume(&mut point, 5, 24);
    }
    let values: Vec<_> = fixture.scan(block, false).records.into_iter().map(|it| it.2).collect();
    assert_eq!(values, [1, 2].map(|name| Some(value(name, 600))));
}

#[test]
fn a_descriptor_of_no_bytes_leads_to_no_value() {
    let spilled = spilled();
    let fixture = &spilled.fixture;
    let bytes_at = spilled.place.record_at + DESCRIPTOR_AT + 16;
    let bytes = Descriptor { first: 0, name: 0, bytes: 0 }.to_bytes();
    let word = u64::from_le_bytes(bytes[16..].try_into().unwrap());
    fixture.media.store_u64(bytes_at, word, SITE);
    let record = spilled.record();
    assert_eq!(fixture.pages.value_bytes(&fixture.pool, &record), None);
    assert!(!fixture.pages.value_is(&fixture.pool, &record, &[]) && !spilled.is_found());
    fixture.flip(bytes_at, 1 << 50);
    assert_eq!(fixture.pages.value_bytes(&fixture.pool, &record), None);
}

#[test]
fn chunks_in_blocks_that_are_not_in_use_are_not_found() {
    let fixture = fixture();
    let mut point = fixture.entered(fixture.block(0), false, 0);
    let place = fixture.pages.room(&point, 5, 24).unwrap();
    let mut chunk = [chunk_point(&fixture)];
    spill(&fixture, &place, NAME, &value(1, 700), &mut chunk);
    fixture.pages.consume(&mut point, 5, 24);
    assert!(fixture.read(&place).is_some());
    assert!(fixture.pool.give_back(chunk[0].block.unwrap(), || Ok(())));
    assert!(fixture.read(&place).is_none());
}

/// Chunks whose record would lie at the end of a block.
#[test]
fn a_descriptor_lies_inside_of_its_block() {
    let fixture = fixture();
    let block = fixture.block(0);
    let mut point = fixture.pages.begin(block, false, 0, 2);
    fixture.enter(0, &mut point);
    put_spans(&fixture, &mut point, &[192]);
    let place = fixture.pages.room(&point, 5, 24).unwrap();
    let end = fixture.page_at(block, 0) + BLOCK;
    assert_eq!(place.record_at + 56, end);
    let mut chunk = [chunk_point(&fixture)];
    spill(&fixture, &place, NAME, &value(1, 700), &mut chunk);
    let chunk_block = chunk[0].block.unwrap();
    assert_eq!((fixture.places(chunk_block), fixture.usage(chunk_block)[4]), (vec![place], 744));
    assert!(fixture.read(&place).is_some());
    // A word later, so that the name is inside and the length of the value is not.
    let beyond = Place { slot: place.slot + 1, record_at: place.record_at + 8, ..place };
    fixture.media.store_u64(beyond.record_at, Entry::record_of_chunks(beyond.record_at, 5), SITE);
    fixture.media.store_u64(beyond.record_at + DESCRIPTOR_AT + 8, NAME, SITE);
    fixture.media.store_u64(
        fixture.page_at(chunk_block, 0) + 8 + 16,
        beyond.location().raw(),
        SITE,
    );
    assert_eq!((fixture.places(chunk_block), fixture.usage(chunk_block)[4]), (vec![], 0));
}

#[test]
fn records_are_durably_retired_before_their_chunks_go() {
    for is_left_out in [false, true] {
        let spilled = spilled();
        let fixture = &spilled.fixture;
        let (pages, pool) = (&fixture.pages, &*fixture.pool);
        let places = fixture.places(spilled.place.block);
        for place in &places {
            assert_eq!(fixture.retire(place), 7);
        }
        let left_out = LeftOut::Step(steps::CHUNKS_LAST);
        fixture.media.leave_out(is_left_out.then_some(left_out));
        let retired = [Asked::Flush(line(spilled.place.record_at)), Asked::Fence];
        let retired = if is_left_out { &[][..] } else { &retired };
        // A block of chunks, and one whose next use may be as pages.
        let chunks_at = fixture.page_at(spilled.blocks[0], 0);
        let head = [Asked::Flush(line(chunks_at)), Asked::Fence];
        let ((), asked) = fixture.media.watch(|| {
            fixture.entered(spilled.blocks[0], true, 1);
        });
        assert_eq!(asked[..retired.len() + 2], [retired, &head].concat());
        let chunks_at = fixture.page_at(spilled.blocks[1], 0);
        let ((), asked) = fixture.media.watch(|| pages.persist_empty(pool, spilled.blocks[1], 0));
        let head = [Asked::Flush(line(chunks_at)), Asked::Fence];
        let others = [PAGE, 2 * PAGE].map(|page| Asked::Flush(line(chunks_at + page)));
        assert_eq!(asked, [retired, &head, &others, &[Asked::Fence]].concat());
        // The page of the record itself.
        let head = [Asked::Flush(line(spilled.place.page_at)), Asked::Fence];
        let mut point = pages.begin(spilled.place.block, true, 0, 0);
        let ((), asked) = fixture.media.watch(|| fixture.enter(0, &mut point));
        assert_eq!(asked[..asked.len() - 1], [retired, &head].concat());
    }
}

#[test]
fn a_record_that_is_retired_while_its_page_is_scanned_is_not_told_of() {
    let fixture = fixture();
    let block = fixture.block(0);
    let mut point = fixture.entered(block, false, 0);
    let places = [1, 2].map(|name| {
        let place = fixture.pages.room(&point, 5, 24).unwrap();
        spill(&fixture, &place, name, &value(name, 700), &mut [chunk_point(&fixture)]);
        fixture.pages.consume(&mut point, 5, 24);
        place
    });
    let is_sound = |_: &Record, _: &[u8]| true;
    let scan = Scan { flags: 0, salvage: false, values: true, is_sound: &is_sound };
    let mut found = Vec::new();
    fixture.pages.scan(&fixture.pool, &scan, block, &mut PageBuffers::default(), &mut |one| {
        let Scanned::Record { record, .. } = one else { panic!("damage") };
        found.push(record.place);
        fixture.retire(&places[1]);
    });
    assert_eq!(found, places[..1]);
}
