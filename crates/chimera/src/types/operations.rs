//! [`OperationStats`]: what sessions have done, and how long it took.

use std::ops::AddAssign;

macro_rules! counts {
    ($($(#[$doc:meta])* $count:ident $field:ident,)+) => {
        /// What is counted of a session's operations.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Count { $($count,)+ }

        impl Count {
            /// How many there are.
            pub(crate) const COUNT: usize = [$(Self::$count,)+].len();
        }

        /// What one session, or all of a store's, has done since the store was opened.
        ///
        /// An operation that fails is counted under its error and nowhere else, but for the keys and
        /// records that it had handed out by then.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        #[non_exhaustive]
        pub struct OperationStats {
            $($(#[$doc])* pub $field: u64,)+
            /// How long operations took: one in so many of them, see
            /// [`Options::latency_sampling`](crate::Options::latency_sampling).
            pub latency: Latencies,
        }

        impl OperationStats {
            /// From what was counted.
            pub(crate) fn new(counts: &[u64; Count::COUNT], latency: Latencies) -> Self {
                Self { $($field: counts[Count::$count as usize],)+ latency }
            }
        }
    };
}

counts! {
    /// Gets of a key that was there.
    GetHits get_hits,
    /// Gets of a key that was not there.
    GetMisses get_misses,
    /// Calls that get many keys at once.
    MultiGets multi_gets,
    /// Keys in such calls that were there.
    MultiGetHits multi_get_hits,
    /// Keys in such calls that were not there.
    MultiGetMisses multi_get_misses,
    /// Calls that put many records at once. Each record is counted as a put, too.
    MultiPuts multi_puts,
    /// Batches. Each write is counted as what it is, too.
    Batches batches,
    /// Puts of a key that was not there, and other calls that stored such a key.
    Inserts inserts,
    /// Puts of a key that was there.
    Overwrites overwrites,
    /// Updates and swaps of at most 8 bytes, in place.
    UpdatesInPlace updates_in_place,
    /// Updates and swaps that wrote the record anew.
    Updates updates,
    /// Updates and swaps that had nothing to change.
    UpdatesUnchanged updates_unchanged,
    /// Updates and swaps of a key that was not there.
    UpdateMisses update_misses,
    /// Swaps, puts, deletes and batches with a condition that did not hold.
    SwapsRefused swaps_refused,
    /// Deletes of a key that was there.
    Deletes deletes,
    /// Deletes of a key that was not there.
    DeleteMisses delete_misses,
    /// Calls that list all records.
    Listings listings,
    /// Records that such calls handed out.
    RecordsListed records_listed,
    /// Reads of keys in their order, of up to 128 at a time.
    Scans scans,
    /// Records that such calls handed out.
    RecordsScanned records_scanned,
    /// Bytes of values that gets, listings and scans handed out.
    ValueBytesRead value_bytes_read,
    /// Bytes of values that puts, updates and swaps wrote; 8 for one in place.
    ValueBytesWritten value_bytes_written,
    /// Operations refused for their arguments: the length of a key or a value, a field outside of it.
    ErrorsArgument errors_argument,
    /// Operations that found the pool full.
    ErrorsPoolFull errors_pool_full,
    /// Operations that found damage.
    ErrorsCorrupted errors_corrupted,
    /// Writes to a store that is open for reading only.
    ErrorsReadOnly errors_read_only,
    /// Writes after a failure that the store does not get over.
    ErrorsPoisoned errors_poisoned,
    /// Operations that failed in any other way.
    ErrorsOther errors_other,
}

impl OperationStats {
    /// Operations that failed, whatever the reason.
    pub fn errors(&self) -> u64 {
        self.errors_argument
            + self.errors_pool_full
            + self.errors_corrupted
            + self.errors_read_only
            + self.errors_poisoned
            + self.errors_other
    }
}

/// Kinds of operations that are timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timed {
    Get,
    MultiGet,
    Insert,
    Overwrite,
    UpdateInPlace,
    Update,
    Delete,
    MultiPut,
    Batch,
}

impl Timed {
    /// Each, in order of its number.
    pub(crate) const ALL: [Self; 9] = [
        Self::Get,
        Self::MultiGet,
        Self::Insert,
        Self::Overwrite,
        Self::UpdateInPlace,
        Self::Update,
        Self::Delete,
        Self::MultiPut,
        Self::Batch,
    ];

    /// Its name in metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::MultiGet => "multi_get",
            Self::Insert => "insert",
            Self::Overwrite => "overwrite",
            Self::UpdateInPlace => "update_in_place",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::MultiPut => "multi_put",
            Self::Batch => "batch",
        }
    }
}

/// How long operations took that were timed: from the call to its return, with the time of a function
/// that the caller passed in, and with the wait for a sync where durability asks for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Latencies {
    /// Gets, of keys that were there or not.
    pub get: LatencyStats,
    /// Calls that get many keys at once, each as a whole.
    pub multi_get: LatencyStats,
    /// Puts of a key that was not there.
    pub insert: LatencyStats,
    /// Puts of a key that was there.
    pub overwrite: LatencyStats,
    /// Updates and swaps in place.
    pub update_in_place: LatencyStats,
    /// Other updates and swaps, also those that changed nothing.
    pub update: LatencyStats,
    /// Deletes, of keys that were there or not.
    pub delete: LatencyStats,
    /// Calls that put many records at once, each as a whole.
    pub multi_put: LatencyStats,
    /// Batches, each as a whole.
    pub batch: LatencyStats,
}

impl Latencies {
    /// From the numbers of each kind, in order of [`Timed::ALL`].
    pub(crate) fn new(of: impl Fn(Timed) -> LatencyStats) -> Self {
        Self {
            get: of(Timed::Get),
            multi_get: of(Timed::MultiGet),
            insert: of(Timed::Insert),
            overwrite: of(Timed::Overwrite),
            update_in_place: of(Timed::UpdateInPlace),
            update: of(Timed::Update),
            delete: of(Timed::Delete),
            multi_put: of(Timed::MultiPut),
            batch: of(Timed::Batch),
        }
    }
}

/// Quantiles of latencies, in nanoseconds; all 0 where nothing was timed. A quantile is at most 1/32
/// above the true one and never below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct LatencyStats {
    /// Operations that were timed.
    pub samples: u64,
    /// Their time together.
    pub sum_ns: u64,
    /// Half of them took at most this.
    pub p50_ns: u64,
    /// Nine of ten took at most this.
    pub p90_ns: u64,
    /// 99 of 100 took at most this.
    pub p99_ns: u64,
    /// 999 of 1000 took at most this.
    pub p99_9_ns: u64,
    /// None took longer.
    pub max_ns: u64,
}

/// What one session has done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct SessionStats {
    /// The number under which counters book it.
    pub number: u32,
    /// What it has done.
    pub operations: OperationStats,
}

/// Counts that are added up.
#[derive(Clone, Debug)]
pub(crate) struct Counts(pub(crate) [u64; Count::COUNT]);

impl Default for Counts {
    fn default() -> Self {
        Self([0; Count::COUNT])
    }
}

impl AddAssign<&Self> for Counts {
    fn add_assign(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(to, from)| *to += from);
    }
}
