//! Damaged, foreign and missing files, wrong calls, wrong options, full disks: each a clear error or
//! a clean recovery, never a panic, a wrong value or a loss.

#[path = "../tools/mod.rs"]
mod tools;

mod access;
mod closing;
mod collisions;
mod full;
mod fuzz;
mod missing;
mod missing_index;
mod options;
mod pages;
mod planted;
mod refused;
mod salvage_tables;
mod segments;
mod sparse;
mod superblock;
mod unexplained;
mod words;
