//! Figures 5 to 8 of the paper as measured here, and those of the other parts.

use super::chart::Chart;
use crate::study::{Latency, Part, Row, Study};
use crate::workload::Mix;

/// The configuration of the paper's Figures 7 and 8, by their captions.
const PERCENTILES_OF: &str = "K16_T2";

/// Names in the order in which they come first.
fn distinct<'a>(names: impl Iterator<Item = String> + 'a) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    names.for_each(|name| {
        if !found.contains(&name) {
            found.push(name);
        }
    });
    found
}

fn rows_of(study: &Study, part: Part) -> Vec<&Row> {
    study.rows.iter().filter(|row| row.key.part == part).collect()
}

fn title(study: &Study, text: &str) -> String {
    let modelled = if study.settings.is_modelled { ", modelled" } else { "" };
    format!("{text}{modelled}")
}

/// A group for each configuration, a bar for each placement.
fn by_configuration(
    rows: &[&Row],
    group_of: impl Fn(&Row) -> String,
    value: impl Fn(&Row) -> f64,
) -> (Vec<String>, Vec<(String, Vec<f64>)>) {
    let series = distinct(rows.iter().map(|row| row.key.placement.clone()));
    let groups = distinct(rows.iter().map(|row| group_of(row)));
    let values = |group: &String| {
        let of = |name: &String| {
            let mut all = rows.iter();
            let found = all.find(|row| group_of(row) == *group && row.key.placement == *name);
            found.map_or(0.0, |row| value(row))
        };
        series.iter().map(of).collect()
    };
    let groups = groups.into_iter().map(|group| (group.clone(), values(&group))).collect();
    (series, groups)
}

fn bars(
    study: &Study,
    part: Part,
    text: &str,
    unit: &'static str,
    value: impl Fn(&Row) -> f64,
) -> Chart {
    let rows = rows_of(study, part);
    let group_of = |row: &Row| match part {
        Part::Published => row.key.label(),
        _ => mix_name(row.key.mix).to_owned(),
    };
    let (series, groups) = by_configuration(&rows, group_of, value);
    Chart { title: title(study, text), unit, series, groups, is_logarithmic: false }
}

/// Percentiles as groups, placements as bars.
fn percentiles(study: &Study, part: Part, text: &str, latency: impl Fn(&Row) -> Latency) -> Chart {
    let wanted = |row: &&Row| part != Part::Published || row.key.label() == PERCENTILES_OF;
    let rows: Vec<&Row> = rows_of(study, part).into_iter().filter(wanted).collect();
    let series = rows.iter().map(|row| row.key.placement.clone()).collect();
    let names = Latency::default().percentiles().map(|(name, _)| name);
    let group = |(at, name): (usize, &&str)| {
        let value = |row: &&Row| latency(row).percentiles()[at].1 as f64 / 1000.0;
        ((*name).to_owned(), rows.iter().map(value).collect::<Vec<f64>>())
    };
    let all = names.iter().enumerate().map(group);
    let groups = all.filter(|(_, values)| values.iter().any(|value| *value > 0.0)).collect();
    Chart { title: title(study, text), unit: "us", series, groups, is_logarithmic: true }
}

/// Hits and misses of block cache and memtables at most threads and 16-byte keys.
fn hits_and_misses(study: &Study) -> Chart {
    let rows: Vec<&Row> = rows_of(study, Part::Published);
    let most = rows.iter().map(|row| row.key.threads).max().unwrap_or(0);
    let chosen = |row: &&&Row| row.key.threads == most && row.key.key_bytes == 16;
    let rows: Vec<&Row> = rows.iter().filter(chosen).copied().collect();
    let names = ["block cache hits", "block cache misses", "memtable hits", "memtable misses"];
    let values = |row: &Row| {
        let counts = &row.counts;
        [
            counts.block_cache_hits,
            counts.block_cache_misses,
            counts.memtable_hits,
            counts.memtable_misses,
        ]
    };
    let group = |(at, name): (usize, &&str)| {
        ((*name).to_owned(), rows.iter().map(|row| values(row)[at] as f64).collect())
    };
    Chart {
        title: format!("Figure 7b: hits and misses, K16_T{most}"),
        unit: "lookups",
        series: rows.iter().map(|row| row.key.placement.clone()).collect(),
        groups: names.iter().enumerate().map(group).collect(),
        is_logarithmic: false,
    }
}

pub(super) fn mix_name(mix: Mix) -> &'static str {
    match mix {
        Mix::ReadRandomWriteRandom => "readrandomwriterandom",
        Mix::YcsbA => "YCSB A",
        Mix::YcsbB => "YCSB B",
        Mix::YcsbC => "YCSB C",
        Mix::YcsbD => "YCSB D",
    }
}

/// The figures of a part.
pub(super) fn figures(study: &Study, part: Part) -> Vec<Chart> {
    let throughput = |row: &Row| row.median_ops_per_s;
    match part {
        Part::Published => vec![
            bars(study, part, "Figure 5: throughput", "ops/s", throughput),
            bars(study, part, "Figure 6: mean latency", "us", |row| row.mean_us),
            percentiles(study, part, "Figure 7: latency of writes, K16_T2", |row| row.writes),
            percentiles(study, part, "Figure 8: latency of reads, K16_T2", |row| row.reads),
            hits_and_misses(study),
        ],
        Part::Shares => vec![
            bars(study, part, "Throughput by shares", "ops/s", throughput),
            percentiles(study, part, "Latency of writes by shares", |row| row.writes),
            percentiles(study, part, "Latency of reads by shares", |row| row.reads),
        ],
        Part::Ycsb => vec![bars(study, part, "Throughput", "ops/s", throughput)],
        Part::Hits => vec![
            bars(study, part, "Throughput", "ops/s", throughput),
            percentiles(study, part, "Latency of reads", |row| row.reads),
        ],
    }
}
