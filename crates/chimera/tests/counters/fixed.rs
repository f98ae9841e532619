//! Stores of records of one size.

use chimera::baselines::RecordLayout;
use chimera::{Db, Options, Session};
use chimera_pmem::instrumented::Counters;
use chimera_pmem::{Operation, Pmem};

use super::lines::Flushes;
use super::{Counted, assert_fences, assert_flushes, counted, flushes};

const RECORDS: u64 = 20_000;

fn open(options: Options) -> Db<Counted> {
    super::open(options.fixed_size(16, 200))
}

fn key(number: u64) -> [u8; 16] {
    let mut key = [0x5a; 16];
    key[..8].copy_from_slice(&number.to_le_bytes());
    key
}

fn fill<P: Pmem>(session: &mut Session<P>, range: std::ops::Range<u64>) {
    for number in range {
        assert!(session.put(key(number), [number as u8; 200]).unwrap());
    }
}

fn insert_lines(layout: RecordLayout) -> f64 {
    let db = open(Options::new().viper(|viper| viper.layout(layout)));
    let mut session = db.session();
    let counters = counted(&db, Operation::Insert, || fill(&mut session, 0..RECORDS));
    assert_fences(&counters, Operation::Insert, RECORDS, 2);
    let insert = counters.per_operation(Operation::Insert).unwrap();
    let media = insert.media_writes();
    // The first lines of pages were written when the block was handed out.
    assert!((0.85..=1.25).contains(&media), "{layout:?}: {media} media writes");
    // Block hand-out is apart: the flag of the block left, the six pages of the new one, the number of used
    // blocks; and a few lines for a new segment.
    let hand_out = counters.of(Operation::BlockHandOut);
    let blocks = RECORDS.div_ceil(u64::from(db.stats().viper().expect("Viper").records_per_block));
    assert!(hand_out.lines_flushed <= 9 * blocks + 8 * db.stats().segments, "{hand_out:?}");
    // Only the first record of a page lies in the line of its bit.
    let pages =
        RECORDS.div_ceil(u64::from(db.stats().viper().expect("Viper").records_per_page)) + 1;
    assert!(counters.of(Operation::Insert).lines_reflushed <= pages);
    insert.lines_flushed + insert.lines_reflushed
}

#[test]
fn an_insert_costs_two_fences_and_at_most_5_6_lines() {
    let published = insert_lines(RecordLayout::Published);
    assert!((5.2..=5.4).contains(&published), "as published 5.33 lines, not {published}");
    let checked = insert_lines(RecordLayout::Checked);
    assert!(checked <= 5.6, "{checked} lines");
}

#[test]
fn a_block_of_deleted_records_costs_a_fence_for_each_page() {
    const BLOCKS: u64 = 10;
    let db = open(Options::new());
    let mut session = db.session();
    fill(&mut session, 0..(BLOCKS + 1) * 102);
    for number in 0..BLOCKS * 102 {
        assert!(session.delete(key(number)).unwrap());
    }
    let range = 5000..5000 + BLOCKS * 102;
    let counters = counted(&db, Operation::Insert, || fill(&mut session, range));
    assert_fences(&counters, Operation::Insert, BLOCKS * 102, 2);
    let hand_out = counters.of(Operation::BlockHandOut);
    // Marked and unmarked; that its slots are free is durable in truth, and only those who freed them know.
    assert_eq!((hand_out.fences, hand_out.lines_flushed_clean), (BLOCKS * (2 + 6), BLOCKS * 6));
    assert_eq!(hand_out.lines_flushed + hand_out.lines_reflushed, BLOCKS * (2 + 6));
}

#[test]
fn pages_and_blocks_hold_as_many_records_as_promised() {
    let published =
        open(Options::new().viper(|viper| viper.layout(RecordLayout::Published))).stats();
    let published = published.viper().expect("Viper");
    assert_eq!((published.records_per_page, published.records_per_block), (18, 108));
    let checked = open(Options::new()).stats();
    let checked = checked.viper().expect("Viper");
    assert_eq!((checked.records_per_page, checked.records_per_block), (17, 102));
}

