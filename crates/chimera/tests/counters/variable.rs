//! Stores of records of any size: what a record costs whose value lies beside its key in a page.

use chimera::{Db, Options, Session};
use chimera_pmem::Operation;

use super::lines::{Flushes, Log, Once, PAGE, fences, span, touched};
use super::{Counted, assert_all_fences, assert_fences, assert_flushes, assert_untouched, counted};

pub(crate) fn open() -> Db<Counted> {
    super::open(Options::new())
}

/// A key of so many bytes, at least 8.
pub(crate) fn key(number: u64, bytes: usize) -> Vec<u8> {
    let mut key = vec![0x5a; bytes];
    key[..8].copy_from_slice(&number.to_le_bytes());
    key
}

/// Bytes of a key and of its value, by the key's number.
type Sizes = fn(u64) -> (usize, usize);

/// Small, usual, odd, with empty values, a page each, and all of these mixed.
const SIZES: [(&str, Sizes); 7] = [
    ("8 + 8", |_| (8, 8)),
    ("16 + 200", |_| (16, 200)),
    ("13 + 0", |_| (13, 0)),
    ("32 + 500", |_| (32, 500)),
    ("100 + 900", |_| (100, 900)),
    ("16 + 4048", |_| (16, 4048)),
    ("mixed", |number| {
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        (8 + mixed as usize % 30, (mixed >> 8) as usize % 700)
    }),
];

const RECORDS: u64 = 2_000;

/// Puts records `numbers`, all of them new or none.
fn put(session: &mut Session<Counted>, sizes: Sizes, numbers: &[u64], is_new: bool, byte: u8) {
    for number in numbers {
        let (key_bytes, value_bytes) = sizes(*number);
        let value = vec![byte; value_bytes];
        assert_eq!(session.put(key(*number, key_bytes), &value).unwrap(), is_new);
    }
}

fn all() -> Vec<u64> {
    (0..RECORDS).collect()
}

/// Every second one, so that no block becomes free, and the last ones first.
fn half() -> Vec<u64> {
    (0..RECORDS).rev().step_by(2).collect()
}

/// Where records `numbers` come to lie, and their bytes.
fn take(log: &mut Log, sizes: Sizes, numbers: &[u64]) -> Vec<(u64, u64)> {
    let place = |number: &u64| {
        let (key_bytes, value_bytes) = sizes(*number);
        let bytes = span(key_bytes, value_bytes);
        (log.take(bytes), bytes)
    };
    numbers.iter().map(place).collect()
}

#[test]
fn an_insert_costs_the_lines_of_its_record_and_two_fences_or_one_for_one_line() {
    for (name, sizes) in SIZES {
        let db = open();
        let mut session = db.session();
        let counters =
            counted(&db, Operation::Insert, || put(&mut session, sizes, &all(), true, 1));
        let mut expected = Flushes::default();
        let mut expected_fences = 0;
        for (at, bytes) in take(&mut Log::new(PAGE), sizes, &all()) {
            expected += Once::default().record(at, bytes).flushes();
            expected_fences += fences(at, bytes);
        }
        assert_all_fences(&counters, Operation::Insert, RECORDS, expected_fences);
        let totals = counters.of(Operation::Insert);
        assert_flushes(&totals, expected);
        // A record is written once, one after the other, and the line of its lengths once more: little more than its bytes and
        // a unit reach the media.
        let media = totals.media_writes() * 256;
        let most = totals.bytes_stored * 112 / 100 + RECORDS * 256 + 8192;
        assert!(media <= most, "{name}: {media} bytes");
    }
}

/// The means, by number: what the model above says must not drift with it.
#[test]
fn an_insert_of_16_and_200_bytes_costs_4_7_lines() {
    let db = open();
    let mut session = db.session();
    let (_, usual) = SIZES[1];
    let counters = counted(&db, Operation::Insert, || put(&mut session, usual, &all(), true, 1));
    let insert = counters.per_operation(Operation::Insert).unwrap();
    let lines = insert.lines_flushed + insert.lines_reflushed;
    // 240 bytes, 4.7 lines, that of the lengths once.
    assert!((4.69..=4.72).contains(&lines), "{lines}");
    let media = insert.media_writes();
    assert!((1.80..=1.87).contains(&media), "{media} media writes");
}

#[test]
fn an_overwrite_costs_one_fence_and_one_line_more() {
    for (_, sizes) in SIZES {
        let db = open();
        let mut session = db.session();
        put(&mut session, sizes, &all(), true, 1);
        let counters =
            counted(&db, Operation::Overwrite, || put(&mut session, sizes, &half(), false, 2));
        let mut expected_fences = 0;
        let mut log = Log::new(PAGE);
        let old = take(&mut log, sizes, &all());
        let mut expected = Flushes::default();
        for ((at, bytes), number) in take(&mut log, sizes, &half()).into_iter().zip(half()) {
            // The old one's lengths can lie in a line of the new one.
            let retired = old[number as usize].0;
            expected_fences += fences(at, bytes) + 1;
            expected += Once::default().record(at, bytes).retire(retired).flushes();
        }
        assert_all_fences(&counters, Operation::Overwrite, RECORDS / 2, expected_fences);
        assert_flushes(&counters.of(Operation::Overwrite), expected);
    }
}

