//! [`Swap`]: the outcome of a compare-and-swap.

/// The outcome of a compare-and-swap of a whole value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swap {
    /// The value was as expected and has been replaced.
    Swapped,
    /// The value is another one; nothing was changed.
    Different,
    /// There is no such key.
    Missing,
}
