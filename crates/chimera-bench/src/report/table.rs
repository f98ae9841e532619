//! A [`Report`] as text for people.

use std::fmt::Write;

use super::columns::{Table, number};
use super::json::Report;
use super::{beside_scans, chameleon};
use crate::published::paper;
use crate::results::rows::{Counters, Row, StoreRow};

/// The whole report as text.
pub(crate) fn text(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_all(&mut text, report);
    text
}

fn write_all(out: &mut String, report: &Report) -> std::fmt::Result {
    header(out, report)?;
    if !report.rows.is_empty() {
        timings(out, report)?;
        counters(out, report)?;
    }
    updates(out, report)?;
    ratios(out, report)?;
    growth(out, report)?;
    reclamation(out, report)?;
    memory(out, report)?;
    adaption(out, report)?;
    report.beside_scans.iter().try_for_each(|it| beside_scans::write(out, it))?;
    report.chameleon.iter().try_for_each(|it| chameleon::write(out, it))?;
    if report.command != "memory" {
        writeln!(out)?;
        report.stores.iter().try_for_each(|store| needs(out, report, store))?;
    }
    recovery(out, report)?;
    if report.verified_records.is_some() {
        writeln!(out)?;
        report.stores.iter().try_for_each(|store| verified(out, report, store))?;
    }
    Ok(())
}

/// What the records of a store need.
fn needs(out: &mut String, report: &Report, store: &StoreRow) -> std::fmt::Result {
    if compares(report) {
        write!(out, "{}: ", store.facts.engine)?;
    }
    if store.dram_bytes_per_key > 0.0 {
        write!(out, "DRAM {:.1} B per key", store.dram_bytes_per_key)?;
    } else {
        write!(out, "DRAM not known")?;
    }
    if store.space_amplification > 0.0 {
        write!(out, ", space amplification {:.3}", store.space_amplification)?;
    }
    writeln!(out)
}

/// What was verified of a store.
fn verified(out: &mut String, report: &Report, store: &StoreRow) -> std::fmt::Result {
    let Some(records) = store.verified_records else { return Ok(()) };
    if compares(report) {
        write!(out, "{}: ", store.facts.engine)?;
    }
    let is_reopened = report.recovery.iter().any(|row| row.engine == store.facts.engine);
    let how = if is_reopened { "after reopening the store: " } else { "" };
    writeln!(out, "{how}{} records verified, none wrong", number(records))
}

/// Whether several engines were measured.
fn compares(report: &Report) -> bool {
    report.stores.len() > 1
}

/// The names of all engines.
pub(super) fn engines(report: &Report) -> String {
    let names: Vec<_> = report.stores.iter().map(|store| store.facts.engine.as_str()).collect();
    names.join(", ")
}

fn header(out: &mut String, report: &Report) -> std::fmt::Result {
    let machine = &report.machine;
    write!(
        out,
        "{}: engine {}, layout {}, {} records of {}+{} B{}, ",
        report.command,
        engines(report),
        report.layout,
        number(report.records),
        report.key_bytes,
        report.value_bytes,
        match report.sizes.as_str() {
            "any" => " in a store for any size",
            "mixed" => " on average in a store for any size",
            _ => "",
        },
    )?;
    if !report.rows.is_empty() {
        write!(out, "{} operations, ", number(report.operations))?;
    }
    writeln!(out, "seed {}", report.seed)?;
    writeln!(
        out,
        "{}, {} cores, {:.1} GiB, Linux {}, flushing by {}",
        machine.cpu,
        machine.cores,
        machine.memory_bytes as f64 / f64::from(1 << 30),
        machine.kernel,
        machine.flush_instruction
    )?;
    for store in &report.stores {
        if compares(report) {
            write!(out, "{}: ", store.facts.engine)?;
        }
        let pages = if store.facts.huge_pages { ", huge pages" } else { "" };
        let (medium, durability) = (&store.facts.medium, &store.facts.durability);
        writeln!(out, "medium {medium}, durability {durability}{pages}")?;
    }
    if report.modelled {
        writeln!(out, "timings are MODELLED: latency injected by profile {}", report.profile)?;
    }
    if report.oversubscribed {
        writeln!(out, "OVERSUBSCRIBED: more threads than cores")?;
    }
    Ok(())
}