#[test]
fn a_session_behind_another_pays_one_fence_more_and_catches_up() {
    let db = open();
    let (_, usual) = SIZES[1];
    let mut behind = db.session();
    put(&mut behind, usual, &[0], true, 1);
    put(&mut db.session(), usual, &(1..RECORDS).collect::<Vec<_>>(), true, 1);
    let mut overwrite = |numbers: &[u64]| {
        let counters =
            counted(&db, Operation::Overwrite, || put(&mut behind, usual, numbers, false, 2));
        (counters.of(Operation::Overwrite).operations, counters.of(Operation::Overwrite).fences)
    };
    assert_eq!(overwrite(&[RECORDS / 2]), (1, 4));
    // The one before is behind, the ones after are not.
    assert_eq!(overwrite(&[10]), (1, 3));
    assert_eq!(overwrite(&[20, 21, 22]), (3, 9));
}

#[test]
fn a_get_writes_nothing_and_reads_the_lines_of_its_record_256_bytes_at_least() {
    for (_, sizes) in SIZES {
        let db = open();
        let mut session = db.session();
        put(&mut session, sizes, &all(), true, 1);
        db.pmem().empty_cache();
        let counters = counted(&db, Operation::Get, || {
            for number in 0..RECORDS {
                let (key_bytes, value_bytes) = sizes(number);
                let found = session.get(key(number, key_bytes)).unwrap().unwrap();
                assert_eq!(found.len(), value_bytes);
            }
        });
        let get = counters.of(Operation::Get);
        assert_fences(&counters, Operation::Get, RECORDS, 0);
        assert_untouched(&get);
        // How long a record is, it says itself: so many bytes are loaded before that is known.
        let places = take(&mut Log::new(PAGE), sizes, &all());
        let lines = places.iter().map(|(at, bytes)| touched(*at, (*bytes).max(256)));
        assert_eq!(get.lines_read(), lines.sum::<u64>());
    }
}

#[test]
fn what_is_not_there_costs_nothing() {
    let db = open();
    let mut session = db.session();
    let (_, usual) = SIZES[1];
    put(&mut session, usual, &all(), true, 1);
    let absent = key(RECORDS, 16);
    let counters = counted(&db, Operation::Other, || {
        assert_eq!(session.get(&absent).unwrap(), None);
        assert!(!session.delete(&absent).unwrap());
        assert!(!session.update(&absent, Vec::clear).unwrap());
        assert_eq!(session.fetch_add_u64(&absent, 0, 1).unwrap(), None);
        assert_eq!(session.compare_and_swap_u64(&absent, 0, 0, 1).unwrap(), None);
        let swap = session.compare_and_swap(&absent, [], [1]).unwrap();
        assert_eq!(swap, chimera::Swap::Missing);
        assert!(session.put([], [1]).is_err());
        assert!(session.put([1; 5000], [1]).is_err());
    });
    assert_untouched(&counters.total());
    assert_eq!(counters.total().lines_read(), 0, "the index knows");
}

#[test]
fn a_delete_costs_one_line_and_one_fence() {
    for (_, sizes) in SIZES {
        let db = open();
        let mut session = db.session();
        put(&mut session, sizes, &all(), true, 1);
        let counters = counted(&db, Operation::Delete, || {
            for number in 0..RECORDS {
                assert!(session.delete(key(number, sizes(number).0)).unwrap());
            }
        });
        assert_fences(&counters, Operation::Delete, RECORDS, 1);
        let expected = Flushes { lines: RECORDS, again: 0 };
        assert_flushes(&counters.of(Operation::Delete), expected);
        assert_eq!(counters.total().fences, RECORDS, "no block costs anything");
    }
}

#[test]
fn a_value_for_which_its_page_has_no_room_costs_no_fence_more() {
    // Four records of 840 bytes and two keys of 344 in a page: a third of the values lies elsewhere.
    let sizes: Sizes = |_| (296, 520);
    let db = open();
    let mut session = db.session();
    let counters = counted(&db, Operation::Insert, || put(&mut session, sizes, &all(), true, 1));
    assert_fences(&counters, Operation::Insert, RECORDS, 2);
    let insert = counters.per_operation(Operation::Insert).unwrap();
    // 14 lines of a record and the zero behind it, 6.2 and 9.6 where the value lies elsewhere.
    assert!((14.7..14.8).contains(&insert.lines_flushed), "{insert:?}");
    assert_eq!(counters.of(Operation::Insert).lines_reflushed, 0);
}
