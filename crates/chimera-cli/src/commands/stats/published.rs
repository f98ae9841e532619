//! [`Publication`]: what the process that has a store open says, and what that comes to per second.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use chimera::metrics::{FILE, NotMetrics, Published};
use serde::Serialize;

use crate::failure::Failure;
use crate::paths;
use crate::store;

/// Operations, each with what it counts: values of the labels `operation` and `outcome`.
const OPERATIONS: [(&str, &[(&str, &str)]); 7] = [
    ("get", &[("get", "found"), ("get", "missing")]),
    ("multi_get", &[("multi_get", "found"), ("multi_get", "missing")]),
    ("insert", &[("put", "inserted")]),
    ("overwrite", &[("put", "overwritten")]),
    ("update_in_place", &[("update", "in_place")]),
    (
        "update",
        &[
            ("update", "rewritten"),
            ("update", "unchanged"),
            ("update", "missing"),
            ("update", "refused"),
        ],
    ),
    ("delete", &[("delete", "deleted"), ("delete", "missing")]),
];
/// What is said of latencies.
pub(super) const QUANTILES: [(&str, f64); 4] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];
/// Most bytes that are taken for metrics: many times what a store publishes.
const BYTES_MAX: usize = 4 << 20;
const LATENCY: &str = "chimera_operation_latency_seconds";

/// The metrics of a store as they were published.
pub(super) struct Publication {
    pub(super) text: String,
    pub(super) metrics: Published,
    /// How long ago.
    pub(super) age: Duration,
}

/// What happened between two publications.
#[derive(Serialize)]
pub(super) struct Interval {
    pub(super) seconds: f64,
    /// By name: what there was any of.
    pub(super) operations: BTreeMap<&'static str, Pace>,
    pub(super) errors_per_second: f64,
}

/// One kind of operations in an interval.
#[derive(Serialize)]
pub(super) struct Pace {
    pub(super) per_second: f64,
    /// Latencies in nanoseconds, as in [`QUANTILES`]; none where none was timed.
    pub(super) latency_ns: Option<BTreeMap<&'static str, u64>>,
}

/// As JSON.
#[derive(Serialize)]
pub(super) struct Report<'a> {
    #[serde(flatten, serialize_with = "paths::fields")]
    path: &'a Path,
    process: &'a str,
    age_seconds: f64,
    is_stale: bool,
    uptime_seconds: f64,
    records: f64,
    interval: &'a Interval,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<BTreeMap<String, f64>>,
}

impl Publication {
    /// The newest one; none where there is none.
    ///
    /// # Errors
    /// When it cannot be read, or is none.
    pub(super) fn read(directory: &Path) -> Result<Option<Self>, Failure> {
        let read = match store::read_regular(&directory.join(FILE), BYTES_MAX) {
            Ok(read) => read,
            Err(error) => {
                return match error.kind() {
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(None),
                    _ => Err(Failure::Io { action: "read the published metrics", source: error }),
                };
            }
        };
        let text = String::from_utf8(read.bytes).map_err(|_| {
            let what = "it is not text";
            Failure::NotMetrics(NotMetrics { line: 1, what })
        })?;
        let metrics = Published::parse(&text).map_err(Failure::NotMetrics)?;
        // Where the clock was set back, it is new.
        let age = read.modified.and_then(|time| time.elapsed().ok()).unwrap_or_default();
        Ok(Some(Self { text, metrics, age }))
    }

    /// A figure without labels; 0 where it is missing.
    pub(super) fn value(&self, name: &str) -> f64 {
        self.metrics.value(name, &[]).unwrap_or_default()
    }

    /// A fact about the store.
    pub(super) fn fact(&self, name: &str) -> &str {
        self.metrics.label("chimera_store_info", name).unwrap_or("unknown")
    }

    /// Seconds from the opening of the store to this publication.
    pub(super) fn uptime_seconds(&self) -> f64 {
        self.value("chimera_uptime_seconds")
    }

    /// Whether a newer one should have come long ago.
    pub(super) fn is_stale(&self) -> bool {
        let every = self.value("chimera_publish_interval_seconds");
        self.age.as_secs_f64() > 3.0 * every + 1.0
    }

    /// Whether it was published by the same process, which has had the store open all the time, later.
    pub(super) fn follows(&self, earlier: &Self) -> bool {
        self.fact("process") == earlier.fact("process")
            && self.uptime_seconds() >= earlier.uptime_seconds()
    }

    /// Whether it is the same.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.text == other.text
    }

    /// What has happened since `earlier`, or since the store was opened.
    pub(super) fn since(&self, earlier: Option<&Self>) -> Interval {
        let before = earlier.map_or(0.0, Self::uptime_seconds);
        let seconds = self.uptime_seconds() - before;
        let rate = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
        let more = |of: &dyn Fn(&Self) -> f64| (of(self) - earlier.map_or(0.0, of)).max(0.0);
        let mut operations = BTreeMap::new();
        for (name, outcomes) in OPERATIONS {
            let count = more(&|publication| publication.operations(outcomes));
            if count > 0.0 {
                let latency_ns = self.latency_ns(earlier, name);
                operations.insert(name, Pace { per_second: rate(count), latency_ns });
            }
        }
        let errors_per_second = rate(more(&Self::errors));
        Interval { seconds, operations, errors_per_second }
    }

    fn operations(&self, outcomes: &[(&str, &str)]) -> f64 {
        let count = |(operation, outcome): &(&str, &str)| {
            let labels = [("operation", *operation), ("outcome", *outcome)];
            self.metrics.value("chimera_operations_total", &labels).unwrap_or_default()
        };
        outcomes.iter().map(count).sum()
    }

    fn errors(&self) -> f64 {
        let samples = self.metrics.samples().filter(|sample| sample.0 == "chimera_errors_total");
        samples.map(|sample| sample.2).sum()
    }

    fn latency_ns(
        &self,
        earlier: Option<&Self>,
        name: &str,
    ) -> Option<BTreeMap<&'static str, u64>> {
        let labels = [("operation", name)];
        let now = self.metrics.buckets(LATENCY, &labels);
        let buckets = match earlier {
            Some(earlier) => now.since(&earlier.metrics.buckets(LATENCY, &labels)),
            None => now,
        };
        let quantile = |(name, quantile): &(&'static str, f64)| {
            Some((*name, (buckets.quantile(*quantile)? * 1e9).round() as u64))
        };
        QUANTILES.iter().map(quantile).collect()
    }

    /// As JSON, with every sample where that is wanted.
    pub(super) fn report<'a>(
        &'a self,
        path: &'a Path,
        interval: &'a Interval,
        with_all: bool,
    ) -> Report<'a> {
        let all = || {
            let samples = self.metrics.samples().filter(|sample| sample.2.is_finite());
            samples.map(|(name, labels, value)| (named(name, labels), value)).collect()
        };
        Report {
            path,
            process: self.fact("process"),
            age_seconds: self.age.as_secs_f64(),
            is_stale: self.is_stale(),
            uptime_seconds: self.uptime_seconds(),
            records: self.value("chimera_records"),
            interval,
            metrics: with_all.then(all),
        }
    }
}

/// A sample's name with its labels.
fn named(name: &str, labels: &[(String, String)]) -> String {
    if labels.is_empty() {
        return name.to_owned();
    }
    let labels: Vec<_> = labels.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
    format!("{name}{{{}}}", labels.join(","))
}
