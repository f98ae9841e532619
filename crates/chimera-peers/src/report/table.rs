//! A report as text for people.

use std::fmt::{Result, Write};

use chimera_bench::report::{Table, number};

use crate::job::StoreKind;
use crate::protocol::Work;
use crate::results::{Cell, Memory, NeedsRow, Report, WorkRow};

/// The whole report as text.
pub fn text(report: &Report) -> String {
    let mut text = String::new();
    // A string takes everything.
    let _ = write_all(&mut text, report);
    text
}

fn write_all(out: &mut String, report: &Report) -> Result {
    header(out, report)?;
    let mut cells: Vec<&Cell> = Vec::new();
    for row in &report.needs {
        if !cells.contains(&&row.cell) {
            cells.push(&row.cell);
        }
    }
    for cell in cells {
        writeln!(
            out,
            "\n== {} on {}, durability {}, values of {} B, {} threads, {} records",
            cell.path.display(),
            cell.medium,
            cell.durability,
            number(cell.value_bytes as u64),
            cell.threads,
            number(cell.records)
        )?;
        work(out, report, cell)?;
        latencies(out, report, cell)?;
        needs(out, report, cell)?;
    }
    guarantees(out, report)?;
    configurations(out, report)?;
    failures(out, report)
}

fn header(out: &mut String, report: &Report) -> Result {
    let machine = &report.machine;
    writeln!(
        out,
        "{}\n{}, {} cores, {:.1} GiB, Linux {}; keys of {} B, seed {}, {} repetitions",
        report.command,
        machine.cpu,
        machine.cores,
        machine.memory_bytes as f64 / f64::from(1 << 30),
        machine.kernel,
        report.key_bytes,
        report.seed,
        report.repetitions
    )?;
    if let Some(limit) = &report.memory_limit {
        writeln!(out, "each process limited to {} B by {}", number(limit.bytes), limit.by)?;
    }
    writeln!(out, "probes of the disk between turns: median (lowest to highest)")?;
    for row in &report.probes {
        let (speed, sync) = (row.sequential_bytes_per_s, row.sync_ns);
        writeln!(
            out,
            "  {}: written in order and synced {:.0} ({:.0} to {:.0}) MB/s; 4 KiB and fdatasync {:.3} ({:.3} to {:.3}) ms; \
             {} probes",
            row.path.display(),
            speed.median / 1e6,
            speed.lowest / 1e6,
            speed.highest / 1e6,
            sync.median / 1e6,
            sync.lowest / 1e6,
            sync.highest / 1e6,
            row.probes
        )?;
    }
    Ok(())
}

/// The stores of a cell, in their order.
fn stores(report: &Report, cell: &Cell) -> Vec<StoreKind> {
    report.needs.iter().filter(|row| row.cell == *cell).map(|row| row.store).collect()
}

/// A table with a column for each store, and a row for each kind of work.
fn by_work(
    out: &mut String,
    report: &Report,
    cell: &Cell,
    name: &str,
    show: impl Fn(&WorkRow) -> String,
) -> Result {
    let stores = stores(report, cell);
    let mut header = vec![name];
    header.extend(stores.iter().map(|store| store.name()));
    let mut table = Table::new(&header);
    for work in Work::ALL {
        let mut cells = vec![work.to_string()];
        cells.extend(stores.iter().map(|store| {
            let is_it =
                |row: &&WorkRow| row.cell == *cell && row.store == *store && row.work == work;
            report.work.iter().find(is_it).map_or_else(|| "-".to_owned(), &show)
        }));
        table.row(cells);
    }
    table.write(out)
}

fn work(out: &mut String, report: &Report, cell: &Cell) -> Result {
    by_work(out, report, cell, "k ops/s (spread)", |row| {
        let rate = row.ops_per_s;
        format!("{} ({:.0} %)", short(rate.median / 1e3), rate.relative() * 100.0)
    })
}

fn latencies(out: &mut String, report: &Report, cell: &Cell) -> Result {
    by_work(out, report, cell, "us p50/p99/p99.9/max", |row| {
        [row.p50_ns, row.p99_ns, row.p999_ns, row.max_ns].map(|ns| short(ns / 1e3)).join("/")
    })
}

