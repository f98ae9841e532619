//! [`verify`]: whether every record that should be there is there, with a value written to it.

use std::ops::Range;
use std::thread;

use super::ledger::{Ledger, split};
use super::store::Store;
use super::worker::{Data, Worker, key_mark};
use crate::error::{BenchError, Result};

/// What was found.
#[derive(Default)]
struct Found {
    wrong: u64,
    /// What is wrong with the first of them.
    first: Option<String>,
    /// The sum of the marks of all keys that are right.
    marks: u64,
}

/// Reads every record and checks its value; checks that a listing has these records and no others. Returns
/// how many records were verified.
///
/// # Errors
/// [`BenchError::Verification`] with the number of wrong records and the first one.
pub fn verify<S: Store>(store: &S, data: &Data, ledger: &Ledger, threads: usize) -> Result<u64> {
    let records = ledger.records();
    let mut found = Found::default();
    for range in ledger.ranges() {
        for part in verify_range(store, data, ledger, range, threads) {
            found.wrong += part.wrong;
            found.first = found.first.or(part.first);
            found.marks = found.marks.wrapping_add(part.marks);
        }
    }
    if found.first.is_none() {
        verify_listing(store, data, records, &mut found)?;
    }
    match found.first {
        None => Ok(records),
        Some(first) => Err(BenchError::Verification { wrong: found.wrong, records, first }),
    }
}

/// Compares what a store counts and lists with the records that were found in it.
fn verify_listing<S: Store>(store: &S, data: &Data, records: u64, found: &mut Found) -> Result<()> {
    let (mut listed, mut marks) = (0_u64, 0_u64);
    store.for_each(|key, _| {
        listed += 1;
        marks = marks.wrapping_add(key_mark(key));
    })?;
    let counted = store.footprint().records;
    let is_counted = counted == records || !data.puts_know && counted > records;
    found.first = if listed != records {
        found.wrong = listed.abs_diff(records);
        Some(format!("the store lists {listed} records"))
    } else if !is_counted {
        found.wrong = counted.abs_diff(records);
        Some(format!("the store counts {counted} records"))
    } else if marks != found.marks {
        found.wrong = 1;
        Some("a key that is listed was never written".to_owned())
    } else {
        None
    };
    Ok(())
}

/// Checks a range of records on several threads.
fn verify_range<S: Store>(
    store: &S,
    data: &Data,
    ledger: &Ledger,
    range: Range<u64>,
    threads: usize,
) -> Vec<Found> {
    thread::scope(|scope| {
        let mut start = range.start;
        let parts: Vec<_> = split(range.end - range.start, threads)
            .into_iter()
            .map(|length| {
                let part = start..start + length;
                start = part.end;
                scope.spawn(move || verify_part(store, data, ledger, part))
            })
            .collect();
        parts
            .into_iter()
            .map(|part| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

fn verify_part<S: Store>(store: &S, data: &Data, ledger: &Ledger, part: Range<u64>) -> Found {
    let mut worker = Worker::new(store, data, 0..0, 0);
    let mut found = Found::default();
    for number in part.filter(|number| !ledger.is_gone(*number)) {
        match worker.check(number) {
            Ok(mark) => found.marks = found.marks.wrapping_add(mark),
            Err(what) => {
                found.wrong += 1;
                found.first.get_or_insert_with(|| format!("record {number} {what}"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests;