fn timings(out: &mut String, report: &Report) -> std::fmt::Result {
    let mut table = Table::of_engines(
        compares(report),
        &["operation", "threads", "M ops/s", "spread", "mean ns", "p50", "p99", "p99.9", "p99.99"],
    );
    for row in &report.rows {
        let latency = &row.latency_ns;
        table.row_of(
            &row.engine,
            vec![
                row.operation.clone(),
                row.threads.to_string(),
                format!("{:.3}", row.ops_per_second / 1e6),
                percent(row.spread),
                format!("{:.0}", latency.mean),
                latency.p50.to_string(),
                latency.p99.to_string(),
                latency.p999.to_string(),
                latency.p9999.to_string(),
            ],
        );
    }
    table.write(out)
}

fn counters(out: &mut String, report: &Report) -> std::fmt::Result {
    let mut table = Table::of_engines(
        compares(report),
        &[
            "per operation",
            "fences",
            "lines",
            "again",
            "read",
            "media writes",
            "reads",
            "DIMM spread",
            "times",
        ],
    );
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for Row { engine, operation, counters, dimm_spread, .. } in &report.rows {
        let Some(it) = counters else { continue };
        if seen.contains(&(engine, operation)) {
            continue;
        }
        seen.push((engine, operation));
        let dimms = dimm_spread.map_or_else(String::new, |spread| format!("{spread:.3}"));
        table.row_of(engine, counted(operation, it, [dimms, String::new()]));
    }
    for row in &report.counters_apart {
        let name = format!("{} in {}", row.operation, row.during);
        let times = format!("{:.4}", row.per_operation);
        table.row_of(&row.engine, counted(&name, &row.counters, [String::new(), times]));
    }
    if table.is_empty() { Ok(()) } else { table.write(out) }
}

fn counted(name: &str, it: &Counters, last: [String; 2]) -> Vec<String> {
    let mut cells = vec![
        name.to_owned(),
        format!("{:.3}", it.fences),
        format!("{:.3}", it.lines_flushed),
        format!("{:.3}", it.lines_reflushed),
        format!("{:.3}", it.lines_read),
        format!("{:.3}", it.media_writes),
        format!("{:.3}", it.media_reads),
    ];
    cells.extend(last);
    cells
}

fn updates(out: &mut String, report: &Report) -> std::fmt::Result {
    if report.updates.is_empty() {
        return Ok(());
    }
    let mut table = Table::of_engines(
        compares(report),
        &["asynchronous", "threads", "S ns", "T ns", "T/(S+T)", "min(S,T)/(S+T)", "saved"],
    );
    for row in &report.updates {
        table.row_of(
            &row.engine,
            vec![
                row.operation.clone(),
                row.threads.to_string(),
                format!("{:.0}", row.serving_ns),
                format!("{:.0}", row.tree_ns),
                percent(row.saving_burst),
                percent(row.saving_sustained),
                percent(row.saved),
            ],
        );
    }
    table.write(out)?;
    let of_put = |which: &str| paper("hikv").get(&format!("figure10.asynchronous_{which}_percent"));
    let (least, most) = (of_put("min"), of_put("max"));
    let (figure, least, most) = (least.figure, least.text, most.text);
    writeln!(out, "\npublished (HiKV, {figure}): {least} to {most} % saved of a put")
}

fn ratios(out: &mut String, report: &Report) -> std::fmt::Result {
    let Some(ratios) = &report.ratios else { return Ok(()) };
    let mut table =
        Table::new(&["engine / floor", "shape", "threads", "ratio", "goal", "lowest", "highest"]);
    for row in ratios {
        table.row(vec![
            row.operation.clone(),
            row.shape.clone(),
            row.threads.to_string(),
            format!("{:.2}", row.ratio),
            format!("{:.2}", row.goal),
            format!("{:.2}", row.ratio_min),
            format!("{:.2}", row.ratio_max),
        ]);
    }
    table.write(out)
}

