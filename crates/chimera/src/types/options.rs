//! [`Options`]: how a store is created and opened.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use chimera_pmem::Medium;
use serde::Serialize;

use super::error::{Error, Result};

/// Which engine a store runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EngineKind {
    /// Viper (PVLDB'21): slotted pages in persistent memory, extendible hash in DRAM.
    #[default]
    Viper,
}

impl EngineKind {
    /// The number in the superblock; 0 is never valid.
    pub(crate) fn code(self) -> u32 {
        match self {
            Self::Viper => 1,
        }
    }

    pub(crate) fn from_code(code: u64) -> Option<Self> {
        (code == 1).then_some(Self::Viper)
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("viper")
    }
}

impl FromStr for EngineKind {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "viper" => Ok(Self::Viper),
            other => Err(format!("unknown engine `{other}`; engines: viper")),
        }
    }
}

/// What precedes each record on media.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordLayout {
    /// 16 bytes per record: checksum of key and version, checksum of the value, version. Damage is
    /// found, and after a crash the newer of two copies wins. 17 records of 16 + 200 bytes per page.
    #[default]
    Checked,
    /// Nothing, as in the paper: 18 records of 16 + 200 bytes per page; damage goes unnoticed, and
    /// after a crash during an overwrite the copy at the higher address wins.
    Published,
}

impl RecordLayout {
    pub(crate) fn code(self) -> u32 {
        match self {
            Self::Checked => 1,
            Self::Published => 2,
        }
    }

    pub(crate) fn from_code(code: u64) -> Option<Self> {
        match code {
            1 => Some(Self::Checked),
            2 => Some(Self::Published),
            _ => None,
        }
    }
}

impl FromStr for RecordLayout {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "checked" => Ok(Self::Checked),
            "published" => Ok(Self::Published),
            other => Err(format!("unknown layout `{other}`; layouts: checked, published")),
        }
    }
}

/// What an acknowledged write survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// The strongest that the medium gives at full speed: `Immediate` on fsdax and devdax,
    /// `Group { 50 ms }` on other files, `Process` in memory.
    #[default]
    Auto,
    /// Power loss, as soon as the call returns. Refused in memory. On plain files every write waits for
    /// a sync of the device, which writes at the same time share; and a read waits for the writes
    /// that are under way. Memory as with `Group`.
    Immediate,
    /// Power loss, once a sync that starts within `max_delay` has ended: what a power loss takes are the
    /// last writes, never one without all that were acknowledged after it. The end of the process
    /// takes nothing. How long the sync takes is the device's matter; when a whole window is behind,
    /// writers wait. Pages written since the store was opened stay in memory, beside the page cache,
    /// until it is closed. Refused in memory; on fsdax and devdax it is `Immediate`.
    Group {
        /// Longest time between an acknowledged write and the start of the sync that covers it.
        max_delay: Duration,
    },
    /// The end of the process (kill -9), not of the machine: a store on plain files that was open when
    /// the machine went down is refused. No journal, and no memory beside the page cache.
    Process,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Immediate => f.write_str("immediate"),
            Self::Group { max_delay } => write!(f, "group ({} ms)", max_delay.as_millis()),
            Self::Process => f.write_str("process"),
        }
    }
}

impl FromStr for Durability {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let milliseconds = |text: &str| text.parse().ok().map(Duration::from_millis);
        match text.split_once(':') {
            None if text == "auto" => Some(Self::Auto),
            None if text == "immediate" => Some(Self::Immediate),
            None if text == "process" => Some(Self::Process),
            Some(("group", delay)) => milliseconds(delay).map(|max_delay| Self::Group { max_delay }),
            _ => None,
        }
        .ok_or_else(|| format!("unknown durability `{text}`: there are auto, immediate, group:MILLISECONDS, process"))
    }
}

/// Sizes of a pool, fixed at creation and kept in its superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Geometry {
    /// Bytes per VPage: a multiple of 64 from 256 to 1 MiB. Default 4096, the interleaving of Optane
    /// DIMMs. Records larger than a page raise it by whole multiples.
    pub page_bytes: u32,
    /// VPages per VBlock, one per DIMM: 1 to 8. Default 6.
    pub pages_per_block: u32,
    /// Bytes that the first block of a segment is shifted from the page boundary: a multiple of 64
    /// below `page_bytes`. Default 0; 2048 is the paper's unaligned variant, for comparison.
    pub block_shift_bytes: u32,
    /// Bytes per segment, the unit of files and of address space: a multiple of 4096 (of 2 MiB on
    /// devdax). Default 1 GiB, which is 43,690 blocks of 24 KiB.
    pub segment_bytes: u64,
}

