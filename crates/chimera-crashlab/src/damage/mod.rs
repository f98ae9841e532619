//! Damaged stores: bits, words, lines, pages and files that are zeroed, random, exchanged, repeated or of an older
//! moment. The oracle: no live record is missing, older, wrong or back from the dead unless something says so.
//!
//! # Rooms
//! - `image`: the files of a store, as bytes. `places`: which structure each word of them belongs to, by docs/FORMAT.md.
//! - `history`: what a store holds, and what it held before. `machine`: memory and files that a store is opened on.
//! - `life`: stores made by random operations over several lives. `harm`: what is done to the files of one.
//! - `look`: opening a store and reading all of it in every way. `verdict`: what that may show, with the named
//!   allowances for what a format cannot tell.
//! - `campaign`: many cases, by number. `tally`: what came of them.

mod campaign;
mod harm;
mod history;
mod image;
mod life;
mod look;
mod machine;
mod places;
mod tally;
#[cfg(test)]
mod tests;
mod verdict;

pub(crate) use campaign::Campaign;
pub(crate) use harm::Kind;
pub(crate) use look::Step;
pub(crate) use tally::{Counts, Tally};
