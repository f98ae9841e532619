//! [`Counters`]: what was counted, by class of operation and by session.

use std::collections::BTreeMap;
use std::ops::{AddAssign, SubAssign};

use crate::{CACHE_LINE, Operation};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// Totals of one class of operation.
        ///
        /// A *line* is a cache line of 64 bytes. *Distinct* means distinct within one operation; a
        /// nested operation is an operation of its own. Outside any operation, what lies between two
        /// fences counts as one operation for this purpose. After 65,536 distinct lines an operation
        /// forgets which ones it has seen and counts them anew.
        ///
        /// A media read or write is booked to the operation during which it happens, which for a
        /// write-back from a buffer is later than the flush; over a phase of one kind the means are
        /// the same, and the total is exact.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        pub struct OperationCounters {
            /// Operations acknowledged.
            pub operations: u64,
            $($(#[$doc])* pub $name: u64,)+
        }

        /// Means per acknowledged operation; the fields as in [`OperationCounters`].
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        pub struct OperationMeans {
            $($(#[$doc])* pub $name: f64,)+
        }

        impl OperationCounters {
            /// Means per acknowledged operation; `None` when there was none.
            pub fn means(&self) -> Option<OperationMeans> {
                if self.operations == 0 {
                    return None;
                }
                let operations = self.operations as f64;
                Some(OperationMeans { $($name: self.$name as f64 / operations,)+ })
            }
        }

        impl AddAssign for OperationCounters {
            fn add_assign(&mut self, other: Self) {
                self.operations += other.operations;
                $(self.$name += other.$name;)+
            }
        }

        impl SubAssign for OperationCounters {
            fn sub_assign(&mut self, other: Self) {
                self.operations -= other.operations;
                $(self.$name -= other.$name;)+
            }
        }
    };
}

counters! {
    /// Calls that stored something: words, successful compare-and-swaps, copies, zeroings.
    stores,
    /// Bytes those calls stored, in whole words of 8 bytes.
    bytes_stored,
    /// Lines copied past the cache.
    nontemporal_lines,
    /// Distinct lines flushed.
    lines_flushed,
    /// Flushes of a line that the same operation had flushed already.
    lines_reflushed,
    /// Flushes, among both of the above, that found nothing to write back in the cache model.
    lines_flushed_clean,
    /// Dirty lines the cache model wrote back to make room, without a flush.
    lines_evicted,
    /// Fences.
    fences,
    /// Distinct lines first touched by a load (or compare-and-swap) of the operation.
    lines_read_demand,
    /// Distinct lines first touched by a prefetch of the operation.
    lines_read_prefetched,
    /// Distinct lines first touched by a store that had to fetch them because the cache model did not
    /// have them.
    lines_read_write_allocate,
    /// Lines of all three kinds that the cache model had to fetch from the device.
    lines_missed,
    /// Fetches of a media unit (XPLine) for missing lines; the reads inside of read-modify-writes are
    /// apart.
    media_reads,
    /// Media writes of units all of whose lines were written.
    media_writes_full,
    /// Media writes of partial units, each a read-modify-write, that made room for others in a write buffer or were drained.
    media_writes_evicted,
    /// Media writes of partial units, each a read-modify-write, to which nothing was added for a while. Only where the device
    /// takes time, and then not repeatable.
    media_writes_aged,
    /// Nanoseconds that the latency profile charged, waits for the media not included.
    latency_ns,
    /// Bytes of keys and values the user wrote, as told by
    /// [`user_bytes`](super::Instrumented::user_bytes).
    user_bytes,
}

impl OperationCounters {
    /// Distinct lines read in any way: demand, prefetched, write-allocate.
    pub fn lines_read(&self) -> u64 {
        self.lines_read_demand + self.lines_read_prefetched + self.lines_read_write_allocate
    }

    /// Media units written, whole or partial.
    pub fn media_writes(&self) -> u64 {
        self.media_writes_full + self.media_writes_partial()
    }

    /// Media units written of which some lines were missing, so that they had to be read.
    pub fn media_writes_partial(&self) -> u64 {
        self.media_writes_evicted + self.media_writes_aged
    }

    /// Media units read: for missing lines, and to complete partial units.
    pub fn media_reads_all(&self) -> u64 {
        self.media_reads + self.media_writes_partial()
    }
}

impl OperationMeans {
    /// Distinct lines read in any way: demand, prefetched, write-allocate.
    pub fn lines_read(&self) -> f64 {
        self.lines_read_demand + self.lines_read_prefetched + self.lines_read_write_allocate
    }

    /// Media units written, whole or partial.
    pub fn media_writes(&self) -> f64 {
        self.media_writes_full + self.media_writes_evicted + self.media_writes_aged
    }
}

/// Lines that one session moved to and from each DIMM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct SessionLines {
    /// Lines handed to each DIMM: flushed dirty, copied past the cache, or evicted.
    pub written: Vec<u64>,
    /// Lines fetched from each DIMM.
    pub read: Vec<u64>,
}

