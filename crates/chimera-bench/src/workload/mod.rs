//! What is done to a store: which keys, which values, in which order. Knows nothing of stores.
//!
//! Records have numbers. Keys and values follow from the number by arithmetic, so that nothing is
//! looked up while the clock runs and every record can be checked afterwards.

pub(crate) mod distribution;
pub(crate) mod keys;
pub(crate) mod mix;
pub(crate) mod random;
pub(crate) mod sizes;
pub(crate) mod values;
pub(crate) mod zipfian;

pub use distribution::Distribution;
pub use keys::Keys;
pub use mix::Mix;
pub use sizes::Sizes;
pub use values::Values;
pub use zipfian::Zipfian;
