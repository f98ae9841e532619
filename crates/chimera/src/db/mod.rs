//! What a user sees.

pub mod check;
pub mod error;
pub mod options;
pub mod stats;
