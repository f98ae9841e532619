//! [`Phase`]: threads doing one kind of work; [`Ledger`]: which records a store has.

use std::ops::Range;
use std::time::Duration;

use chimera::Db;
use chimera_pmem::{Operation, Pmem};

use super::clock::{Load, Measure, Measured, drive};
use super::worker::{Data, Worker};
use crate::error::Result;
use crate::workload::Distribution;
use crate::workload::distribution::Chooser;
use crate::workload::mix::{Draw, Mix};
use crate::workload::random::{Permutation, Random};

/// One kind of work, with its name in the results.
#[derive(Clone, Debug)]
pub(crate) struct Phase {
    pub(crate) name: String,
    pub(crate) action: Action,
    pub(crate) chained: bool,
}

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// New records.
    Insert,
    /// Any record, uniformly.
    Get,
    /// The counter of any record, uniformly.
    Update,
    /// Any record, uniformly.
    Overwrite,
    /// Any record, uniformly: read, changed and written anew.
    Modify,
    /// All records of the last `Insert`, in no order.
    Delete,
    /// Every third record of those that were loaded is deleted.
    Thin,
    /// A mix of operations.
    Mix(Mix, Distribution),
}

impl Phase {
    /// A phase of independent operations.
    pub(crate) fn new(name: &str, action: Action) -> Self {
        Self { name: name.to_owned(), action, chained: false }
    }

    /// The class in which the counters book most of it.
    pub(crate) fn class(&self) -> Operation {
        match self.action {
            Action::Insert => Operation::Insert,
            Action::Update => Operation::UpdateInPlace,
            Action::Overwrite => Operation::Overwrite,
            Action::Modify => Operation::Update,
            Action::Delete | Action::Thin => Operation::Delete,
            Action::Mix(mix, _) if mix.overwrite > 0 => Operation::Overwrite,
            Action::Mix(mix, _) if mix.insert > 0 => Operation::Insert,
            Action::Mix(mix, _) if mix.modify > 0 => Operation::Update,
            Action::Get | Action::Mix(..) => Operation::Get,
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

    /// Whether it writes records that are there anew.
    pub(crate) fn rewrites(&self) -> bool {
        match self.action {
            Action::Overwrite | Action::Modify => true,
            Action::Mix(mix, _) => mix.overwrite + mix.modify > 0,
            _ => false,
        }
    }
}

/// Which records a store has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    /// Records `0..loaded` are there.
    pub(crate) loaded: u64,
    /// And these, by phase.
    inserted: Vec<Vec<Range<u64>>>,
    /// The first number that was never used.
    next: u64,
    /// Every third of those that were loaded is gone.
    thinned: bool,
}

/// Records that were loaded and are there.
#[derive(Clone, Copy, Debug)]
struct Population {
    loaded: u64,
    thinned: bool,
}

impl Population {
    /// How many.
    fn records(self) -> u64 {
        if self.thinned { self.loaded - self.loaded.div_ceil(3) } else { self.loaded }
    }

    /// Any of them, uniformly.
    #[inline(always)]
    fn draw(self, random: &mut Random) -> u64 {
        if self.thinned {
            let number = random.below(self.records());
            number / 2 * 3 + 1 + number % 2
        } else {
            random.below(self.loaded)
        }
    }
}

impl Ledger {
    /// Every record there is, but for those that [`is_gone`](Self::is_gone).
    pub(crate) fn ranges(&self) -> Vec<Range<u64>> {
        let inserted = self.inserted.iter().flatten().cloned();
        std::iter::once(0..self.loaded).chain(inserted).filter(|range| !range.is_empty()).collect()
    }

    /// Whether a record was loaded and is gone.
    pub(crate) fn is_gone(&self, number: u64) -> bool {
        self.thinned && number < self.loaded && number.is_multiple_of(3)
    }

    fn population(&self) -> Population {
        Population { loaded: self.loaded, thinned: self.thinned }
    }

    /// How many records there are.
    pub(crate) fn records(&self) -> u64 {
        let all: u64 = self.ranges().iter().map(|range| range.end - range.start).sum();
        all - (self.loaded - self.population().records())
    }

    /// What was inserted so far counts as loaded. There must be no gaps.
    pub(crate) fn settle(&mut self) {
        self.loaded = self.records();
        self.inserted.clear();
        self.next = self.loaded;
    }
}

/// How much a phase does, and how it is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) threads: usize,
    pub(crate) operations: u64,
    pub(crate) duration: Option<Duration>,
    pub(crate) measure: Measure,
}

/// Splits `total` into `parts` that differ by at most one.
pub(crate) fn split(total: u64, parts: usize) -> Vec<u64> {
    let count = parts.max(1) as u64;
    (0..count).map(|part| total / count + u64::from(part < total % count)).collect()
}

