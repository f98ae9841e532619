//! Stores of records of any size: records larger than a page, and values in chunks.

use chimera_pmem::Operation;
use chimera_pmem::instrumented::OperationCounters;

use super::lines::{BLOCK, Flushes, Log, Once, PAGE, chunk_span, span, touched};
use super::variable::{key, open};
use super::{Counted, assert_fences, assert_flushes, assert_untouched, counted};

const KEYS: u64 = 5;

fn put(session: &mut chimera::Session<Counted>, bytes: usize, is_new: bool) {
    for number in 0..KEYS {
        assert_eq!(session.put(key(number, 16), vec![number as u8; bytes]).unwrap(), is_new);
    }
}

fn delete(session: &mut chimera::Session<Counted>) {
    for number in 0..KEYS {
        assert!(session.delete(key(number, 16)).unwrap());
    }
}

fn get(session: &mut chimera::Session<Counted>, bytes: usize) {
    for number in 0..KEYS {
        let found = session.get(key(number, 16)).unwrap().unwrap();
        assert!(found == vec![number as u8; bytes]);
    }
}

#[test]
fn a_record_that_is_larger_than_a_page_costs_what_a_small_one_does() {
    // The first that does not fit a page, and the last that fits a block.
    for bytes in [4049, 5000, 12_000, 20_512] {
        let db = open();
        let mut session = db.session();
        let mut log = Log::new(BLOCK);
        let mut take = || -> Vec<u64> { (0..KEYS).map(|_| log.take(span(16, bytes))).collect() };
        let (first, second) = (take(), take());
        let inserted = counted(&db, Operation::Insert, || put(&mut session, bytes, true));
        assert_fences(&inserted, Operation::Insert, KEYS, 2);
        let mut expected = Flushes::default();
        for at in &first {
            expected += Once::default().record(*at, span(16, bytes)).flushes();
        }
        assert_flushes(&inserted.of(Operation::Insert), expected);

        let read = counted(&db, Operation::Get, || get(&mut session, bytes));
        assert_untouched(&read.of(Operation::Get));
        let lines = first.iter().map(|at| touched(*at, span(16, bytes)));
        assert_eq!(read.of(Operation::Get).lines_read(), lines.sum::<u64>());

        let replaced = counted(&db, Operation::Overwrite, || put(&mut session, bytes, false));
        assert_fences(&replaced, Operation::Overwrite, KEYS, 3);
        let mut expected = Flushes::default();
        for (old, new) in first.iter().zip(&second) {
            expected += Once::default().record(*new, span(16, bytes)).retire(*old).flushes();
        }
        assert_flushes(&replaced.of(Operation::Overwrite), expected);

        let deleted = counted(&db, Operation::Delete, || delete(&mut session));
        assert_fences(&deleted, Operation::Delete, KEYS, 1);
        let expected = Flushes { lines: KEYS, again: 0 };
        assert_flushes(&deleted.of(Operation::Delete), expected);
    }
}

/// A value in chunks: where these and the record are.
struct Placed {
    chunks: Vec<(u64, u64)>,
    record: u64,
}

/// The pages of descriptors and the blocks of chunks of one session. Places of both kinds are apart.
struct Logs {
    records: Log,
    chunks: Log,
    is_begun: bool,
}

impl Logs {
    fn new() -> Self {
        Self { records: Log::new(PAGE), chunks: Log::new(BLOCK), is_begun: false }
    }

    /// The last part first, each as long as there is room.
    fn place(&mut self, bytes: usize) -> Placed {
        const APART: u64 = 1 << 40;
        let (mut chunks, mut end) = (Vec::new(), bytes as u64);
        while end > 0 {
            if self.is_begun && self.chunks.left() < 40 + 64 {
                self.chunks.next_page();
            }
            self.is_begun = true;
            let room = (self.chunks.left() - 40) & !7;
            let start = end.saturating_sub(room).next_multiple_of(8);
            let bytes = chunk_span(end - start);
            chunks.push((self.chunks.take(bytes), bytes));
            end = start;
        }
        Placed { chunks, record: APART + self.records.take(span(16, 24)) }
    }
}

impl Placed {
    fn written(&self) -> Once {
        let mut once = Once::default();
        for (at, bytes) in &self.chunks {
            once.flush(*at, *bytes);
        }
        once.record(self.record, span(16, 24));
        once
    }

    fn lines(&self) -> u64 {
        let chunks = self.chunks.iter().map(|(at, bytes)| touched(*at, *bytes));
        touched(self.record, 256) + chunks.sum::<u64>()
    }
}

