//! What was measured: plain data that drivers fill in and reports print. Knows no store, no clock and no
//! arguments.
//!
//! - `measured`: one phase of one pass; `series`: all passes of one kind of work on one engine.
//! - `rows`: what a report says of them; `statistics`: medians, ranges, ratios.
//! - `machine`: where it ran. `study`: what the primitives study measured.

pub(crate) mod machine;
pub(crate) mod measured;
pub(crate) mod rows;
pub(crate) mod series;
pub(crate) mod statistics;
pub(crate) mod study;
