//! All stores in turn, phase by phase.
//!
//! Each store has a process of its own. In each repetition every store is made anew; then each phase is done by all of them,
//! one after the other, before the next phase begins. Another store comes first in each repetition. Whoever waits for its
//! turn is stopped, and what its files have in the system's cache is written to the disk before the next turn. Before each phase the disk
//! itself is probed.

mod contestant;

use std::io;
use std::path::Path;

use chimera_bench::measure::Progress;
use chimera_bench::report::Machine;

use crate::job::{CACHE_PART, Job, KEY_BYTES, StoreKind};
use crate::options::{Place, Plan};
use crate::probe::{Probed, probe};
use crate::protocol::{Ran, Work};
use crate::results::{
    Cell, Failure, MemoryLimit, Needs, NeedsRow, ProbeRow, Report, Spread, StoreRow, WorkRow,
};
use crate::{BenchError, Result};
use contestant::Contestant;

/// Steps of a repetition beside the kinds of work: compacting, opening after a close and after a kill.
const OTHER_STEPS: usize = 2;

/// What was measured so far.
#[derive(Default)]
struct Measured {
    stores: Vec<StoreRow>,
    probes: Vec<Probed>,
    ran: Vec<(StoreKind, Work, Ran)>,
    needs: Vec<(StoreKind, Needs)>,
    failures: Vec<Failure>,
    limited_by: Option<String>,
}

/// Runs everything.
///
/// # Errors
/// When there is no room for the run itself. A store that fails is a part of the report.
pub fn run(plan: &Plan, command: String) -> Result<Report> {
    let mut report = Report {
        command,
        machine: Machine::here("none".to_owned()),
        seed: plan.seed,
        repetitions: plan.repetitions,
        key_bytes: KEY_BYTES,
        memory_limit: None,
        stores: Vec::new(),
        probes: Vec::new(),
        work: Vec::new(),
        needs: Vec::new(),
        failures: Vec::new(),
    };
    let progress = Progress::new(steps(plan));
    let mut limited_by = None;
    for place in &plan.places {
        let mut probes = Vec::new();
        for cell in cells(plan, place) {
            let mut measured = Measured::default();
            for repetition in 0..plan.repetitions {
                let mut run = Round {
                    plan,
                    cell: &cell,
                    repetition,
                    progress: &progress,
                    measured: &mut measured,
                };
                run.run().map_err(|source| BenchError::Io {
                    action: "measure in",
                    path: cell.path.clone(),
                    source,
                })?;
            }
            probes.append(&mut measured.probes);
            limited_by = limited_by.or(measured.limited_by.take());
            enter(&mut report, &cell, &plan.stores, measured);
        }
        report.probes.push(probe_row(&place.path, &probes));
    }
    let limit = plan.memory_limit.zip(limited_by);
    report.memory_limit = limit.map(|(bytes, by)| MemoryLimit { bytes, by });
    Ok(report)
}

fn cells(plan: &Plan, place: &Place) -> Vec<Cell> {
    let mut cells = Vec::new();
    for durability in place.durabilities.iter().copied() {
        for value_bytes in plan.values.iter().copied() {
            for threads in plan.threads.iter().copied() {
                cells.push(Cell {
                    path: place.path.clone(),
                    medium: place.medium.to_string(),
                    durability,
                    value_bytes,
                    threads,
                    records: plan.records_of(value_bytes, durability),
                });
            }
        }
    }
    cells
}

fn steps(plan: &Plan) -> usize {
    let durabilities: usize = plan.places.iter().map(|place| place.durabilities.len()).sum();
    let cells = durabilities * plan.values.len() * plan.threads.len();
    cells * plan.repetitions * plan.stores.len() * (Work::ALL.len() + OTHER_STEPS)
}

/// One repetition of what is compared.
struct Round<'a> {
    plan: &'a Plan,
    cell: &'a Cell,
    repetition: usize,
    progress: &'a Progress,
    measured: &'a mut Measured,
}

