//! The pool: superblock, segments, blocks, and the opaque [`Location`].

mod location;
mod superblock;

pub use location::Location;
