//! Keys, values and mixes of operations; pure arithmetic.

mod mix;
mod random;
mod records;
mod zipfian;

pub use mix::{Draw, Mix, Operation, Shared};
pub use random::Random;
pub use records::{Values, key};
