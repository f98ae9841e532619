//! The pool: superblock, segments, blocks, and the opaque [`Location`].

mod location;

pub use location::Location;
