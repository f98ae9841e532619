//! Where record bytes live. Never knows which index points at them.

pub(crate) mod vpage;