impl Default for Geometry {
    fn default() -> Self {
        Self { page_bytes: 4096, pages_per_block: 6, block_shift_bytes: 0, segment_bytes: 1 << 30 }
    }
}

impl Geometry {
    /// Smallest page, in bytes.
    pub const PAGE_BYTES_MIN: u32 = 256;
    /// Largest page, in bytes.
    pub const PAGE_BYTES_MAX: u32 = 1 << 20;
    /// Most pages in a block.
    pub const PAGES_PER_BLOCK_MAX: u32 = 8;

    /// Checks the limits stated with the fields.
    pub(crate) fn validate(&self) -> Result<(), String> {
        let page = Self::PAGE_BYTES_MIN..=Self::PAGE_BYTES_MAX;
        if !page.contains(&self.page_bytes) || !self.page_bytes.is_multiple_of(64) {
            let text = "a page must have a multiple of 64 bytes, from 256 to 1 MiB";
            return Err(format!("{text}, not {}", self.page_bytes));
        }
        if !(1..=Self::PAGES_PER_BLOCK_MAX).contains(&self.pages_per_block) {
            return Err(format!("a block must have 1 to 8 pages, not {}", self.pages_per_block));
        }
        let shift = self.block_shift_bytes;
        if shift >= self.page_bytes || !shift.is_multiple_of(64) {
            let text = "the shift of blocks must be a multiple of 64 below the page size";
            return Err(format!("{text}, not {shift}"));
        }
        if self.segment_bytes > 1 << 44 || !self.segment_bytes.is_multiple_of(4096) {
            let text = "a segment must have a multiple of 4096 bytes, up to 16 TiB";
            return Err(format!("{text}, not {}", self.segment_bytes));
        }
        Ok(())
    }
}

/// Called during long work with (done, of how much).
pub type Progress = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// How a store is created and opened. Each setting names its default, its unit, what it costs, and
/// whether it can change after creation.
///
/// ```
/// let options = chimera::Options::new().fixed_size(16, 200).read_only(false);
/// assert_eq!(options.key_bytes(), Some(16));
/// ```
#[derive(Clone)]
#[must_use]
pub struct Options {
    pub(crate) engine: EngineKind,
    pub(crate) sizes: Option<(u32, u32)>,
    pub(crate) layout: Option<RecordLayout>,
    pub(crate) geometry: Option<Geometry>,
    pub(crate) segment_bytes: Option<u64>,
    pub(crate) durability: Durability,
    pub(crate) create: bool,
    pub(crate) read_only: bool,
    pub(crate) salvage: bool,
    pub(crate) anonymous_bytes: Option<u64>,
    pub(crate) flush: bool,
    pub(crate) huge_pages: bool,
    pub(crate) verify_reads: bool,
    pub(crate) verify_at_open: bool,
    pub(crate) recovery_threads: usize,
    pub(crate) populate_ahead_bytes: u64,
    pub(crate) reclaim_percent: u32,
    pub(crate) reclaim_bytes_per_second: u64,
    pub(crate) populate_at_open: bool,
    pub(crate) capacity_bytes: Option<u64>,
    pub(crate) index_segment_slots: u32,
    pub(crate) journal_bytes: Option<u64>,
    pub(crate) progress: Option<Progress>,
    /// The store is a new one, and incomplete until [`complete`](crate::Db::complete) says otherwise.
    pub(crate) incomplete: bool,
    pub(crate) latency_sampling: u32,
    pub(crate) publish_metrics: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            engine: EngineKind::default(),
            sizes: None,
            layout: None,
            geometry: None,
            segment_bytes: None,
            durability: Durability::Auto,
            create: true,
            read_only: false,
            salvage: false,
            anonymous_bytes: None,
            flush: true,
            huge_pages: true,
            verify_reads: true,
            verify_at_open: true,
            recovery_threads: 0,
            populate_ahead_bytes: 64 << 20,
            reclaim_percent: 50,
            reclaim_bytes_per_second: 16 << 20,
            populate_at_open: false,
            capacity_bytes: None,
            index_segment_slots: 1024,
            journal_bytes: None,
            progress: None,
            incomplete: false,
            latency_sampling: Self::LATENCY_SAMPLING_DEFAULT,
            publish_metrics: None,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("engine", &self.engine)
            .field("sizes", &self.sizes)
            .field("layout", &self.layout)
            .field("geometry", &self.geometry)
            .field("durability", &self.durability)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// Fewest, usual and most bytes of a journal.
    pub(crate) const JOURNAL_BYTES_MIN: u64 = 16 << 10;
    pub(crate) const JOURNAL_BYTES_DEFAULT: u64 = 64 << 20;
    pub(crate) const JOURNAL_BYTES_MAX: u64 = 1 << 30;
    /// The window of `Auto` on plain files.
    const MAX_DELAY_DEFAULT: Duration = Duration::from_millis(50);