#[test]
fn an_overwrite_costs_three_fences() {
    for layout in [RecordLayout::Checked, RecordLayout::Published] {
        let db = open(Options::new().viper(|viper| viper.layout(layout)));
        let mut session = db.session();
        fill(&mut session, 0..RECORDS);
        let counters = counted(&db, Operation::Overwrite, || {
            for number in (0..RECORDS).rev() {
                assert!(!session.put(key(number), [1; 200]).unwrap());
            }
        });
        let totals = counters.of(Operation::Overwrite);
        assert_eq!((totals.operations, totals.fences), (RECORDS, 3 * RECORDS));
        // An old record's bit can be in the line of the new one's: then that line counts again.
        let lines = (totals.lines_flushed + totals.lines_reflushed) as f64 / RECORDS as f64;
        assert!(lines <= 6.6, "{lines}");
    }
}

#[test]
fn a_session_behind_another_pays_one_fence_more_and_catches_up() {
    let db = open(Options::new());
    let mut behind = db.session();
    fill(&mut behind, 0..1);
    fill(&mut db.session(), 1..RECORDS);
    let mut overwrite = |range: std::ops::Range<u64>| {
        let count = range.end - range.start;
        let counters = counted(&db, Operation::Overwrite, || {
            for number in range {
                assert!(!behind.put(key(number), [1; 200]).unwrap());
            }
        });
        (count, counters.of(Operation::Overwrite).fences)
    };
    assert_eq!(overwrite(RECORDS / 2..RECORDS / 2 + 1), (1, 4));
    // The one before is behind, the one after is not.
    assert_eq!(overwrite(10..11), (1, 3));
    assert_eq!(overwrite(20..80), (60, 180));
}

/// What it costs to do `work` for every record of a full store, in order: the first and the second time.
fn done_twice(
    layout: RecordLayout,
    work: impl Fn(&mut Session<Counted>, &[u8; 16]),
) -> [Counters; 2] {
    let db = open(Options::new().viper(|viper| viper.layout(layout)));
    let mut session = db.session();
    fill(&mut session, 0..RECORDS);
    [(), ()].map(|()| {
        counted(&db, Operation::Other, || {
            for number in 0..RECORDS {
                work(&mut session, &key(number));
            }
        })
    })
}

fn add(session: &mut Session<Counted>, key: &[u8; 16], at: usize) {
    assert!(session.fetch_add_u64(key, at, 3).unwrap().is_some());
}

fn assert_in_place(counters: &Counters, operations: u64) {
    assert_fences(counters, Operation::UpdateInPlace, operations, 1);
    let expected = Flushes { lines: operations, again: 0 };
    assert_flushes(&counters.of(Operation::UpdateInPlace), expected);
    assert_eq!(counters.of(Operation::BlockHandOut).operations, 0);
    assert_eq!(counters.total().fences, operations);
}

#[test]
fn an_update_of_8_bytes_costs_one_line_and_one_fence() {
    for at in [0, 192] {
        let [first, steady] =
            done_twice(RecordLayout::Published, |session, key| add(session, key, at));
        assert_in_place(&first, RECORDS);
        assert_in_place(&steady, RECORDS);
        let [_, steady] = done_twice(RecordLayout::Checked, |session, key| add(session, key, at));
        assert_in_place(&steady, RECORDS);
    }
}

/// Puts, and then updates of the number, where options say that every value has one, or not.
fn with_counter(is_said: bool) -> [Counters; 3] {
    const AT: u32 = 96;
    let options = Options::new();
    let db = open(if is_said { options.counter_at(AT) } else { options });
    let mut session = db.session();
    let inserted = counted(&db, Operation::Other, || fill(&mut session, 0..RECORDS));
    let overwritten = counted(&db, Operation::Other, || {
        for number in 0..RECORDS {
            assert!(!session.put(key(number), [1; 200]).unwrap());
        }
    });
    let updated = counted(&db, Operation::Other, || {
        (0..RECORDS).for_each(|number| add(&mut session, &key(number), AT as usize));
    });
    [inserted, overwritten, updated]
}

