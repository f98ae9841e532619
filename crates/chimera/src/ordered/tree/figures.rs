//! [`TreeFigures`]: how large a tree is.

use super::Tree;

/// How large a tree is; while others change it, roughly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeFigures {
    /// Keys.
    pub(crate) keys: u64,
    /// Leaves.
    pub(crate) leaves: u64,
    /// Nodes above leaves.
    pub(crate) inner_nodes: u64,
    /// Nodes that were used and are free.
    pub(crate) free_nodes: u64,
    /// Levels, 0 before the first key.
    pub(crate) height: u32,
    /// Bytes of memory, with free nodes.
    pub(crate) bytes: u64,
    /// Keys, separators and fences that are too long for a node.
    pub(crate) long_keys: u64,
    /// Leaves are changed in hardware transactions.
    pub(crate) transactions: bool,
    /// Of those, aborted ones.
    pub(crate) transactions_aborted: u64,
}

impl TreeFigures {
    /// Of two trees together.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            keys: self.keys + other.keys,
            leaves: self.leaves + other.leaves,
            inner_nodes: self.inner_nodes + other.inner_nodes,
            free_nodes: self.free_nodes + other.free_nodes,
            height: self.height.max(other.height),
            bytes: self.bytes + other.bytes,
            long_keys: self.long_keys + other.long_keys,
            transactions: self.transactions,
            transactions_aborted: self.transactions_aborted + other.transactions_aborted,
        }
    }
}

impl Tree {
    /// How large the tree is.
    ///
    /// # Cost
    /// Some 20 lines, whatever the size.
    pub(crate) fn figures(&self) -> TreeFigures {
        let counts = self.nodes.counts();
        let used = counts.given - counts.free;
        TreeFigures {
            keys: self.keys.get(),
            leaves: u64::from(used - counts.inner),
            inner_nodes: u64::from(counts.inner),
            free_nodes: u64::from(counts.free),
            height: self.nodes.root().map_or(0, |root| root.header().level + 1),
            bytes: self.nodes.bytes(),
            long_keys: self.nodes.context.long_keys.count(),
            transactions: self.elision.is_in_force(),
            transactions_aborted: self.elision.aborted(),
        }
    }
}
