//! The study as tables of text.

use std::fmt::Write;

use chimera_primitives::layout::table4;
use chimera_primitives::operation::Experiment;

use crate::report::columns::Table;
use crate::results::study::{Study, StudyRow};

/// Entries and memory of the paper's Table 4, as its rows: what, and a value for each node size.
pub(crate) fn entries() -> Vec<(&'static str, Vec<String>)> {
    let sizes = table4::NODE_BYTES;
    let searched = [8, 18, 37, 79, 160];
    let row = |values: [u32; 5]| values.iter().map(u32::to_string).collect();
    let gib = |entries: [u32; 5]| {
        sizes
            .iter()
            .zip(entries)
            .map(|(size, entries)| format!("{:.2}", table4::chain_gib(*size, entries)))
            .collect()
    };
    let overhead = |entries: [u32; 5]| {
        let of = |(size, entries): (&u32, u32)| {
            format!("+{:.0} %", table4::overhead_percent(table4::base(*size), entries).round())
        };
        sizes.iter().zip(entries).map(of).collect()
    };
    let (base, aligned) = (sizes.map(table4::base), sizes.map(table4::aligned));
    vec![
        ("entries, base", row(base)),
        ("GiB for 50 M, base", gib(base)),
        ("entries, aligned", row(aligned)),
        ("GiB for 50 M, aligned", gib(aligned)),
        ("entries, with search structure", row(searched)),
        ("entries, by the bits of Figure 2", row(sizes.map(table4::by_figure_2))),
        ("GiB for 50 M, with search structure", gib(searched)),
        ("memory over base, aligned", overhead(aligned)),
        ("memory over base, with search structure", overhead(searched)),
    ]
}

/// All of it as text.
pub(crate) fn text(study: &Study) -> String {
    let mut out = String::new();
    let done = write(&mut out, study);
    debug_assert!(done.is_ok(), "a string takes everything");
    out
}

/// What a report says of a run in one line.
pub(super) fn summary(study: &Study) -> String {
    let modelled = if study.modelled { " (modelled)" } else { "" };
    let cache = match (study.cache_bytes, study.exceeds_cache) {
        (0, _) => "the last-level cache is unknown".to_owned(),
        (bytes, true) => format!("twice the last-level cache of {} MiB at least", bytes >> 20),
        (bytes, false) => format!("LESS than twice the last-level cache of {} MiB", bytes >> 20),
    };
    let load = if study.modelled {
        format!(
            "; {:.0} ns of each load, cached or not, are taken by the model of the device, and are in all times",
            study.load_ns
        )
    } else {
        String::new()
    };
    format!(
        "{}, {} cores; medium {}; flushes by {}; profile {}{modelled}; seed {}; median of {} batches of at most {} \
         operations; arrays of {} MiB for each contender: {cache}{load}",
        study.machine.cpu,
        study.machine.cores,
        study.medium,
        study.machine.flush_instruction,
        study.profile,
        study.seed,
        study.repetitions,
        study.operations,
        study.array_bytes >> 20
    )
}

/// The columns of a row.
pub(super) const COLUMNS: [&str; 13] = [
    "size",
    "position",
    "contender",
    "uncached ns",
    "spread",
    "cached ns",
    "spread",
    "bytes",
    "flushed",
    "fences",
    "lines read",
    "media reads",
    "media writes",
];

/// The values of a row.
pub(super) fn cells(row: &StudyRow) -> Vec<String> {
    let number =
        |value: f64| if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.1}") };
    vec![
        row.size.to_string(),
        row.position.clone(),
        row.contender.clone(),
        number(row.uncached.median_ns),
        format!("{:.0} %", row.uncached.spread * 100.0),
        number(row.cached.median_ns),
        format!("{:.0} %", row.cached.spread * 100.0),
        number(row.counters.bytes_modified),
        number(row.counters.lines_flushed),
        number(row.counters.fences),
        number(row.counters.lines_read),
        number(row.counters.media_reads),
        number(row.counters.media_writes),
    ]
}

fn write(out: &mut String, study: &Study) -> std::fmt::Result {
    writeln!(out, "primitives: {}", summary(study))?;
    writeln!(out, "\nTable 4: keys of 8 and values of 16 bytes")?;
    let mut table = Table::new(&["", "256 B", "512 B", "1 KiB", "2 KiB", "4 KiB"]);
    for (what, values) in entries() {
        table.row(std::iter::once(what.to_owned()).chain(values).collect());
    }
    table.write(out)?;
    for experiment in Experiment::ALL {
        let name = experiment.to_string();
        let rows: Vec<_> = study.rows.iter().filter(|row| row.experiment == name).collect();
        if rows.is_empty() {
            continue;
        }
        writeln!(out, "\n{name}: {}, per {}", experiment.title(), experiment.unit())?;
        let mut table = Table::new(&COLUMNS);
        for row in rows {
            table.row(cells(row));
        }
        table.write(out)?;
    }
    if !study.findings.is_empty() {
        writeln!(out, "\nwhat the paper says, and what came out")?;
        let mut table =
            Table::new(&["where", "what", "published", "counts as that", "measured", "holds"]);
        for finding in &study.findings {
            table.row(vec![
                finding.source.clone(),
                finding.what.clone(),
                finding.published.clone(),
                finding.bounds(),
                format!("{:.1} {}", finding.measured, finding.unit),
                if finding.holds { "yes" } else { "NO" }.to_owned(),
            ]);
        }
        table.write(out)?;
    }
    writeln!(out, "\n{:.0} seconds", study.seconds)
}
