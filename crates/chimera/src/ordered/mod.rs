//! Ordered indexes in DRAM: whole keys in the order of their bytes. They are lost with the process and
//! rebuilt from the records.
//!
//! # Rooms
//! - `tree/`: a B+-tree that many threads use at the same time.
//!
//! # What is deliberately absent
//! Nothing here depends on a record format, on an engine or on the layout of a pool. A payload is a number.
#![cfg_attr(
    not(test),
    expect(dead_code, unused_imports, reason = "engines use it when they are here")
)]

mod tree;