    /// One operation in so many is timed.
    const LATENCY_SAMPLING_DEFAULT: u32 = 128;
    /// The shortest time between two publications of metrics.
    pub(crate) const PUBLISH_EVERY_MIN: Duration = Duration::from_millis(10);

    /// All defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Engine. Default `viper`. Fixed at creation.
    pub fn engine(mut self, engine: EngineKind) -> Self {
        self.engine = engine;
        self
    }

    /// Every key has exactly `key_bytes` (1 to 4096) and every value exactly `value_bytes` (0 to
    /// 524,288) bytes. Needed to create a store; when opening one it may be left out, and must agree
    /// if given. Fixed at creation.
    pub fn fixed_size(mut self, key_bytes: u32, value_bytes: u32) -> Self {
        self.sizes = Some((key_bytes, value_bytes));
        self
    }

    /// Key size, if set.
    pub fn key_bytes(&self) -> Option<u32> {
        self.sizes.map(|sizes| sizes.0)
    }

    /// Value size, if set.
    pub fn value_bytes(&self) -> Option<u32> {
        self.sizes.map(|sizes| sizes.1)
    }

    /// What precedes each record. Default [`RecordLayout::Checked`]: 16 bytes more per record, about
    /// 20 ns more per put, damage is found. Fixed at creation.
    pub fn layout(mut self, layout: RecordLayout) -> Self {
        self.layout = Some(layout);
        self
    }

    /// Page, block and segment sizes. Fixed at creation.
    pub fn geometry(mut self, geometry: Geometry) -> Self {
        self.geometry = Some(geometry);
        self
    }

    /// Bytes per segment; overrides the one in [`geometry`](Self::geometry). Default 1 GiB; on a
    /// device, what fills it with equal segments of up to 1 GiB. Small segments make more files; a
    /// segment bounds nothing else. Fixed at creation.
    pub fn segment_bytes(mut self, bytes: u64) -> Self {
        self.segment_bytes = Some(bytes);
        self
    }

    /// What an acknowledged write survives. Default [`Durability::Auto`].
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Whether to create the store when nothing is there. Default true.
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Open for reading only. Default false. Several read-only processes may share a store that
    /// nobody writes; nothing on media changes, not even to finish an interrupted overwrite.
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Open in spite of damage. Default false. Damaged records stay on media, are not served, and are
    /// counted in [`Stats::records_damaged`](crate::Stats::records_damaged); keys they held read as
    /// absent. Also opens a `Process` store after a power loss.
    pub fn salvage(mut self, salvage: bool) -> Self {
        self.salvage = salvage;
        self
    }

    /// Keep the store in `bytes` of anonymous memory instead of files; the path is not used. Default
    /// off. Everything is gone at close: for tests, and for the paper's DRAM-only variant.
    pub fn anonymous(mut self, bytes: u64) -> Self {
        self.anonymous_bytes = Some(bytes);
        self
    }

    /// Whether cache lines are flushed at all. Default true. `false` is for machines that you know to
    /// keep their caches through a power loss, and for the paper's DRAM-only variant.
    pub fn flush(mut self, flush: bool) -> Self {
        self.flush = flush;
        self
    }

    /// Ask for huge pages, for the pool's mapping and for the index. Default true: random reads are
    /// up to a third faster where the system grants it. [`Stats`](crate::Stats) and `chimera doctor`
    /// say whether it did.
    pub fn huge_pages(mut self, huge_pages: bool) -> Self {
        self.huge_pages = huge_pages;
        self
    }

    /// Verify checksums on every read. Default true: about 15 ns per 200 bytes.
    pub fn verify_reads(mut self, verify: bool) -> Self {
        self.verify_reads = verify;
        self
    }

    /// Verify the values' checksums while recovering. Default true: about 15 ns per 200 bytes. Keys
    /// and versions are always verified.
    pub fn verify_at_open(mut self, verify: bool) -> Self {
        self.verify_at_open = verify;
        self
    }

    /// Threads that scan the pool at open. Default 0: one per core.
    pub fn recovery_threads(mut self, threads: usize) -> Self {
        self.recovery_threads = threads;
        self
    }

    /// How far ahead of use the background task allocates and touches memory. Default 64 MiB. Less
    /// saves space in small stores; 0 leaves it to the inserting session, at up to 16 us per page.
    pub fn populate_ahead_bytes(mut self, bytes: u64) -> Self {
        self.populate_ahead_bytes = bytes;
        self
    }

