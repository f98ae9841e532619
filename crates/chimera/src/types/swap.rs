//! [`Swap`]: the outcome of a compare-and-swap, and [`Content`]: what it compares and stores.

/// The outcome of a compare-and-swap of a whole value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swap {
    /// The value was as expected and has been replaced.
    Swapped,
    /// There is another value, or one where none was expected; nothing was changed.
    Different,
    /// There is no such key, where a value was expected; nothing was changed.
    Missing,
}

/// What a key has, for a compare-and-swap: a value, which is anything that is bytes, or [`Absent`].
pub trait Content {
    /// The value; `None` where the key is not there.
    fn value(&self) -> Option<&[u8]>;
}

impl<T: AsRef<[u8]>> Content for T {
    fn value(&self) -> Option<&[u8]> {
        Some(self.as_ref())
    }
}

/// That there is no such key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absent;

impl Content for Absent {
    fn value(&self) -> Option<&[u8]> {
        None
    }
}