#[test]
fn the_first_update_of_a_counter_is_in_place_where_options_say_that_values_have_one() {
    let [inserted, overwritten, updated] = with_counter(true);
    assert_in_place(&updated, RECORDS);
    let [plain_inserted, plain_overwritten, plain_updated] = with_counter(false);
    let of = |counters: &Counters, operation| {
        let totals = counters.of(operation);
        (totals.operations, totals.lines_flushed, totals.lines_reflushed, totals.fences)
    };
    let inserts = Operation::Insert;
    assert_eq!(of(&inserted, inserts), of(&plain_inserted, inserts));
    let overwrites = Operation::Overwrite;
    assert_eq!(of(&overwritten, overwrites), of(&plain_overwritten, overwrites));
    assert_eq!(plain_updated.of(Operation::UpdateInPlace).operations, 0);
}

/// It takes the word out of the record's checksum, once.
#[test]
fn the_first_update_of_a_record_costs_an_overwrite() {
    let layout = RecordLayout::Checked;
    let [first, steady] = done_twice(layout, |session, key| add(session, key, 8));
    let [overwrite, _] = done_twice(layout, |session, key| {
        assert!(!session.put(key, [1; 200]).unwrap());
    });
    assert_fences(&first, Operation::Update, RECORDS, 3);
    assert_eq!(flushes(&first.of(Operation::Update)), flushes(&overwrite.of(Operation::Overwrite)));
    assert_eq!(first.of(Operation::UpdateInPlace).operations, 0);
    assert_eq!(first.total().fences, overwrite.total().fences);
    assert_in_place(&steady, RECORDS);
}

/// A record has one word without a checksum, and a put none.
#[test]
fn an_update_of_another_word_or_after_a_put_costs_an_overwrite() {
    let db = open(Options::new());
    let mut session = db.session();
    fill(&mut session, 0..102);
    let mut cost = |work: &dyn Fn(&mut Session<Counted>)| {
        let counters = counted(&db, Operation::Other, || work(&mut session));
        let of = |operation| (counters.of(operation).operations, counters.of(operation).fences);
        (of(Operation::Update), of(Operation::UpdateInPlace))
    };
    let (anew, in_place) = (((1, 3), (0, 0)), ((0, 0), (1, 1)));
    assert_eq!(cost(&|session| add(session, &key(7), 0)), anew);
    assert_eq!(cost(&|session| add(session, &key(7), 0)), in_place);
    assert_eq!(cost(&|session| add(session, &key(7), 8)), anew);
    assert_eq!(cost(&|session| add(session, &key(7), 0)), anew);
    assert_eq!(cost(&|session| add(session, &key(7), 0)), in_place);
    let put = |session: &mut Session<Counted>| {
        session.put(key(7), [9; 200]).unwrap();
    };
    assert_eq!(cost(&put), ((0, 0), (0, 0)));
    assert_eq!(cost(&|session| add(session, &key(7), 0)), anew);
    // A number that is not changed is read, and nothing is written.
    let refused = |session: &mut Session<Counted>| {
        let found = session.compare_and_swap_u64(key(7), 16, 1, 2).unwrap();
        assert_eq!(found, Some(0x0909_0909_0909_0909));
    };
    assert_eq!(cost(&refused), ((1, 0), (0, 0)));
    assert_eq!(cost(&|session| add(session, &key(7), 0)), in_place);
}

#[test]
fn an_update_within_a_word_is_in_place_and_any_other_is_an_overwrite() {
    let db = open(Options::new());
    let mut session = db.session();
    fill(&mut session, 0..102);
    add(&mut session, &key(1), 16);
    let counters = counted(&db, Operation::Other, || {
        session.update(key(1), |value| value[17] = 9).unwrap();
        session.update(key(2), |value| value[7..9].fill(9)).unwrap();
        session.update(key(3), |_| {}).unwrap();
        session.update(key(4), |value| value[17] = 9).unwrap();
    });
    let in_place = counters.of(Operation::UpdateInPlace);
    assert_eq!((in_place.operations, in_place.fences, in_place.lines_flushed), (1, 1, 1));
    let copied = counters.of(Operation::Update);
    assert_eq!((copied.operations, copied.fences), (3, 6), "one of them changed nothing");
    assert_eq!(session.get(key(1)).unwrap().unwrap()[17], 9);
    assert_eq!(session.get(key(2)).unwrap().unwrap()[7..9], [9, 9]);
    let counters = counted(&db, Operation::Other, || {
        session.update(key(4), |value| value[20] = 7).unwrap();
    });
    assert_in_place(&counters, 1);
}

