//! The `chimera` command.
#![forbid(unsafe_code)]
fn main() {}
