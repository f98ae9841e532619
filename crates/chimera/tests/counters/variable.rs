//! Stores of records of any size: what a record costs whose value lies beside its key in a page.

use chimera::pmem::Operation;
use chimera::{Db, Options, Session};

use super::lines::{Flushes, Log, Once, PAGE, span, touched};
use super::{Counted, assert_fences, assert_flushes, assert_untouched, counted};

pub(crate) fn open() -> Db<Counted> {
    super::open(Options::new())
}

/// A key of so many bytes, at least 8.
pub(crate) fn key(number: u64, bytes: usize) -> Vec<u8> {
    let mut key = vec![0x5a; bytes];
    key[..8].copy_from_slice(&number.to_le_bytes());
    key
}

/// Sizes of keys and values, as many as are wanted.
type Sizes = fn(u64) -> (usize, usize);

/// Small, usual, odd, with empty values, nearly a page, and all of these mixed.
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
        assert_eq!(session.put(&key(*number, key_bytes), &value).unwrap(), is_new);
    }
}

fn all() -> Vec<u64> {
    (0..RECORDS).collect()
}

/// Where records `numbers` come to lie.
fn take(log: &mut Log, sizes: Sizes, numbers: &[u64]) -> Vec<(u64, u64)> {
    let place = |number: &u64| {
        let (key_bytes, value_bytes) = sizes(*number);
        let bytes = span(key_bytes, value_bytes);
        (log.take(bytes), bytes)
    };
    numbers.iter().map(place).collect()
}

#[test]
fn an_insert_costs_two_fences_and_the_lines_of_its_record() {
    for (name, sizes) in SIZES {
        let db = open();
        let mut session = db.session();
        let counters =
            counted(&db, Operation::Insert, || put(&mut session, sizes, &all(), true, 1));
        assert_fences(&counters, Operation::Insert, RECORDS, 2);
        let mut expected = Flushes::default();
        for (at, bytes) in take(&mut Log::new(PAGE), sizes, &all()) {
            expected += Once::default().record(at, bytes).flushes();
        }
        assert_flushes(&counters.of(Operation::Insert), expected);
        println!("{name}: {expected:?} {:?}", counters.of(Operation::Insert));
        println!("   handout {:?}", counters.of(Operation::BlockHandOut));
    }
}
