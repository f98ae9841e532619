//! The pool: superblock, segments, blocks, and the opaque [`Location`].

mod blocks;
mod files;
mod location;
mod superblock;

pub use location::Location;