/// What so many blocks cost that were never in use, the first pages of records with them.
fn assert_handed_out(hand_out: &OperationCounters, taken: u64, left: u64) {
    // Each is formatted and then in use; it is marked when it is left.
    assert_eq!(hand_out.fences, 2 * taken + left, "{hand_out:?}");
    // And sealed before.
    let lines = hand_out.lines_flushed + hand_out.lines_reflushed;
    assert_eq!((lines, hand_out.lines_flushed_clean), (3 * taken + 2 * left, 0));
}

#[test]
fn a_value_in_chunks_costs_two_fences_however_many_they_are() {
    for (bytes, count) in [(20_513, 1), (24_529, 2), (60_000, 3), (1 << 20, 43)] {
        let db = open();
        let mut session = db.session();
        // The first segment is made.
        session.put(key(99, 16), []).unwrap();
        let mut logs = Logs::new();
        logs.records.take(span(16, 0));
        let first: Vec<Placed> = (0..KEYS).map(|_| logs.place(bytes)).collect();
        assert_eq!(first[0].chunks.len(), count);
        let blocks = logs.chunks.pages();

        let inserted = counted(&db, Operation::Insert, || put(&mut session, bytes, true));
        assert_fences(&inserted, Operation::Insert, KEYS, 2);
        let mut expected = Flushes::default();
        for placed in &first {
            expected += placed.written().flushes();
        }
        assert_flushes(&inserted.of(Operation::Insert), expected);
        assert_handed_out(&inserted.of(Operation::BlockHandOut), blocks, blocks - 1);
        assert_eq!(db.stats().blocks_used, blocks + 1);

        let read = counted(&db, Operation::Get, || get(&mut session, bytes));
        assert_untouched(&read.of(Operation::Get));
        let lines = first.iter().map(Placed::lines).sum::<u64>();
        assert_eq!(read.of(Operation::Get).lines_read(), lines);

        let second: Vec<Placed> = (0..KEYS).map(|_| logs.place(bytes)).collect();
        let replaced = counted(&db, Operation::Overwrite, || put(&mut session, bytes, false));
        assert_fences(&replaced, Operation::Overwrite, KEYS, 3);
        let mut expected = Flushes::default();
        for (old, new) in first.iter().zip(&second) {
            expected += new.written().retire(old.record).flushes();
        }
        if count <= 3 {
            // Blocks of the first ones are not used again meanwhile.
            assert_flushes(&replaced.of(Operation::Overwrite), expected);
        }

        let deleted = counted(&db, Operation::Delete, || delete(&mut session));
        assert_fences(&deleted, Operation::Delete, KEYS, 1);
        let expected = Flushes { lines: KEYS, again: 0 };
        assert_flushes(&deleted.of(Operation::Delete), expected);
    }
}

/// The header can say each of the first 8191 words of a value.
#[test]
fn a_word_in_a_chunk_is_updated_in_place_where_the_header_can_say_which_it_is() {
    const LAST: usize = 8 * 8190;
    let db = open();
    let mut session = db.session();
    put(&mut session, 1 << 20, true);
    for (at, is_said) in [(0, true), (LAST, true), (LAST + 8, false), ((1 << 20) - 8, false)] {
        for is_first in [true, false] {
            let counters = counted(&db, Operation::Other, || {
                for number in 0..KEYS {
                    assert!(session.fetch_add_u64(key(number, 16), at, 1).unwrap().is_some());
                }
            });
            if is_said && !is_first {
                assert_fences(&counters, Operation::UpdateInPlace, KEYS, 1);
                let expected = Flushes { lines: KEYS, again: 0 };
                assert_flushes(&counters.of(Operation::UpdateInPlace), expected);
            } else {
                assert_fences(&counters, Operation::Update, KEYS, 3);
                let lines = counters.of(Operation::Update).lines_flushed;
                assert!(lines > KEYS << 14, "{lines} lines, where the value alone has 16384");
            }
        }
        assert_eq!(db.check(None).words_unchecked, if is_said { KEYS } else { 0 });
    }
}

/// A swap of a large value for one that differs in more than a word.
#[test]
fn a_swap_of_a_value_in_chunks_costs_an_overwrite() {
    let db = open();
    let mut session = db.session();
    put(&mut session, 60_000, true);
    let counters = counted(&db, Operation::Update, || {
        for number in 0..KEYS {
            let (old, new) = (vec![number as u8; 60_000], vec![7; 50_000]);
            let swap = session.compare_and_swap(key(number, 16), &old, &new).unwrap();
            assert_eq!(swap, chimera::Swap::Swapped);
        }
    });
    assert_fences(&counters, Operation::Update, KEYS, 3);
}
