//! [`Phase`]: threads doing one kind of work.

use std::time::Duration;

use chimera_pmem::Operation;

use super::clock::{Load, Measure, drive};
use super::ledger::{Ledger, Population, split};
use super::store::Store;
use super::worker::{Data, Worker};
use crate::error::Result;
use crate::results::measured::Measured;
use crate::workload::Distribution;
use crate::workload::distribution::Chooser;
use crate::workload::mix::{Draw, Mix};
use crate::workload::random::Permutation;

/// Records of a scan in a mix, at most.
const SCAN_RECORDS_MAX: u64 = 100;

/// One kind of work, with its name in the results.
#[derive(Clone, Debug)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// What is done.
    pub action: Action,
    /// Whether each operation depends on the result of the one before.
    pub chained: bool,
}

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// New records.
    Insert,
    /// Any record, uniformly.
    Get,
    /// The counter of any record, uniformly.
    Update,
    /// Any record, uniformly.
    Overwrite,
    /// So many records, uniformly, given to the store together.
    Batch(usize),
    /// So many records, uniformly, overwritten all or none.
    Atomic(usize),
    /// Any record, uniformly: read, changed and written anew.
    Modify,
    /// All records of the last `Insert`, in no order.
    Delete,
    /// Every third record of those that were loaded is deleted.
    Thin,
    /// So many records from any one on, uniformly.
    Scan(usize),
    /// A mix of operations.
    Mix(Mix, Distribution),
}

impl Phase {
    /// A phase of independent operations.
    pub fn new(name: &str, action: Action) -> Self {
        Self { name: name.to_owned(), action, chained: false }
    }

    /// The class in which the counters book most of it.
    pub(crate) fn class(&self) -> Operation {
        match self.action {
            Action::Insert => Operation::Insert,
            Action::Update => Operation::UpdateInPlace,
            Action::Overwrite | Action::Batch(_) | Action::Atomic(_) => Operation::Overwrite,
            Action::Modify => Operation::Update,
            Action::Delete | Action::Thin => Operation::Delete,
            Action::Mix(mix, _) if mix.overwrite > 0 => Operation::Overwrite,
            Action::Mix(mix, _) if mix.insert > 0 => Operation::Insert,
            Action::Mix(mix, _) if mix.modify > 0 => Operation::Update,
            Action::Get | Action::Scan(_) | Action::Mix(..) => Operation::Get,
        }
    }

    /// Calls that write as many records as so many operations.
    pub(crate) fn calls(&self, operations: u64) -> u64 {
        match self.action {
            Action::Atomic(records) => operations.div_ceil(records as u64),
            _ => operations,
        }
    }

    /// Records it inserts at most, of `operations`.
    pub(crate) fn inserts_max(&self, operations: u64) -> u64 {
        match self.action {
            Action::Insert => operations,
            // Twice the share, for chance.
            Action::Mix(Mix { insert: share @ 1.., .. }, _) => {
                operations * u64::from(share) / 50 + 1000
            }
            _ => 0,
        }
    }

    /// Whether it, or what [`prepare`] does before it, overwrites live records.
    pub(crate) fn rewrites(&self) -> bool {
        match self.action {
            Action::Update
            | Action::Overwrite
            | Action::Batch(_)
            | Action::Atomic(_)
            | Action::Modify => true,
            Action::Mix(mix, _) => mix.overwrite + mix.modify > 0,
            _ => false,
        }
    }
}

/// How much a phase does, and how it is measured.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Threads that do it.
    pub threads: usize,
    /// Operations of all threads together; those of deletes follow from the ledger.
    pub operations: u64,
    /// End earlier after this time.
    pub duration: Option<Duration>,
    /// What is measured.
    pub measure: Measure,
}

/// Updates once, without a change, what [`run`] will update with the same arguments: the first update of a record
/// writes it anew, and those behind it are in place. Of a phase that has a duration these are as many as there are
/// operations.
pub(crate) fn prepare<S: Store>(
    store: &S,
    data: &Data,
    ledger: &Ledger,
    phase: &Phase,
    extent: Extent,
    stream: u64,
) -> Result<()> {
    if phase.action != Action::Update {
        return Ok(());
    }
    let shares = split(extent.operations, extent.threads);
    let workers = (0..extent.threads as u64)
        .map(|thread| Worker::new(store, data, 0..0, stream << 8 | thread))
        .collect();
    let load = Load { shares, duration: None, measure: Measure::Throughput, chained: false };
    let live = ledger.population();
    drive(workers, &load, |worker, after| {
        let number = live.draw(&mut worker.random) + after;
        worker.prepare_update(number)
    })?;
    Ok(())
}

