//! What the primitives study measured.

use serde::{Deserialize, Serialize};

use super::machine::Machine;

/// All of a run of the primitives study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Study {
    /// Where it ran.
    pub machine: Machine,
    /// What the structures lay on.
    pub medium: String,
    /// The latency profile.
    pub profile: String,
    /// Whether timings come from the device model.
    pub modelled: bool,
    /// Everything random follows from it.
    pub seed: u64,
    /// The last-level cache that the machine reports, in bytes; 0 where it does not say.
    pub cache_bytes: u64,
    /// Bytes of each contender's array in the uncached measurements.
    pub array_bytes: u64,
    /// Whether every array is at least twice the cache.
    pub exceeds_cache: bool,
    /// Nanoseconds of a load of a cached word. With a profile, what the model of the device takes to find that it is cached; it is in
    /// all times, and no time of a device.
    pub load_ns: f64,
    /// Batches of which the median is told.
    pub repetitions: usize,
    /// Most operations of a batch.
    pub operations: u64,
    /// The command line that does it again.
    pub command: String,
    /// Seconds that all of it took.
    pub seconds: f64,
    /// One for each bar.
    pub rows: Vec<StudyRow>,
    /// What the paper says of directions and factors, and what came out.
    pub findings: Vec<Finding>,
}

/// One bar of one figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StudyRow {
    /// The experiment.
    pub experiment: String,
    /// Who did it.
    pub contender: String,
    /// The layout, where it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<String>,
    /// Bytes of a node or of a run, or inner levels.
    pub size: u32,
    /// Where in the node; empty where that makes no difference.
    pub position: String,
    /// Nanoseconds of an operation with structures that are not in the processor's cache.
    pub uncached: Timing,
    /// The same with those that are.
    pub cached: Timing,
    /// Means per operation, exact, with nothing in the modelled cache beforehand.
    pub counters: StudyCounters,
}

/// Nanoseconds of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Timing {
    /// The median of the batches.
    pub median_ns: f64,
    /// (max - min) / median of the batches.
    pub spread: f64,
}

/// Means per operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct StudyCounters {
    /// Bytes stored, in whole words.
    pub bytes_modified: f64,
    /// Lines flushed.
    pub lines_flushed: f64,
    /// Fences.
    pub fences: f64,
    /// Distinct lines read, those included that a store had to fetch.
    pub lines_read: f64,
    /// Units read from the media.
    pub media_reads: f64,
    /// Units written to the media.
    pub media_writes: f64,
}

/// A direction or a factor of the paper, and what came out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Finding {
    /// Where the paper says it.
    pub source: String,
    /// What it is.
    pub what: String,
    /// What the paper says.
    pub published: String,
    /// What came out.
    pub measured: f64,
    /// Its unit.
    pub unit: String,
    /// The least that counts as published.
    pub least: f64,
    /// The most, if there is such a bound.
    pub most: Option<f64>,
    /// Whether what came out is between these.
    pub holds: bool,
}

impl Finding {
    /// What counts as published.
    pub(crate) fn bounds(&self) -> String {
        match self.most {
            Some(most) => format!("{} to {most} {}", self.least, self.unit),
            None => format!("{} {} at least", self.least, self.unit),
        }
    }
}

impl Study {
    /// The row of a bar.
    pub(crate) fn row(
        &self,
        experiment: &str,
        contender: &str,
        size: u32,
        position: &str,
    ) -> Option<&StudyRow> {
        self.rows.iter().find(|row| {
            row.experiment == experiment
                && row.contender == contender
                && row.size == size
                && row.position == position
        })
    }
}
