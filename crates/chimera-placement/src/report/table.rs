//! Results as text.

use std::fmt::Write;

use super::figures::mix_name;
use crate::study::{Overhead, Part, Row, Settings, Study};

/// Headings of the table, and whether a column is text.
pub(super) const COLUMNS: [(&str, bool); 22] = [
    ("load", true),
    ("config", true),
    ("placement", true),
    ("kops/s", false),
    ("spread %", false),
    ("of dram %", false),
    ("mean us", false),
    ("read p50", false),
    ("p99", false),
    ("p99.9", false),
    ("write p50", false),
    ("p99", false),
    ("p99.9", false),
    ("cache hits", false),
    ("misses", false),
    ("hit %", false),
    ("tier hits", false),
    ("mem hits", false),
    ("mem misses", false),
    ("DRAM MiB", false),
    ("PMem MiB", false),
    ("wait ns/op", false),
];

fn us(ns: u64) -> String {
    if ns == 0 { "-".to_owned() } else { format!("{:.1}", ns as f64 / 1000.0) }
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// The cells of a row; `dram` is the row of the same workload with everything in DRAM.
pub(super) fn cells(row: &Row, dram: Option<&Row>) -> Vec<String> {
    let of_dram = dram.map_or_else(
        || "-".to_owned(),
        |dram| format!("{:.1}", row.median_ops_per_s / dram.median_ops_per_s * 100.0),
    );
    let operations = (row.reads.count + row.writes.count) / row.ops_per_s.len().max(1) as u64;
    let oversubscribed = if row.is_oversubscribed { "*" } else { "" };
    vec![
        mix_name(row.key.mix).to_owned(),
        format!("{}{oversubscribed}", row.key.label()),
        row.key.placement.clone(),
        format!("{:.1}", row.median_ops_per_s / 1000.0),
        format!("{:.0}", row.spread * 100.0),
        of_dram,
        format!("{:.2}", row.mean_us),
        us(row.reads.p50_ns),
        us(row.reads.p99_ns),
        us(row.reads.p999_ns),
        us(row.writes.p50_ns),
        us(row.writes.p99_ns),
        us(row.writes.p999_ns),
        row.counts.block_cache_hits.to_string(),
        row.counts.block_cache_misses.to_string(),
        format!("{:.1}", row.hit_ratio() * 100.0),
        row.counts.tier_hits.to_string(),
        row.counts.memtable_hits.to_string(),
        row.counts.memtable_misses.to_string(),
        format!("{:.1}+{:.1}", mib(row.cache.dram), mib(row.memtable.dram)),
        format!("{:.1}+{:.1}", mib(row.cache.pmem), mib(row.memtable.pmem)),
        format!("{:.0}", row.charged.waited_ns as f64 / operations.max(1) as f64),
    ]
}

/// The row of the same workload with everything in DRAM.
pub(super) fn dram_of<'a>(study: &'a Study, row: &Row) -> Option<&'a Row> {
    study.row(row.key.part, &row.key.label(), row.key.mix, "dram")
}

/// Title of a part.
pub(super) fn part_title(part: Part) -> &'static str {
    match part {
        Part::Published => "The published workloads",
        Part::Shares => "Shares of each component in persistent memory",
        Part::Ycsb => "YCSB",
        Part::Hits => "Zipfian reads of which 50 to 90 % hit",
    }
}

/// What has to be said of all figures.
pub(super) fn notes(settings: &Settings) -> Vec<String> {
    let mut notes = vec![format!(
        "{}, {} cores, Linux {}; seed {}, {} repetitions by turns; sizes divided by {}: {} records of 1024 B, {} operations of each \
         thread, block cache {} KiB ({:?}; {} KiB for hits), memtables {} KiB",
        settings.cpu,
        settings.cores,
        settings.kernel,
        settings.seed,
        settings.repetitions,
        settings.scale_down,
        settings.records,
        settings.operations,
        settings.cache_bytes >> 10,
        settings.cache_kind,
        settings.hits_cache_bytes >> 10,
        settings.write_buffer_bytes >> 10,
    )];
    notes.push(if settings.is_modelled {
        let cache = match settings.processor_cache_bytes {
            0 => "no processor cache in front, so every one of these reads goes to the media".to_owned(),
            bytes => format!("a modelled processor cache of {bytes} bytes in front"),
        };
        format!(
            "MODELLED: profile {}. A hit of a block in persistent memory reads the whole block once, a node of a memtable there is \
             read once for each comparison, values when they are returned; {cache}. Writes wait for nothing.",
            settings.profile
        )
    } else if settings.is_dax {
        "Persistent memory is a DAX file system: nothing is injected.".to_owned()
    } else {
        "Persistent memory is a file without DAX, and nothing is injected: it costs what that file costs.".to_owned()
    });
    if settings.is_direct {
        notes.push("Databases are read and written past the system's page cache: a miss is a read of the disk.".to_owned());
    }
    notes.push(format!(
        "* more threads than the {} cores: oversubscribed, no scaling claim",
        settings.cores
    ));
    notes.push(
        "MiB: block cache + memtables at the end of a run. \"of dram\" compares throughput."
            .to_owned(),
    );
    notes
}

/// The study as text.
pub fn text(study: &Study) -> String {
    let mut out = String::new();
    for note in notes(&study.settings) {
        let _ = writeln!(out, "{note}");
    }
    for part in [Part::Published, Part::Shares, Part::Ycsb, Part::Hits] {
        let rows: Vec<&Row> = study.rows.iter().filter(|row| row.key.part == part).collect();
        if rows.is_empty() {
            continue;
        }
        let _ = writeln!(out, "\n{}", part_title(part));
        let mut lines = vec![COLUMNS.map(|(name, _)| name.to_owned()).to_vec()];
        lines.extend(rows.iter().map(|row| cells(row, dram_of(study, row))));
        write_aligned(&mut out, &lines);
    }
    if study.findings.iter().any(|finding| finding.measured.is_some()) {
        let _ = writeln!(out, "\nPublished, and measured here");
        for finding in &study.findings {
            let measured =
                finding.measured.map_or("not run".to_owned(), |value| format!("{value:.2}"));
            let _ = writeln!(
                out,
                "  {} ({}): published {} {}, here {measured}. {}",
                finding.what, finding.figure, finding.published, finding.unit, finding.reading
            );
        }
    }
    let _ = writeln!(out, "\nReadings of the paper");
    for reading in &study.readings {
        let _ = writeln!(out, "  - {reading}");
    }
    out
}

fn write_aligned(out: &mut String, lines: &[Vec<String>]) {
    let width = |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
    for line in lines {
        for (at, cell) in line.iter().enumerate() {
            let width = widths[at];
            let _ = if COLUMNS[at].1 {
                write!(out, "{cell:<width$}  ")
            } else {
                write!(out, "{cell:>width$}  ")
            };
        }
        let trimmed = out.trim_end().len();
        out.truncate(trimmed);
        out.push('\n');
    }
}

/// The overhead as text.
pub fn overhead_text(overhead: &Overhead) -> String {
    let mut out = format!(
        "Allocators of the block cache beside RocksDB's own, nothing injected, {} repetitions by turns\n",
        overhead.repetitions
    );
    for row in &overhead.rows {
        let _ = writeln!(
            out,
            "  {}, {:?}: {:+.2} % slower in the median, quartiles {:+.2} and {:+.2} %; {:.1} % of lookups hit",
            mix_name(row.mix),
            row.contender,
            row.slower_percent,
            row.quartiles_percent[0],
            row.quartiles_percent[1],
            row.hit_ratio * 100.0
        );
    }
    out
}