#[test]
fn a_delete_costs_one_line_and_one_fence() {
    for layout in [RecordLayout::Checked, RecordLayout::Published] {
        let db = open(Options::new().viper(|viper| viper.layout(layout)));
        let mut session = db.session();
        fill(&mut session, 0..RECORDS);
        let counters = counted(&db, Operation::Delete, || {
            for number in 0..RECORDS {
                assert!(session.delete(key(number)).unwrap());
            }
        });
        assert_fences(&counters, Operation::Delete, RECORDS, 1);
        let totals = counters.of(Operation::Delete);
        assert_eq!((totals.lines_flushed, totals.lines_reflushed), (RECORDS, 0));
    }
}

#[test]
fn a_get_writes_nothing_and_reads_the_lines_of_its_record() {
    let db = open(Options::new());
    let mut session = db.session();
    fill(&mut session, 0..RECORDS);
    db.pmem().empty_cache();
    let counters = counted(&db, Operation::Get, || {
        for number in 0..RECORDS {
            assert!(session.get(key(number)).unwrap().is_some());
        }
    });
    let get = counters.of(Operation::Get);
    assert_eq!((get.operations, get.stores, get.fences, get.lines_flushed), (RECORDS, 0, 0, 0));
    // 232 bytes at a multiple of 8: 4.5 lines on average, and nothing else.
    let lines = get.lines_read() as f64 / RECORDS as f64;
    assert!((4.0..=4.8).contains(&lines), "{lines}");
}

#[test]
fn a_refused_or_missing_operation_costs_nothing() {
    let db = open(Options::new());
    let mut session = db.session();
    fill(&mut session, 0..10);
    let counters = counted(&db, Operation::Other, || {
        assert!(!session.delete(key(77)).unwrap());
        assert!(!session.update(key(77), |value| value.fill(0)).unwrap());
        assert_eq!(session.fetch_add_u64(key(77), 0, 1).unwrap(), None);
        assert!(session.put(&key(1)[..3], [0; 200]).is_err());
        assert!(session.put(key(1), [0; 3]).is_err());
    });
    let total = counters.total();
    assert_eq!((total.stores, total.fences, total.lines_flushed), (0, 0, 0));
}

#[test]
fn each_session_spreads_its_lines_evenly_over_the_dimms() {
    let db = open(Options::new());
    db.pmem().reset();
    let mut sessions: Vec<_> = (0..4).map(|_| db.session()).collect();
    for (index, session) in sessions.iter_mut().enumerate() {
        let first = index as u64 * RECORDS;
        fill(session, first..first + RECORDS);
    }
    let counters = db.pmem().snapshot();
    for session in &sessions {
        let spread = counters.sessions[&session.number()].written_spread().unwrap();
        assert!(spread.max_over_mean() <= 1.1, "{}: {spread:?}", session.number());
    }
}

#[test]
fn sessions_start_at_different_pages_of_their_blocks() {
    let db = open(Options::new());
    let mut first_dimms = std::collections::BTreeSet::new();
    for number in 0..32 {
        let mut session = db.session();
        let counters = counted(&db, Operation::Other, || fill(&mut session, number..number + 1));
        let lines = &counters.sessions[&session.number()].written;
        first_dimms.insert(lines.iter().position(|lines| *lines >= 4));
    }
    assert_eq!(first_dimms.len(), 6, "every DIMM is somebody's first: {first_dimms:?}");
}

#[test]
fn one_seed_gives_one_count() {
    let run = || {
        let db = open(Options::new());
        let mut session = db.session();
        fill(&mut session, 0..3_000);
        for number in 0..1_000 {
            session.put(key(number), [0; 200]).unwrap();
            session.delete(key(number + 1_000)).unwrap();
        }
        db.pmem().snapshot()
    };
    assert_eq!(run(), run());
}
