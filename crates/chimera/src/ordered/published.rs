//! Options of the order that a paper needs, and knobs of tests: only with the feature `baselines`. HiKV's several trees,
//! its adaption of threads, its barrier and its hardware transactions are off by default.

use std::time::Duration;

use super::options::{OrderOptions, Ranges};

impl OrderOptions {
    /// How long arrivals of changes, and the time that they take, are sampled before it is decided how many of the
    /// [threads](Self::threads) work (HiKV, section 3.2.2). Default 10 ms. A shorter one follows a change of the load
    /// sooner, and chance, too. `None`: all threads work whenever their queues have changes.
    pub fn sampling_window(mut self, window: Option<Duration>) -> Self {
        self.sampling_window = window;
        self
    }

    /// Trees with a range of keys each, instead of one for all: 1 to 64. Default 1. The ranges are equal, by the first 8
    /// bytes of a key as a big-endian number. Each tree has [queues](Self::queues) of its own; with as many
    /// [threads](Self::threads) as trees, or a multiple, it has threads of its own while all of them work. Writers of
    /// different ranges do not meet. Ranges do not change, so keys that begin alike are all in one tree; scans read on from
    /// one tree to the next. This is the variant that the paper calls HiKV-par; one tree serves most stores better.
    pub fn trees(mut self, trees: usize) -> Self {
        self.ranges = Ranges::Equal(trees);
        self
    }

    /// As [`trees`](Self::trees), with ranges that begin at these keys, in ascending order: one tree more than keys. For keys
    /// that are not spread over all bytes. At most 63 keys, of 1 to 4096 bytes. The last call of both counts.
    pub fn tree_ranges(mut self, begins: Vec<Vec<u8>>) -> Self {
        self.ranges = Ranges::Given(begins.into());
        self
    }

    /// Whether a scan holds up writers of new and removed keys until the queues are empty (HiKV, section 3.2.1).
    /// Default false: a scan waits for the changes that were queued before it, and holds up nobody.
    pub fn barrier(mut self, barrier: bool) -> Self {
        self.barrier = barrier;
        self
    }

    /// Whether leaves of the tree are changed in hardware transactions where the machine has them and they commit, which
    /// is tried (HiKV, section 3.3). Default false. Everywhere else the leaf's lock alone is used. No machine that this was
    /// tested on has such transactions: their instructions were never executed.
    /// [`OrderStats::transactions`](crate::OrderStats::transactions) says which is in force.
    pub fn hardware_transactions(mut self, transactions: bool) -> Self {
        self.transactions = transactions;
        self
    }

    /// Keys that are gathered at a time when the tree is made.
    pub fn part_keys(mut self, keys: u64) -> Self {
        self.part_keys = keys;
        self
    }

    /// Most bytes of a run of blocks that keys are written to when the store is closed.
    pub fn dump_bytes(mut self, bytes: u32) -> Self {
        self.dump_bytes = bytes;
        self
    }

    /// Bytes of a node of the tree.
    pub fn node_bytes(mut self, bytes: u32) -> Self {
        self.node_bytes = bytes;
        self
    }
}
