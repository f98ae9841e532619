//! Plain data that every room speaks of: options, errors, reports. No behaviour of a store.

pub(crate) mod check;
pub(crate) mod error;
pub(crate) mod inspect;
pub(crate) mod operations;
pub(crate) mod options;
pub(crate) mod runs;
pub(crate) mod stats;
pub(crate) mod stream;
pub(crate) mod swap;
