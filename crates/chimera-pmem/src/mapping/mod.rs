//! Memory that files are mapped into, and copies to and from it: what mapped backends, the journal and
//! DAX devices are made of. Knows no pool and no order of stores.
//!
//! - `reservation`: address space reserved once, mapped piece by piece.
//! - `window`: a part of a file mapped apart from a pool.
//! - `words`: copies between private bytes and shared words.

mod reservation;
mod window;
pub(crate) mod words;

#[cfg(test)]
mod tests;

pub(crate) use reservation::{Reservation, Sharing, Source};
pub(crate) use window::Window;
