//! Allocation of nodes in persistent memory, as a primitive of its own (E5, I5).
//!
//! - [`PerNode`]: each node by itself, with a redo record, so that a crash between taking a node and linking it loses nothing:
//!   what a general allocator with atomic allocations does.
//! - [`Grouped`]: nodes of a group that was allocated as a whole, by one bit each (FPTree). A crash may leave a bit without a
//!   link; the owner, who knows what is linked, clears it when it recovers.

mod grouped;
mod per_node;
pub mod sites;

#[cfg(test)]
mod tests;

pub use grouped::Grouped;
pub use per_node::PerNode;
