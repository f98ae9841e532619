//! Where record bytes live. Never knows which index points at them.

pub(crate) mod block_flags;
pub(crate) mod vpage;