impl Round<'_> {
    fn run(&mut self) -> io::Result<()> {
        let scratch =
            tempfile::Builder::new().prefix("chimera-peers-").tempdir_in(&self.cell.path)?;
        let mut contestants = self.contestants(scratch.path());
        for (number, work) in Work::ALL.into_iter().enumerate() {
            let probed = probe(scratch.path(), self.plan.probe_bytes)?;
            self.measured.probes.push(probed);
            for contestant in &mut contestants {
                self.step(contestant.store(), &work.to_string());
                if work == Work::Scan && !contestant.store().is_ordered() {
                    continue;
                }
                let operations = self.plan.operations_of(work, self.cell.records);
                let stream = (self.repetition as u64) << 8 | number as u64;
                if let Some(ran) = contestant.run(work, operations, stream) {
                    self.measured.ran.push((contestant.store(), work, ran));
                }
            }
        }
        for contestant in &mut contestants {
            self.step(contestant.store(), "compaction");
            contestant.compact();
        }
        for mut contestant in contestants {
            self.step(contestant.store(), "opening");
            let operations = self.plan.operations_of(Work::Overwrite, self.cell.records);
            contestant.reopen(operations, (self.repetition as u64) << 8 | 0xff);
            self.conclude(contestant);
        }
        Ok(())
    }

    /// All stores in the order of this repetition.
    fn contestants(&mut self, scratch: &Path) -> Vec<Contestant> {
        let mut stores = self.plan.stores.clone();
        let first = self.repetition % stores.len();
        stores.rotate_left(first);
        let memory = self.plan.memory_limit.unwrap_or(Machine::here(String::new()).memory_bytes);
        let start = |store: StoreKind| {
            let job = Job {
                store,
                path: scratch.join(store.name()),
                durability: self.cell.durability,
                value_bytes: self.cell.value_bytes,
                records: self.cell.records,
                threads: self.cell.threads,
                cache_bytes: memory / CACHE_PART,
                seed: self.plan.seed,
                data_limit_bytes: None,
            };
            Contestant::start(job, self.plan.memory_limit)
        };
        stores.into_iter().map(start).collect()
    }

    fn step(&self, store: StoreKind, what: &str) {
        let Cell { path, durability, value_bytes, threads, .. } = self.cell;
        self.progress.step(&format!(
            "{}, {durability}, {value_bytes} B, {threads} threads, repetition {}: {store}, {what}",
            path.display(),
            self.repetition + 1
        ));
    }

    /// Keeps what is known of a store at the end.
    fn conclude(&mut self, contestant: Contestant) {
        let store = contestant.store();
        let (facts, limited_by) = (contestant.facts(), contestant.limited_by());
        let row = StoreRow { store, durability: self.cell.durability, facts };
        if !row.facts.configuration.is_empty() && !self.measured.stores.contains(&row) {
            self.measured.stores.push(row);
        }
        self.measured.limited_by = self.measured.limited_by.take().or(limited_by);
        let (needs, failed) = contestant.finish();
        self.measured.needs.push((store, needs));
        if let Some((during, message)) = failed {
            self.measured.failures.push(Failure {
                cell: self.cell.clone(),
                store,
                repetition: self.repetition + 1,
                during,
                message,
            });
        }
    }
}

/// Puts what was measured of a cell into the report.
fn enter(report: &mut Report, cell: &Cell, stores: &[StoreKind], measured: Measured) {
    for row in measured.stores {
        if !report.stores.contains(&row) {
            report.stores.push(row);
        }
    }
    report
        .stores
        .sort_by_key(|row| (stores.iter().position(|store| *store == row.store), row.durability));
    for work in Work::ALL {
        for store in stores.iter().copied() {
            let own = measured.ran.iter().filter(|ran| (ran.0, ran.1) == (store, work));
            let own: Vec<Ran> = own.map(|ran| ran.2).collect();
            if !own.is_empty() {
                report.work.push(work_row(cell.clone(), store, work, &own));
            }
        }
    }
    for store in stores.iter().copied() {
        let own = measured.needs.iter().filter(|needs| needs.0 == store);
        let own: Vec<Needs> = own.map(|needs| needs.1).collect();
        report.needs.push(needs_row(cell.clone(), store, &own));
    }
    report.failures.extend(measured.failures);
}

