//! Batches: what they cost beside their writes.

use chimera::{Batch, EngineKind, Options};
use chimera_pmem::Operation;
use chimera_pmem::instrumented::Counters;

use super::{assert_untouched, counted, flushes, open};

const WRITES: u64 = 16;

fn key(number: u64) -> [u8; 16] {
    let mut key = [0x5a; 16];
    key[..8].copy_from_slice(&number.to_le_bytes());
    key
}

fn puts(first: u64, byte: u8) -> Batch {
    let mut batch = Batch::new();
    for number in first..first + WRITES {
        batch.put(key(number), [byte; 200]);
    }
    batch
}

const ENGINES: [EngineKind; 3] = [EngineKind::Viper, EngineKind::Hikv, EngineKind::Chameleon];

/// Counts `batch`, after one that has taken room for records, and `operation` of each of its writes by themselves.
fn both(engine: EngineKind, operation: Operation, batch: &Batch) -> [Counters; 2] {
    let counted_of = |is_batch: bool| {
        let db = open(Options::new().engine(engine));
        let mut session = db.session();
        session.write(&puts(1000, 1)).unwrap();
        for number in 0..WRITES * u64::from(operation != Operation::Insert) {
            session.put(key(number), [1; 200]).unwrap();
        }
        counted(&db, operation, || {
            if is_batch {
                return session.write(batch).unwrap();
            }
            for number in 0..WRITES {
                match operation {
                    Operation::Delete => assert!(session.delete(key(number)).unwrap()),
                    _ => drop(session.put(key(number), [2; 200]).unwrap()),
                }
            }
        })
    };
    [counted_of(true), counted_of(false)]
}

/// The record is its header, and of each write a header, the key and the value: lines and a fence. Clearing it is one more of
/// each.
#[test]
fn a_batch_costs_two_fences_and_the_lines_of_its_record() {
    for engine in ENGINES {
        for operation in [Operation::Insert, Operation::Overwrite] {
            let [batch, puts] = both(engine, operation, &puts(0, 2));
            let record = &batch.of(Operation::Batch);
            // A record begins 64 bytes into a run or block.
            let lines = (32 + WRITES * (16 + 16 + 200)).div_ceil(64);
            assert_eq!((record.operations, record.fences), (2, 2), "{engine} {operation:?}");
            assert_eq!(flushes(record).lines, lines + 1, "{engine} {operation:?}");
            assert_eq!(lines, 59);
            let (one, other) = (&batch.of(operation), &puts.of(operation));
            assert_eq!((one.operations, one.fences), (WRITES, other.fences), "{engine}");
            assert_eq!(flushes(one), flushes(other), "{engine} {operation:?}");
            assert_eq!(batch.of(Operation::Get).fences, 0);
        }
    }
}

#[test]
fn a_batch_of_deletes_has_no_values_in_its_record() {
    let mut deletes = Batch::new();
    for number in 0..WRITES {
        deletes.delete(key(number));
    }
    for engine in ENGINES {
        let [batch, single] = both(engine, Operation::Delete, &deletes);
        let record = &batch.of(Operation::Batch);
        let lines = (32 + WRITES * (16 + 16)).div_ceil(64);
        assert_eq!((record.fences, flushes(record).lines), (2, lines + 1), "{engine}");
        let (one, other) = (&batch.of(Operation::Delete), &single.of(Operation::Delete));
        assert_eq!((one.fences, flushes(one)), (other.fences, flushes(other)), "{engine}");
    }
}

/// Where each write is durable by itself.
#[test]
fn a_batch_that_changes_nothing_writes_nothing() {
    for engine in ENGINES {
        let db = open(Options::new().engine(engine));
        let mut session = db.session();
        let mut batch = puts(0, 1);
        batch.delete(key(5000));
        session.write(&batch).unwrap();
        let counts = counted(&db, Operation::Batch, || session.write(&batch).unwrap());
        assert_untouched(&counts.total());
    }
}

#[test]
fn a_batch_that_changes_one_key_has_no_record() {
    let db = open(Options::new());
    let mut session = db.session();
    session.write(&puts(0, 1)).unwrap();
    let mut batch = puts(0, 1);
    batch.put(key(3), [2; 200]).delete(key(99)).require_value(key(4), [1; 200]);
    let counters = counted(&db, Operation::Overwrite, || session.write(&batch).unwrap());
    assert_untouched(&counters.of(Operation::Batch));
    assert_eq!(counters.of(Operation::Overwrite).fences, 3);
    batch.require_absent(key(5));
    let counters = counted(&db, Operation::Overwrite, || assert!(session.write(&batch).is_err()));
    assert_untouched(&counters.of(Operation::Overwrite));
}
