//! Published values beside ours.

use super::result::{Finding, Part, Row, Settings};
use super::statistics::median;
use crate::published;

/// Which reading was taken where the paper contradicts itself or leaves something open.
pub(super) const READINGS: [&str; 8] = [
    "The block cache in PMem: \"15 %\" latency in the abstract and in Section 7 stands beside \"about a 1% lower throughput\" in \
     Section 5. Both cannot be of the same runs, since each thread waits for each operation. Both are shown beside our means over \
     the eight configurations; neither is a target.",
    "Two figures are numbered 7. The one of write latencies is Figure 7 here, the one of hits and misses Figure 7b.",
    "The captions of Figures 7 and 8 say K16_T2, the text says K8_T2. K16_T2 is drawn; the table has both.",
    "Listings 3 and 4 map files in a temporary directory, of 32 MiB for the memtable, and the text says that a DAX file system is \
     needed. Read as a sketch of the code: here each placement gets as much persistent memory as it needs.",
    "Listing 4 moves the vector of pointers to an arena's blocks, and none of these blocks. Here the nodes and the data of a memtable \
     lie in persistent memory.",
    "\"Tens of MBs\" of freed DRAM stand beside db_bench's default block cache of 8 MB, and no other size is given. The cache has 8 MiB \
     here, and freed bytes are those of each placement.",
    "Sizes and counts that are not given are db_bench's defaults: 1,000,000 records, as many operations of each thread, a block cache \
     of 8 MiB, memtables of 64 MiB, blocks of 4 KiB, Snappy, no filters.",
    "Huge pages for memtables (Memtable_use_huge_page) are asked for as published. RocksDB takes ordinary pages where the system has \
     none reserved. The mapping of persistent memory asks for huge pages, too.",
];

/// Ratios of a placement to DRAM in each published configuration.
fn ratios(rows: &[Row], placement: &str, value: impl Fn(&Row) -> f64) -> Vec<f64> {
    let is_published = |row: &&Row| row.key.part == Part::Published;
    let published: Vec<&Row> = rows.iter().filter(is_published).collect();
    let of = |name: &str, label: &str| {
        let mut all = published.iter();
        all.find(|row| row.key.placement == name && row.key.label() == label).map(|row| value(row))
    };
    let labels =
        published.iter().filter(|row| row.key.placement == "dram").map(|row| row.key.label());
    let ratio = |label: String| {
        let (ours, dram) = (of(placement, &label)?, of("dram", &label)?);
        (dram > 0.0).then(|| ours / dram)
    };
    labels.filter_map(ratio).collect()
}

fn mean(numbers: &[f64]) -> Option<f64> {
    (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64)
}

/// Published values beside what the rows say.
pub(super) fn findings(rows: &[Row], settings: &Settings) -> Vec<Finding> {
    let throughput = |row: &Row| row.median_ops_per_s;
    let latency = |row: &Row| row.mean_us;
    let writes = |row: &Row| row.writes.mean_ns;
    let percent = |ratio: Option<f64>| ratio.map(|ratio| (ratio - 1.0) * 100.0);
    let of = |placement, value: &dyn Fn(&Row) -> f64| mean(&ratios(rows, placement, value));
    let modelled = if settings.is_modelled { "modelled; " } else { "" };
    let explained = format!("{modelled}mean of the eight configurations; {}", hits(rows, "cache"));
    let both = format!("{modelled}mean of the eight configurations; {}", hits(rows, "both"));
    let freed =
        rows.iter().filter(|row| row.key.part == Part::Published && row.key.placement == "cache");
    let freed: Vec<f64> = freed.map(|row| row.freed_bytes as f64 / 1e6).collect();
    let freed_text =
        format!("median of the eight configurations, of a cache of {} bytes", settings.cache_bytes);
    let values = [
        ("section5.cache_throughput_percent", percent(of("cache", &throughput)), explained.clone()),
        ("abstract.cache_latency_percent", percent(of("cache", &latency)), explained.clone()),
        ("section7.cache_write_mean_percent", percent(of("cache", &writes)), explained),
        ("section5.both_throughput_times", of("both", &throughput), both.clone()),
        ("section5.both_latency_times", of("both", &latency), both),
        ("section7.freed_mb", (!freed.is_empty()).then(|| median(&freed)), freed_text),
    ];
    values.into_iter().map(|(id, measured, reading)| finding(id, measured, reading)).collect()
}

fn finding(id: &str, measured: Option<f64>, reading: String) -> Finding {
    let published = published::get(id);
    Finding {
        figure: published.figure.to_owned(),
        what: published.what.to_owned(),
        published: published.value,
        measured,
        unit: published.unit.to_owned(),
        quote: published.quote.to_owned(),
        reading,
    }
}

/// What the counters say of a placement in the published part.
fn hits(rows: &[Row], placement: &str) -> String {
    let of =
        rows.iter().filter(|row| row.key.part == Part::Published && row.key.placement == placement);
    let (mut hits, mut lookups, mut reads, mut operations, mut waited) = (0, 0, 0, 0, 0);
    for row in of {
        hits += row.counts.block_cache_hits;
        lookups += row.counts.block_cache_hits + row.counts.block_cache_misses;
        reads += row.charged.reads;
        waited += row.charged.waited_ns;
        operations += (row.reads.count + row.writes.count) / row.ops_per_s.len().max(1) as u64;
    }
    let per = |count: u64, of: u64| count as f64 / of.max(1) as f64;
    format!(
        "{:.1} % of block lookups hit; {:.2} reads of persistent memory and {:.0} ns of waiting for each operation",
        per(hits, lookups) * 100.0,
        per(reads, operations),
        per(waited, operations)
    )
}