/// Runs a phase and keeps the ledger. Phases of different `stream`s draw different random numbers.
pub(crate) fn run<P: Pmem>(
    db: &Db<P>,
    data: &Data,
    ledger: &mut Ledger,
    phase: &Phase,
    extent: Extent,
    stream: u64,
) -> Result<Measured> {
    if phase.action == Action::Delete {
        return delete(db, data, ledger, phase, extent.measure, stream);
    }
    if phase.action == Action::Thin {
        return thin(db, data, ledger, extent, stream);
    }
    let room = split(phase.inserts_max(extent.operations), extent.threads);
    let mut start = ledger.next;
    let workers: Vec<_> = room
        .iter()
        .enumerate()
        .map(|(thread, room)| {
            let inserts = start..start + room;
            start = inserts.end;
            Worker::new(db, data, inserts, stream << 8 | thread as u64)
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
fn run_action<'a, P: Pmem>(
    workers: Vec<Worker<'a, P>>,
    data: &Data,
    action: Action,
    there: Population,
    load: &Load,
) -> Result<(Measured, Vec<Worker<'a, P>>)> {
    match action {
        Action::Insert => drive(workers, load, Worker::insert),
        Action::Get => drive(workers, load, |worker, after| {
            let number = there.draw(&mut worker.random) + after;
            worker.get(number)
        }),
        Action::Update => drive(workers, load, |worker, after| {
            let number = there.draw(&mut worker.random) + after;
            worker.update(number)
        }),
        Action::Overwrite => drive(workers, load, |worker, after| {
            let number = there.draw(&mut worker.random) + after;
            worker.overwrite(number)
        }),
        Action::Modify => drive(workers, load, |worker, after| {
            let number = there.draw(&mut worker.random) + after;
            worker.modify(number)
        }),
        Action::Delete | Action::Thin => unreachable!("deletes have ranges of their own"),
        Action::Mix(mix, distribution) => {
            let choosers = workers.into_iter().map(|worker| {
                let chooser = Chooser::new(distribution, there.loaded, &data.zipfian);
                (worker, chooser)
            });
            let step = |(worker, chooser): &mut (Worker<'a, P>, Chooser), after: u64| {
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
                    Draw::Get | Draw::Insert => worker.get(number),
                }
            };
            let (measured, workers) = drive(choosers.collect(), load, step)?;
            Ok((measured, workers.into_iter().map(|(worker, _)| worker).collect()))
        }
    }
}

/// Deletes all records of the last `Insert`, each range by a thread of its own.
fn delete<P: Pmem>(
    db: &Db<P>,
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
            let mut worker = Worker::new(db, data, range.clone(), stream << 8 | thread as u64);
            let order = Permutation::new(range.end - range.start, &mut worker.random);
            (worker, order)
        })
        .collect();
    let load = Load { shares, duration: None, measure, chained: phase.chained };
    let step = |(worker, order): &mut (Worker<'_, P>, Permutation), after: u64| {
        let number = worker.first + order.next() + after;
        worker.delete(number)
    };
    Ok(drive(workers, &load, step)?.0)
}

/// Deletes every third record of those that were loaded.
fn thin<P: Pmem>(
    db: &Db<P>,
    data: &Data,
    ledger: &mut Ledger,
    extent: Extent,
    stream: u64,
) -> Result<Measured> {
    let shares = split(ledger.loaded.div_ceil(3), extent.threads);
    let mut start = 0;
    let workers = shares.iter().enumerate().map(|(thread, share)| {
        start += share;
        Worker::new(db, data, start - share..start, stream << 8 | thread as u64)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_even_and_complete() {
        assert_eq!(split(10, 3), [4, 3, 3]);
        assert_eq!(split(2, 4), [1, 1, 0, 0]);
        assert_eq!(split(0, 1), [0]);
    }

    #[test]
    fn a_ledger_counts_what_is_there() {
        let mut ledger =
            Ledger { loaded: 10, inserted: vec![vec![10..15, 20..22]], next: 30, thinned: false };
        assert_eq!(ledger.records(), 17);
        assert_eq!(ledger.ranges(), [0..10, 10..15, 20..22]);
        ledger = Ledger { loaded: 0, inserted: vec![vec![0..5, 5..9]], next: 9, thinned: false };
        ledger.settle();
        assert_eq!((ledger.loaded, ledger.next, ledger.records()), (9, 9, 9));
    }

    #[test]
    fn a_thinned_population_is_drawn_from_evenly() {
        let there = Population { loaded: 11, thinned: true };
        let mut random = Random::new(1, 1);
        let mut counts = [0; 11];
        for _ in 0..7000 {
            counts[there.draw(&mut random) as usize] += 1;
        }
        let ledger = Ledger { loaded: 11, thinned: true, ..Ledger::default() };
        for (number, count) in counts.into_iter().enumerate() {
            assert_eq!(ledger.is_gone(number as u64), count == 0, "{number}");
            assert!(count == 0 || (800..1200).contains(&count), "{number}: {count}");
        }
        assert_eq!(ledger.records(), 7);
    }
}