/// Runs a phase and keeps the ledger. Phases of different `stream`s draw different random numbers.
///
/// # Errors
/// When the store fails, or says what is wrong.
pub fn run<S: Store>(
    store: &S,
    data: &Data,
    ledger: &mut Ledger,
    phase: &Phase,
    extent: Extent,
    stream: u64,
) -> Result<Measured> {
    if phase.action == Action::Delete {
        return delete(store, data, ledger, phase, extent.measure, stream);
    }
    if phase.action == Action::Thin {
        return thin(store, data, ledger, extent, stream);
    }
    let room = split(phase.inserts_max(extent.operations), extent.threads);
    let mut start = ledger.next;
    let workers: Vec<_> = room
        .iter()
        .enumerate()
        .map(|(thread, room)| {
            let inserts = start..start + room;
            start = inserts.end;
            Worker::new(store, data, inserts, stream << 8 | thread as u64)
        })
        .collect();
    // Without inserts a phase that has a duration has no other end.
    let endless = extent.duration.is_some() && phase.action != Action::Insert;
    let shares = if endless {
        vec![u64::MAX; extent.threads]
    } else {
        split(extent.operations, extent.threads)
    };
    let load =
        Load { shares, duration: extent.duration, measure: extent.measure, chained: phase.chained };
    let (measured, workers) = run_action(workers, data, phase.action, ledger.population(), &load)?;
    let inserted = workers.iter().map(|worker| worker.first..worker.next);
    let inserted: Vec<_> = inserted.filter(|range| !range.is_empty()).collect();
    if !inserted.is_empty() {
        ledger.inserted.push(inserted);
    }
    ledger.next = start;
    Ok(measured)
}

/// The loop of each kind of work, compiled for itself.
fn run_action<'a, S: Store>(
    workers: Vec<Worker<'a, S>>,
    data: &Data,
    action: Action,
    live: Population,
    load: &Load,
) -> Result<(Measured, Vec<Worker<'a, S>>)> {
    match action {
        Action::Insert => drive(workers, load, Worker::insert),
        Action::Get => drive(workers, load, |worker, after| {
            let number = live.draw(&mut worker.random) + after;
            worker.get(number)
        }),
        Action::Scan(count) => drive(workers, load, |worker, after| {
            let number = live.draw(&mut worker.random) + after;
            worker.scan_exactly(number, count)
        }),
        Action::Update => drive(workers, load, |worker, after| {
            let number = live.draw(&mut worker.random) + after;
            worker.update(number)
        }),
        Action::Overwrite => drive(workers, load, |worker, after| {
            let number = live.draw(&mut worker.random) + after;
            worker.overwrite(number)
        }),
        Action::Batch(count) => drive(workers, load, |worker, after| {
            let numbers = (0..count).map(|_| live.draw(&mut worker.random) + after).collect();
            worker.put_batch(numbers)
        }),
        Action::Atomic(count) => drive(workers, load, |worker, after| {
            let numbers = (0..count).map(|_| live.draw(&mut worker.random) + after).collect();
            worker.write_atomically(numbers)
        }),
        Action::Modify => drive(workers, load, |worker, after| {
            let number = live.draw(&mut worker.random) + after;
            worker.modify(number)
        }),
        Action::Delete | Action::Thin => unreachable!("deletes have ranges of their own"),
        Action::Mix(mix, distribution) => {
            let choosers = workers.into_iter().map(|worker| {
                let chooser = Chooser::new(distribution, live.loaded, &data.zipfian);
                (worker, chooser)
            });
            let step = |(worker, chooser): &mut (Worker<'a, S>, Chooser), after: u64| {
                let mut draw = mix.draw(worker.random.next());
                if draw == Draw::Insert && worker.next < worker.end {
                    return worker.insert(after);
                }
                let (first, next) = (worker.first, worker.next);
                let number = chooser.choose(&mut worker.random, first, next) + after;
                if draw == Draw::Insert {
                    draw = Draw::Get;
                }
                match draw {
                    Draw::Overwrite => worker.overwrite(number),
                    Draw::Modify => worker.modify(number),
                    Draw::Scan => worker.scan(number, SCAN_RECORDS_MAX),
                    Draw::Get | Draw::Insert => worker.get(number),
                }
            };
            let (measured, workers) = drive(choosers.collect(), load, step)?;
            Ok((measured, workers.into_iter().map(|(worker, _)| worker).collect()))
        }
    }
}

/// Deletes all records of the last `Insert`, each range by a thread of its own.
fn delete<S: Store>(
    store: &S,
    data: &Data,
    ledger: &mut Ledger,
    phase: &Phase,
    measure: Measure,
    stream: u64,
) -> Result<Measured> {
    let ranges = ledger.inserted.pop().unwrap_or_default();
    let shares = ranges.iter().map(|range| range.end - range.start).collect();
    let workers: Vec<_> = ranges
        .iter()
        .enumerate()
        .map(|(thread, range)| {
            let mut worker = Worker::new(store, data, range.clone(), stream << 8 | thread as u64);
            let order = Permutation::new(range.end - range.start, &mut worker.random);
            (worker, order)
        })
        .collect();
    let load = Load { shares, duration: None, measure, chained: phase.chained };
    let step = |(worker, order): &mut (Worker<'_, S>, Permutation), after: u64| {
        let number = worker.first + order.next() + after;
        worker.delete(number)
    };
    Ok(drive(workers, &load, step)?.0)
}

/// Deletes every third record of those that were loaded.
fn thin<S: Store>(
    store: &S,
    data: &Data,
    ledger: &mut Ledger,
    extent: Extent,
    stream: u64,
) -> Result<Measured> {
    let shares = split(ledger.loaded.div_ceil(3), extent.threads);
    let mut start = 0;
    let workers = shares.iter().enumerate().map(|(thread, share)| {
        start += share;
        Worker::new(store, data, start - share..start, stream << 8 | thread as u64)
    });
    let workers = workers.collect();
    let load = Load { shares, duration: None, measure: extent.measure, chained: false };
    let (measured, _) = drive(workers, &load, |worker, after| {
        let third = worker.next + after;
        worker.next += 1;
        worker.delete(3 * third)
    })?;
    ledger.thinned = true;
    Ok(measured)
}
