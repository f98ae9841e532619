//! What every store must do, whatever its engine: written once, run for each configuration of
//! [`configurations`].
//!
//! A test says which capabilities it needs, and is skipped where a configuration lacks one; the skip names it.
//! `cargo test -p chimera --test conformance -- --table` runs everything and prints the results as a table.
//! What an engine alone promises is in tests of its own.

#[path = "../tools/mod.rs"]
mod tools;

mod configurations;
mod harness;
mod records;

mod acknowledged;
mod arguments;
mod atomic_batch;
mod changes;
mod clocks;
mod concurrency;
mod conditional;
mod damage;
mod fixed_size;
mod full;
mod in_place;
mod keyspaces;
mod listing;
mod model;
mod opening;
mod order_kept;
mod ordered;
mod outside;
mod read_only;
mod rebuild;
mod reclamation;
mod reopening;
mod reports;
mod transactions;
mod transfer;
mod verification;

use std::process::ExitCode;

use harness::Theme;

/// Every theme. One without tests is a promise that no engine makes yet.
const THEMES: &[Theme] = &[
    Theme { name: "opening", tests: opening::TESTS },
    Theme { name: "outside", tests: outside::TESTS },
    Theme { name: "clocks", tests: clocks::TESTS },
    Theme { name: "model", tests: model::TESTS },
    Theme { name: "arguments", tests: arguments::TESTS },
    Theme { name: "reopening", tests: reopening::TESTS },
    Theme { name: "concurrency", tests: concurrency::TESTS },
    Theme { name: "conditional", tests: conditional::TESTS },
    Theme { name: "acknowledged", tests: acknowledged::TESTS },
    Theme { name: "damage", tests: damage::TESTS },
    Theme { name: "full", tests: full::TESTS },
    Theme { name: "read_only", tests: read_only::TESTS },
    Theme { name: "listing", tests: listing::TESTS },
    Theme { name: "transfer", tests: transfer::TESTS },
    Theme { name: "verification", tests: verification::TESTS },
    Theme { name: "reports", tests: reports::TESTS },
    Theme { name: "changes", tests: changes::TESTS },
    Theme { name: "reclamation", tests: reclamation::TESTS },
    Theme { name: "fixed_size", tests: fixed_size::TESTS },
    Theme { name: "in_place", tests: in_place::TESTS },
    Theme { name: "keyspaces", tests: keyspaces::TESTS },
    Theme { name: "ordered", tests: ordered::TESTS },
    Theme { name: "order_kept", tests: order_kept::TESTS },
    Theme { name: "rebuild", tests: rebuild::TESTS },
    Theme { name: "atomic_batch", tests: atomic_batch::TESTS },
    Theme { name: "transactions", tests: transactions::TESTS },
    Theme { name: "snapshots", tests: &[] },
];

fn main() -> ExitCode {
    harness::run(THEMES, configurations::ALL)
}
