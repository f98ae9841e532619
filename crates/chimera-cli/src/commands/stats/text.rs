//! Publications as text: a table, or one line.

use std::fmt::Write;
use std::path::Path;

use super::published::{Interval, Pace, Publication, QUANTILES};
use crate::human::{count, duration, rounded_size};

/// A screen full.
pub(super) fn table(path: &Path, publication: &Publication, interval: &Interval) -> Vec<String> {
    let fact = |name| publication.fact(name);
    let bytes = |name, part| {
        let labels: &[(&str, &str)] = part;
        let bytes = publication.metrics.value(name, labels).unwrap_or_default();
        rounded_size(bytes as u64)
    };
    let mut lines = vec![
        format!(
            "{}: in use by process {}, open for {}",
            path.display(),
            fact("process"),
            time(publication.uptime_seconds()),
        ),
        format!(
            "engine {}, medium {}, durability {}, {} sessions",
            fact("engine"),
            fact("medium"),
            fact("durability"),
            count(publication.value("chimera_sessions") as u64),
        ),
        format!(
            "{} records, {} persistent memory, {} DRAM of the index",
            count(publication.value("chimera_records") as u64),
            bytes("chimera_pmem_bytes", &[]),
            bytes("chimera_dram_bytes", &[("part", "index")]),
        ),
        scrub(publication),
        age(publication),
        String::new(),
        heading(interval),
    ];
    for (name, pace) in &interval.operations {
        lines.push(row(name, pace));
    }
    if interval.errors_per_second > 0.0 {
        lines.push(format!("{:16}{:>14}", "errors", rate(interval.errors_per_second)));
    }
    lines
}

/// One line.
pub(super) fn line(publication: &Publication, interval: &Interval) -> String {
    let mut parts = vec![format!("{:.1} s", publication.uptime_seconds())];
    for (name, pace) in &interval.operations {
        let mut part = format!("{name} {}/s", rate(pace.per_second));
        for (quantile, ns) in pace.latency_ns.iter().flatten() {
            let _ = write!(part, " {quantile} {}", duration(*ns));
        }
        parts.push(part);
    }
    if interval.operations.is_empty() {
        parts.push("nothing".to_owned());
    }
    if interval.errors_per_second > 0.0 {
        parts.push(format!("errors {}/s", rate(interval.errors_per_second)));
    }
    if publication.is_stale() {
        parts.push(age(publication));
    }
    parts.join("; ")
}

/// What was verified, and when.
fn scrub(publication: &Publication) -> String {
    let figure = |name| publication.value(name) as u64;
    let verified = match figure("chimera_scrub_last_pass_end_seconds") {
        0 => "no full pass has ended".to_owned(),
        ended => {
            // By the calendar, which may have been set since.
            let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs();
            let records = count(figure("chimera_scrub_last_pass_records"));
            let ago = time(now.saturating_sub(ended) as f64);
            format!("last full pass ended {ago} ago, {records} records")
        }
    };
    let damages = count(figure("chimera_scrub_damages_total"));
    format!("reads verified {}; {verified}, {damages} damages", publication.fact("verify_reads"))
}

fn age(publication: &Publication) -> String {
    let age = time(publication.age.as_secs_f64());
    if publication.is_stale() {
        return format!("published {age} ago and not since: the process hangs, or was killed");
    }
    format!("published {age} ago")
}

fn heading(interval: &Interval) -> String {
    let over = format!("last {}", time(interval.seconds));
    let mut text = format!("{over:16}{:>14}", "per second");
    for (name, _) in QUANTILES {
        let _ = write!(text, "{name:>11}");
    }
    text
}

fn row(name: &str, pace: &Pace) -> String {
    let mut text = format!("{name:16}{:>14}", rate(pace.per_second));
    for (quantile, _) in QUANTILES {
        let ns = pace.latency_ns.as_ref().and_then(|latency| latency.get(quantile));
        let shown = ns.map_or_else(|| "-".to_owned(), |ns| duration(*ns));
        let _ = write!(text, "{shown:>11}");
    }
    text
}

/// A rate with a decimal where it is low.
fn rate(per_second: f64) -> String {
    if per_second < 10.0 { format!("{per_second:.1}") } else { count(per_second.round() as u64) }
}

/// A time in seconds; above 100 s without decimals.
fn time(seconds: f64) -> String {
    if seconds < 100.0 { duration((seconds * 1e9) as u64) } else { format!("{seconds:.0} s") }
}
