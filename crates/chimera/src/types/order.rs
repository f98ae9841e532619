//! [`OrderStats`]: what an ordered index says of itself.

/// What the ordered index of a store says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct OrderStats {
    /// Whether the tree has all keys: it is made in the background when a store is opened.
    pub is_ready: bool,
    /// Whether it was made of what the store had written when it was closed.
    pub is_loaded: bool,
    /// Whether what the store had written when it was closed is damaged: the tree was made anew, and nothing is lost.
    pub dump_damaged: bool,
    /// Keys that were gathered for it so far.
    pub keys_gathered: u64,
    /// Keys in the tree; changes that wait are not in it yet.
    pub keys: u64,
    /// Nodes from the root to a leaf.
    pub height: u32,
    /// Leaves of the tree.
    pub leaves: u64,
    /// Nodes above them.
    pub inner_nodes: u64,
    /// DRAM of tree and queues; and, until the tree is made, of the keys that were gathered and of what changed meanwhile.
    pub dram_bytes: u64,
    /// Changes that were queued since the store was opened.
    pub changes: u64,
    /// Changes that wait to be applied.
    pub waiting: u64,
    /// Changes that scans, and writers that found a queue full, have applied themselves.
    pub helped: u64,
    /// Queues of changes; 0 where the tree is changed at once.
    pub queues: usize,
    /// Background threads that apply changes.
    pub threads: usize,
    /// Whether leaves of the tree are changed in hardware transactions: where the machine has them, they commit, and the
    /// options do not say otherwise.
    pub transactions: bool,
    /// Transactions that were aborted. What they were for was done without.
    pub transactions_aborted: u64,
    /// How many of them work, by the last decision; the others sleep.
    pub threads_working: usize,
    /// How many of them are not asleep just now.
    pub threads_awake: usize,
    /// Decisions how many work: one at the end of each sampling window.
    pub decisions: u64,
    /// What the last one was made of.
    pub last_window: OrderWindow,
    /// Trees, each with a range of the keys.
    pub trees: usize,
}

/// What was sampled to decide how many background threads apply changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct OrderWindow {
    /// How long it lasted, in nanoseconds.
    pub duration_ns: u64,
    /// Changes that were queued meanwhile.
    pub arrivals: u64,
    /// Nanoseconds in which a background thread applied one of them, on average.
    pub apply_ns: u64,
}