impl SessionLines {
    pub(super) fn new(dimms: usize) -> Self {
        Self { written: vec![0; dimms], read: vec![0; dimms] }
    }

    pub(super) fn add(&mut self, other: &Self) {
        add_each(&mut self.written, &other.written);
        add_each(&mut self.read, &other.read);
    }

    fn subtract(&mut self, other: &Self) {
        subtract_each(&mut self.written, &other.written);
        subtract_each(&mut self.read, &other.read);
    }

    /// How unevenly the lines written fall on the DIMMs; `None` when there are none.
    pub fn written_spread(&self) -> Option<Spread> {
        Spread::of(&self.written)
    }

    /// How unevenly the lines read fall on the DIMMs; `None` when there are none.
    pub fn read_spread(&self) -> Option<Spread> {
        Spread::of(&self.read)
    }
}

fn add_each(to: &mut Vec<u64>, from: &[u64]) {
    to.resize(to.len().max(from.len()), 0);
    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
}

fn subtract_each(from: &mut [u64], what: &[u64]) {
    from.iter_mut().zip(what).for_each(|(from, what)| *from -= what);
}

/// How unevenly lines fall on the DIMMs.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Spread {
    /// Lines on the DIMM that has most.
    pub max: u64,
    /// Mean over all DIMMs.
    pub mean: f64,
}

impl Spread {
    fn of(lines: &[u64]) -> Option<Self> {
        let max = lines.iter().copied().max()?;
        let mean = lines.iter().sum::<u64>() as f64 / lines.len() as f64;
        (max > 0).then_some(Self { max, mean })
    }

    /// 1.0 for an even spread, the number of DIMMs when all lines fall on one.
    pub fn max_over_mean(&self) -> f64 {
        self.max as f64 / self.mean
    }
}

/// A snapshot of everything counted since the beginning or the last reset.
///
/// With one thread, a fixed seed and background tasks stepped by hand it is bit-exact: the same on
/// every run and every machine. Where the device takes time, how long a unit stays in a write buffer depends on the clock,
/// so media writes are not repeatable there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Counters {
    /// Totals by class; only classes in which something was counted.
    pub operations: BTreeMap<Operation, OperationCounters>,
    /// Lines per DIMM by session number; empty without a device model.
    pub sessions: BTreeMap<u32, SessionLines>,
    /// Operations begun and not acknowledged. What they did so far is booked under their class.
    pub operations_open: u64,
    /// Bytes per media unit (XPLine); 0 without a device model.
    pub media_unit_bytes: u64,
}

impl Counters {
    /// Totals of one class, all zero when nothing was counted.
    pub fn of(&self, operation: Operation) -> OperationCounters {
        self.operations.get(&operation).copied().unwrap_or_default()
    }

    /// Means per operation of one class; `None` when none was acknowledged.
    pub fn per_operation(&self, operation: Operation) -> Option<OperationMeans> {
        self.of(operation).means()
    }

    /// Totals over all classes.
    pub fn total(&self) -> OperationCounters {
        let mut total = OperationCounters::default();
        self.operations.values().for_each(|counters| total += *counters);
        total
    }

    /// Lines per DIMM over all sessions.
    pub fn all_sessions(&self) -> SessionLines {
        let mut all = SessionLines::default();
        self.sessions.values().for_each(|session| all.add(session));
        all
    }

    /// Bytes stored to lines that reached the device: the lines' own size, before the media unit.
    pub fn line_bytes_written(&self) -> u64 {
        let total = self.total();
        let lines = total.nontemporal_lines + total.lines_flushed + total.lines_reflushed
            - total.lines_flushed_clean
            + total.lines_evicted;
        lines * CACHE_LINE
    }

    /// Media bytes per byte the user wrote; `None` when no user bytes were told. Drain the buffers first.
    pub fn media_write_amplification(&self) -> Option<f64> {
        let total = self.total();
        let media = (total.media_writes() * self.media_unit_bytes) as f64;
        (total.user_bytes > 0).then(|| media / total.user_bytes as f64)
    }

    /// What was counted after `earlier`, a snapshot of the same instance without a reset between.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut later = self.clone();
        for (operation, counters) in &earlier.operations {
            if let Some(entry) = later.operations.get_mut(operation) {
                *entry -= *counters;
            }
        }
        later.operations.retain(|_, counters| *counters != OperationCounters::default());
        for (session, lines) in &earlier.sessions {
            if let Some(entry) = later.sessions.get_mut(session) {
                entry.subtract(lines);
            }
        }
        later
    }
}
