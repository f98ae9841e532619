//! Batches where there is little room.