/// A number with about three digits.
fn short(number: f64) -> String {
    match number {
        number if number >= 100.0 => format!("{number:.0}"),
        number if number >= 10.0 => format!("{number:.1}"),
        number => format!("{number:.2}"),
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / f64::from(1 << 20))
}

fn memory(of: &Memory) -> String {
    let mut text = format!("{}+{}", mebibytes(of.anonymous_bytes), mebibytes(of.file_bytes));
    if of.shared_bytes > 0 {
        text = format!("{text}+{}", mebibytes(of.shared_bytes));
    }
    text
}

/// Names of what a store needs, and how it is shown.
type Shown = (&'static str, fn(&NeedsRow) -> String);

const NEEDS: [Shown; 10] = [
    ("MiB of keys and values", |row| mebibytes(row.needs.live_bytes)),
    ("MiB on disk, filled", |row| mebibytes(row.needs.filled_disk_bytes)),
    ("MiB on disk, half deleted", |row| mebibytes(row.needs.halved_disk_bytes)),
    ("MiB on disk, compacted", |row| mebibytes(row.needs.compacted_disk_bytes)),
    ("s of the compaction", |row| format!("{:.3}", row.needs.compaction_ns as f64 / 1e9)),
    ("ms to open/first value, closed", |row| {
        opening(row.needs.clean_open_ns, row.needs.clean_first_value_ns)
    }),
    ("ms to open/first value, killed", |row| {
        opening(row.needs.killed_open_ns, row.needs.killed_first_value_ns)
    }),
    ("MiB anonymous+file[+tmpfs], filled", |row| memory(&row.needs.filled)),
    ("MiB anonymous+file[+tmpfs], peak", |row| memory(&row.needs.peak)),
    ("records verified after the kill", |row| number(row.needs.verified_records)),
];

fn opening(open_ns: u64, first_value_ns: u64) -> String {
    [open_ns, first_value_ns].map(|ns| short(ns as f64 / 1e6)).join("/")
}

fn needs(out: &mut String, report: &Report, cell: &Cell) -> Result {
    let rows: Vec<_> = report.needs.iter().filter(|row| row.cell == *cell).collect();
    let mut header = vec!["needs"];
    header.extend(rows.iter().map(|row| row.store.name()));
    let mut table = Table::new(&header);
    for (name, show) in NEEDS {
        let cells = std::iter::once(name.to_owned());
        table.row(cells.chain(rows.iter().map(|row| show(row))).collect());
    }
    table.write(out)
}

fn guarantees(out: &mut String, report: &Report) -> Result {
    writeln!(out, "\n== What is there of acknowledged writes")?;
    let mut seen = Vec::new();
    for row in &report.stores {
        let Some(guarantee) = &row.facts.guarantee else { continue };
        let key = (row.store, row.durability);
        if seen.contains(&key) {
            continue;
        }
        seen.push(key);
        writeln!(
            out,
            "{}, {}: after a kill {}; after a power loss {}",
            row.store, row.durability, guarantee.after_kill, guarantee.after_power_loss
        )?;
    }
    Ok(())
}

fn configurations(out: &mut String, report: &Report) -> Result {
    writeln!(out, "\n== Configurations")?;
    for row in &report.stores {
        let facts = &row.facts;
        writeln!(
            out,
            "{} {}, {}; a batch is {}",
            row.store, facts.version, row.durability, facts.batch
        )?;
        facts.configuration.iter().try_for_each(|line| writeln!(out, "  {line}"))?;
    }
    Ok(())
}

fn failures(out: &mut String, report: &Report) -> Result {
    if report.failures.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n== FAILED")?;
    for failure in &report.failures {
        writeln!(
            out,
            "{}, {} on {}, durability {}, values of {} B, {} threads, repetition {}: {}: {}",
            failure.store,
            failure.cell.path.display(),
            failure.cell.medium,
            failure.cell.durability,
            failure.cell.value_bytes,
            failure.cell.threads,
            failure.repetition,
            failure.during,
            failure.message
        )?;
    }
    Ok(())
}
