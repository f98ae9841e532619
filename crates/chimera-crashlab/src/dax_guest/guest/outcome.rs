//! [`Outcome`]: what everything in the guest returns.

/// A value, or whatever went wrong, for the host to print.
pub(super) type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;