fn work_row(cell: Cell, store: StoreKind, work: Work, all: &[Ran]) -> WorkRow {
    let spread = |of: fn(&Ran) -> f64| Spread::of(&all.iter().map(of).collect::<Vec<_>>());
    WorkRow {
        cell,
        store,
        work,
        operations: all[0].operations,
        ops_per_s: spread(|ran| ran.operations as f64 * 1e9 / (ran.elapsed_ns as f64).max(1.0)),
        sync_ns: spread(|ran| ran.sync_ns as f64).median,
        p50_ns: spread(|ran| ran.p50_ns as f64).median,
        p99_ns: spread(|ran| ran.p99_ns as f64).median,
        p999_ns: spread(|ran| ran.p999_ns as f64).median,
        max_ns: spread(|ran| ran.max_ns as f64).highest,
        repetitions: all.len(),
    }
}

fn needs_row(cell: Cell, store: StoreKind, all: &[Needs]) -> NeedsRow {
    // Of repetitions that came to their end, where there are any.
    let ended: Vec<_> = all.iter().filter(|needs| needs.verified_records > 0).copied().collect();
    let taken = if ended.is_empty() { all } else { &ended };
    let median = |of: fn(&Needs) -> u64| {
        let numbers: Vec<_> = taken.iter().map(|needs| of(needs) as f64).collect();
        chimera_bench::measure::median(&numbers) as u64
    };
    let mut filled = all.first().map(|needs| needs.filled).unwrap_or_default();
    filled.anonymous_bytes = median(|needs| needs.filled.anonymous_bytes);
    filled.file_bytes = median(|needs| needs.filled.file_bytes);
    filled.shared_bytes = median(|needs| needs.filled.shared_bytes);
    let needs = Needs {
        live_bytes: median(|needs| needs.live_bytes),
        filled_disk_bytes: median(|needs| needs.filled_disk_bytes),
        halved_disk_bytes: median(|needs| needs.halved_disk_bytes),
        compacted_disk_bytes: median(|needs| needs.compacted_disk_bytes),
        compaction_ns: median(|needs| needs.compaction_ns),
        clean_open_ns: median(|needs| needs.clean_open_ns),
        clean_first_value_ns: median(|needs| needs.clean_first_value_ns),
        killed_open_ns: median(|needs| needs.killed_open_ns),
        killed_first_value_ns: median(|needs| needs.killed_first_value_ns),
        filled,
        peak: all.iter().fold(filled, |most, needs| most.most(needs.peak)),
        verified_records: median(|needs| needs.verified_records),
    };
    NeedsRow { cell, store, needs, repetitions: ended.len() }
}

fn probe_row(path: &Path, probes: &[Probed]) -> ProbeRow {
    let spread = |of: fn(&Probed) -> f64| Spread::of(&probes.iter().map(of).collect::<Vec<_>>());
    ProbeRow {
        path: path.to_owned(),
        probes: probes.len(),
        sequential_bytes_per_s: spread(|probed| probed.sequential_bytes_per_s),
        sync_ns: spread(|probed| probed.sync_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Durability;

    #[test]
    fn rows_have_medians_and_the_worst() {
        let cell = Cell {
            path: "x".into(),
            medium: "file".to_owned(),
            durability: Durability::Window,
            value_bytes: 100,
            threads: 1,
            records: 10,
        };
        let ran = |elapsed_ns, max_ns| Ran { operations: 10, elapsed_ns, max_ns, ..Ran::default() };
        let row = work_row(
            cell.clone(),
            StoreKind::Redb,
            Work::Get,
            &[ran(10, 3), ran(20, 9), ran(40, 5)],
        );
        assert!((row.ops_per_s.median - 5e8).abs() < 1.0, "{row:?}");
        assert!((row.max_ns - 9.0).abs() < 1e-9, "{row:?}");
        assert_eq!(row.repetitions, 3);
        let needs = |filled_disk_bytes, verified_records| Needs {
            filled_disk_bytes,
            verified_records,
            ..Needs::default()
        };
        let row = needs_row(cell, StoreKind::Redb, &[needs(1, 0), needs(5, 10), needs(7, 10)]);
        assert_eq!((row.needs.filled_disk_bytes, row.repetitions), (6, 2));
    }
}