    /// Blocks of which at least so many percent are free (with records of any size: were deleted) are
    /// emptied in the background, and used again or given back. Default 50; 0 switches it off, and leaves
    /// it to [`Db::compact`](crate::Db::compact). See the paper, section 4.4.
    pub fn reclaim_percent(mut self, percent: u32) -> Self {
        self.reclaim_percent = percent.min(100);
        self
    }

    /// How much the background task moves, at most, in bytes of keys and values. Default 16 MiB a second,
    /// which takes some 8 % of a processor where records are small.
    pub fn reclaim_bytes_per_second(mut self, bytes: u64) -> Self {
        self.reclaim_bytes_per_second = bytes.max(1);
        self
    }

    /// Touch the whole of [`capacity_bytes`](Self::capacity_bytes) at open, so that no first access
    /// faults. Default false. Costs about a second per GiB. What reclamation empties stays touched, too.
    pub fn populate_at_open(mut self, populate: bool) -> Self {
        self.populate_at_open = populate;
        self
    }

    /// Largest size of the pool in bytes; further inserts fail with
    /// [`Error::PoolFull`](crate::Error::PoolFull). Default: as much as the file system or device has.
    /// May change at every open.
    pub fn capacity_bytes(mut self, bytes: u64) -> Self {
        self.capacity_bytes = Some(bytes);
        self
    }

    /// Slots per index segment: a power of two from 8 to 4096. Default 1024 (16 KiB). For tests.
    pub fn index_segment_slots(mut self, slots: u32) -> Self {
        self.index_segment_slots = slots;
        self
    }

    /// Bytes of the journal on plain files: a multiple of 4096 from 16 KiB to 1 GiB. Default: what the
    /// store has, and 64 MiB for a new journal (256 KiB in stores that the command `put` makes). A
    /// larger one lets changes of the same line be written home together; it costs disk space, and
    /// time to read after a crash. Another size than the journal has takes effect when the store is next
    /// opened after it was closed in order.
    pub fn journal_bytes(mut self, bytes: u64) -> Self {
        self.journal_bytes = Some(bytes);
        self
    }

    /// Called now and then during recovery with (blocks done, blocks in all).
    pub fn progress(mut self, progress: Progress) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Time one operation in `every`, on average, for the latencies in
    /// [`Stats::operations`](crate::Stats::operations). Default 128: less than 1 ns each. 1 times every
    /// operation, at the price of reading the clock twice, some 100 ns; 0 none. Operations are counted
    /// all the same.
    pub fn latency_sampling(mut self, every: u32) -> Self {
        self.latency_sampling = every;
        self
    }

    /// Write the [metrics](crate::Db::metrics_text) to the file `metrics` in the store's directory every so
    /// often, at least 10 ms, for `chimera stats` and other collectors. Default off: it writes some 40 KB
    /// to the file system each time, also while nothing happens, and what the store does becomes known to
    /// whoever may read its directory. A background thread does it; sessions are not disturbed. The
    /// file replaces the one before as a whole, is no part of the store, and is removed when the store is
    /// closed in order. Nothing is published of a store that is open for reading only, on a device or in
    /// anonymous memory.
    pub fn publish_metrics(mut self, every: Duration) -> Self {
        self.publish_metrics = Some(every);
        self
    }

    /// The durability that a store opened with these options has on `medium`.
    ///
    /// # Errors
    /// [`Error::InvalidOptions`] when the one asked for cannot be had there.
    pub fn effective_durability(&self, medium: Medium) -> Result<Durability> {
        match (self.durability, medium) {
            (Durability::Process, _) => Ok(Durability::Process),
            (_, medium) if medium.is_persistent_memory() => Ok(Durability::Immediate),
            (Durability::Auto, Medium::File) => {
                Ok(Durability::Group { max_delay: Self::MAX_DELAY_DEFAULT })
            }
            (asked, Medium::File) => Ok(asked),
            (Durability::Auto, _) => Ok(Durability::Process),
            (asked, _) => Err(Error::InvalidOptions(format!(
                "durability `{asked}` cannot be had on medium `{medium}`, which is gone when the \
                 machine stops: use a file system on a device, or ask for `process` durability"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durability_is_read_from_text() {
        assert_eq!("auto".parse(), Ok(Durability::Auto));
        assert_eq!("immediate".parse(), Ok(Durability::Immediate));
        assert_eq!("process".parse(), Ok(Durability::Process));
        let max_delay = Duration::from_millis(50);
        assert_eq!("group:50".parse(), Ok(Durability::Group { max_delay }));
        for wrong in ["", "group", "group:", "group:x", "immediate:1", "best"] {
            assert!(wrong.parse::<Durability>().is_err(), "{wrong}");
        }
    }
}