fn growth(out: &mut String, report: &Report) -> std::fmt::Result {
    let Some(growth) = &report.growth else { return Ok(()) };
    writeln!(
        out,
        "\ngrowing over populated: time {:.2}, p50 {:.2}, p99 {:.2}\n\
         background: {:.0} ns per record, {:.0} % of a core",
        growth.time_ratio,
        growth.p50_ratio,
        growth.p99_ratio,
        growth.background_ns_per_record,
        growth.background_core_share * 100.0
    )
}

fn reclamation(out: &mut String, report: &Report) -> std::fmt::Result {
    let Some(reclamation) = &report.reclamation else { return Ok(()) };
    let mut table =
        Table::new(&["beside reclamation", "threads", "ops/s", "lowest", "highest", "moved MiB/s"]);
    let percent = |part: f64| format!("{:.1} %", part * 100.0);
    for row in &reclamation.rows {
        table.row(vec![
            row.operation.clone(),
            row.threads.to_string(),
            percent(row.throughput_ratio),
            percent(row.throughput_ratio_min),
            percent(row.throughput_ratio_max),
            format!("{:.1}", row.moved_bytes_per_second / f64::from(1 << 20)),
        ]);
    }
    writeln!(out)?;
    table.write(out)?;
    writeln!(
        out,
        "\nspace over live keys and values: {:.3} loaded, {:.3} with a third deleted, {:.3} compacted\n\
         Db::compact: {:.2} M records/s",
        reclamation.loaded_amplification,
        reclamation.thinned_amplification,
        reclamation.compacted_amplification,
        reclamation.compact_records_per_second / 1e6
    )
}

fn adaption(out: &mut String, report: &Report) -> std::fmt::Result {
    let Some(adaption) = &report.adaption else { return Ok(()) };
    let mut table = Table::new(&[
        "gets per insert",
        "serving/applying",
        "M ops/s",
        "lowest",
        "highest",
        "serving",
        "decisions",
    ]);
    let millions = |rate: f64| format!("{:.3}", rate / 1e6);
    for row in &adaption.rows {
        table.row(vec![
            row.gets_per_insert.to_string(),
            row.division.clone(),
            millions(row.ops_per_second),
            millions(row.ops_per_second_min),
            millions(row.ops_per_second_max),
            format!("{:.1}", row.serving_threads),
            row.decisions.to_string(),
        ]);
    }
    table.write(out)?;
    writeln!(out, "\na pool of {} threads on {} cores", adaption.threads, adaption.cores)
}

fn memory(out: &mut String, report: &Report) -> std::fmt::Result {
    let Some(memory) = &report.memory else { return Ok(()) };
    let mut table = Table::new(&["records", "DRAM B/key", "resident B/key"]);
    for sample in &memory.samples {
        table.row(vec![
            number(sample.records),
            format!("{:.2}", sample.dram_bytes_per_key),
            sample.resident_bytes_per_key.map_or_else(String::new, |bytes| format!("{bytes:.2}")),
        ]);
    }
    table.write(out)?;
    writeln!(
        out,
        "\nDRAM per key: mean {:.2} B, max {:.2} B\nempty store: {} KiB resident, {} KiB by its own \
         account",
        memory.bytes_per_key_mean,
        memory.bytes_per_key_max,
        number(memory.empty_resident_bytes / 1024),
        number(memory.empty_dram_bytes / 1024),
    )
}

fn recovery(out: &mut String, report: &Report) -> std::fmt::Result {
    if report.recovery.is_empty() {
        return Ok(());
    }
    let mut table = Table::of_engines(
        compares(report),
        &["opening", "threads", "records", "ms", "spread", "M records/s"],
    );
    for row in &report.recovery {
        table.row_of(
            &row.engine,
            vec![
                row.made.clone(),
                row.threads.to_string(),
                number(row.records),
                format!("{:.1}", row.duration_ns / 1e6),
                percent(row.spread),
                format!("{:.2}", row.records_per_second / 1e6),
            ],
        );
    }
    table.write(out)
}

fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}
