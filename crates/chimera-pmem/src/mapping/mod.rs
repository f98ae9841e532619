//! Memory that files are mapped into, and copies to and from it: what mapped backends, the journal and
//! DAX devices are made of. Knows no pool and no order of stores.
//!
//! - `place`: where in the address space a range has room to grow; `addresses`: a range that is reserved there.
//! - `reservation`: reserved addresses, mapped piece by piece.
//! - `limits`: which limit was met.
//! - `window`: a part of a file mapped apart from a pool.
//! - `words`: copies between private bytes and shared words.

mod addresses;
mod limits;
mod place;
mod reservation;
mod window;
pub(crate) mod words;

#[cfg(test)]
mod tests;

pub(crate) use addresses::Addresses;
pub use limits::limit_of_memory;
pub(crate) use limits::{no_thread, refused};
pub(crate) use reservation::{Reservation, Sharing, Source};
pub(crate) use window::Window;
