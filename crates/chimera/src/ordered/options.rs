//! [`OrderOptions`]: how the ordered index is kept.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::types::error::{Error, Result};
use crate::types::progress::Progress;

/// When the tree learns of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TreeUpdates {
    /// Later: the write queues the change, and a background thread or the next scan makes it (HiKV, section 3.2.1).
    #[default]
    Asynchronous,
    /// Before the write returns. Writes take longer by what the tree costs, and no queue is needed.
    Synchronous,
}

/// Which keys each tree has.
#[derive(Clone, Debug)]
pub(super) enum Ranges {
    /// So many ranges of the same length.
    Equal(usize),
    /// The lowest key of each range but the first.
    #[cfg_attr(
        not(any(test, feature = "baselines")),
        expect(dead_code, reason = "one tree is all")
    )]
    Given(Arc<[Vec<u8>]>),
}

impl Ranges {
    fn count(&self) -> usize {
        match self {
            Self::Equal(count) => *count,
            Self::Given(borders) => borders.len() + 1,
        }
    }
}

/// What is notified of how far the tree is, if anything.
#[derive(Clone, Default)]
pub(super) struct ProgressListener(Option<Progress>);

impl ProgressListener {
    /// So many keys are in the tree, of so many.
    pub(super) fn notify(&self, (done, whole): (u64, u64)) {
        if let Self(Some(progress)) = self {
            progress(done, whole);
        }
    }
}

impl fmt::Debug for ProgressListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "somebody" } else { "nobody" })
    }
}

/// Most trees, and most queues of a tree.
const TREES_MAX: usize = 64;
const QUEUES_MAX: usize = 64;
/// Most queues of all trees.
const ALL_QUEUES_MAX: usize = 256;
/// Longest key that a range begins with, in bytes.
const BORDER_BYTES_MAX: usize = 4096;

/// How the ordered index of a store is kept: `options.order(|order| order.threads(2))`. May change at every open.
#[derive(Clone, Debug)]
#[must_use]
pub struct OrderOptions {
    /// It is not recorded in the store.
    pub(crate) this_time: bool,
    pub(crate) updates: TreeUpdates,
    pub(super) queues: usize,
    pub(super) queue_requests: usize,
    pub(super) threads: usize,
    pub(super) sampling_window: Option<Duration>,
    pub(super) ranges: Ranges,
    pub(super) barrier: bool,
    pub(super) transactions: bool,
    pub(super) wait: bool,
    pub(super) progress: ProgressListener,
    pub(super) part_keys: u64,
    pub(super) dump_bytes: u32,
    pub(super) node_bytes: u32,
}

impl Default for OrderOptions {
    fn default() -> Self {
        Self {
            this_time: false,
            updates: TreeUpdates::Asynchronous,
            queues: 4,
            queue_requests: 4096,
            threads: 1,
            sampling_window: Some(Duration::from_millis(10)),
            ranges: Ranges::Equal(1),
            barrier: false,
            transactions: false,
            wait: true,
            progress: ProgressListener::default(),
            part_keys: 16 << 10,
            dump_bytes: 1 << 20,
            node_bytes: 2048,
        }
    }
}

impl OrderOptions {
    /// When the tree learns of a write. Default: asynchronously.
    pub fn updates(mut self, updates: TreeUpdates) -> Self {
        self.updates = updates;
        self
    }

    /// The order is kept this time, and [`Options::ordered`](crate::Options::ordered) is not recorded in the store. Default false.
    pub fn this_time(mut self, this_time: bool) -> Self {
        self.this_time = this_time;
        self
    }

    /// Queues of changes of each tree, each of which one thread applies at a time: 1 to 64, and not more than 256 of all
    /// trees. Default 4. More let more writers and background threads work beside each other.
    pub fn queues(mut self, queues: usize) -> Self {
        self.queues = queues;
        self
    }

    /// Changes that a queue holds: a power of two from 2 to 65,536. Default 4096 (HiKV, section 3.2.1), which take
    /// 384 KiB. A writer that finds its queue full applies changes itself.
    pub fn queue_requests(mut self, requests: usize) -> Self {
        self.queue_requests = requests;
        self
    }

    /// Background threads that apply changes, at most: 0 to 64, and not more than queues. Default 1. They sleep while there
    /// is little to do, and how many of them work follows from a sample of the writes. With 0, scans and writers
    /// that find a queue full apply all changes.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Whether a scan that comes before the tree of a store that was opened is made helps to make it, and waits. Default
    /// true. With false it fails with [`NotYetOrdered`](crate::Error::NotYetOrdered), which says how far the tree is.
    pub fn wait(mut self, wait: bool) -> Self {
        self.wait = wait;
        self
    }

    /// Called now and then while the tree of a store that was opened is made, with (keys gathered, keys that the store had):
    /// by scans that wait for it and by threads in the background. Default: nobody is told.
    pub fn progress(mut self, progress: Progress) -> Self {
        self.progress = ProgressListener(Some(progress));
        self
    }

    /// # Errors
    /// `InvalidOptions` when there can be no such index.
    pub(crate) fn validate(&self) -> Result<()> {
        let refuse = |text: String| Err(Error::InvalidOptions(text));
        if !(1..=QUEUES_MAX).contains(&self.queues) {
            return refuse(format!("an ordered index has 1 to 64 queues, not {}", self.queues));
        }
        self.validate_ranges()?;
        if !self.queue_requests.is_power_of_two() || !(2..=1 << 16).contains(&self.queue_requests) {
            let found = self.queue_requests;
            return refuse(format!(
                "a queue holds a power of two from 2 to 65536 changes, not {found}"
            ));
        }
        if !self.node_bytes.is_multiple_of(64) || !(128..=64 << 10).contains(&self.node_bytes) {
            let found = self.node_bytes;
            return refuse(format!(
                "a node has a multiple of 64 bytes from 128 to 65536, not {found}"
            ));
        }
        let queues = self.queues * self.ranges.count();
        if self.threads > queues.min(QUEUES_MAX) {
            let threads = self.threads;
            return refuse(format!("{threads} threads cannot share {queues} queues of changes"));
        }
        Ok(())
    }

    fn validate_ranges(&self) -> Result<()> {
        let refuse = |text: String| Err(Error::InvalidOptions(text));
        let trees = self.ranges.count();
        if !(1..=TREES_MAX).contains(&trees) {
            return refuse(format!("an ordered index has 1 to 64 trees, not {trees}"));
        }
        if trees * self.queues > ALL_QUEUES_MAX {
            let queues = self.queues;
            return refuse(format!(
                "{trees} trees with {queues} queues each are more than {ALL_QUEUES_MAX} queues"
            ));
        }
        let Ranges::Given(begins) = &self.ranges else { return Ok(()) };
        let is_key = |key: &Vec<u8>| (1..=BORDER_BYTES_MAX).contains(&key.len());
        if !begins.iter().all(is_key) || !begins.is_sorted_by(|one, next| one < next) {
            let text = "ranges of trees begin at keys of 1 to 4096 bytes in ascending order";
            return refuse(text.to_owned());
        }
        Ok(())
    }
}
