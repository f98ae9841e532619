//! [`verify`]: whether every record that should be there is there, with a value written to it.

use std::ops::Range;
use std::thread;

use chimera::Db;
use chimera_pmem::Pmem;

use super::phase::{Ledger, split};
use super::worker::{Data, Worker};
use crate::error::{BenchError, Result};

/// What a thread found wrong.
#[derive(Default)]
struct Wrong {
    records: u64,
    first: Option<String>,
}

/// Reads every record and checks its value; checks that there are no others. Returns how many
/// records were verified.
///
/// # Errors
/// [`BenchError::Verification`] with the number of wrong records and the first one.
pub(crate) fn verify<P: Pmem>(
    db: &Db<P>,
    data: &Data,
    ledger: &Ledger,
    threads: usize,
) -> Result<u64> {
    let records = ledger.records();
    let mut wrong = Wrong::default();
    for range in ledger.ranges() {
        for part in verify_range(db, data, ledger, range, threads) {
            wrong.records += part.records;
            wrong.first = wrong.first.or(part.first);
        }
    }
    let found = db.stats().records;
    if wrong.first.is_none() && found != records {
        wrong.records = found.abs_diff(records);
        wrong.first = Some(format!("the store counts {found} records"));
    }
    match wrong.first {
        None => Ok(records),
        Some(first) => Err(BenchError::Verification { wrong: wrong.records, records, first }),
    }
}

/// Checks a range of records on several threads.
fn verify_range<P: Pmem>(
    db: &Db<P>,
    data: &Data,
    ledger: &Ledger,
    range: Range<u64>,
    threads: usize,
) -> Vec<Wrong> {
    thread::scope(|scope| {
        let mut start = range.start;
        let parts: Vec<_> = split(range.end - range.start, threads)
            .into_iter()
            .map(|length| {
                let part = start..start + length;
                start = part.end;
                scope.spawn(move || verify_part(db, data, ledger, part))
            })
            .collect();
        parts
            .into_iter()
            .map(|part| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

fn verify_part<P: Pmem>(db: &Db<P>, data: &Data, ledger: &Ledger, part: Range<u64>) -> Wrong {
    let mut worker = Worker::new(db, data, 0..0, 0);
    let mut wrong = Wrong::default();
    for number in part.filter(|number| !ledger.is_gone(*number)) {
        if let Err(what) = worker.check(number) {
            wrong.records += 1;
            wrong.first.get_or_insert_with(|| format!("record {number} {what}"));
        }
    }
    wrong
}

#[cfg(test)]
mod tests;
