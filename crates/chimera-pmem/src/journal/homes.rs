//! The files that lines belong to.

use std::io;
use std::sync::Arc;

use super::{Journal, Lines, lock};
use crate::environment::File;

/// A part of a file, and where it lies in the pool.
#[derive(Clone, Debug)]
pub(super) struct Home {
    at: u64,
    length: u64,
    file: Arc<dyn File>,
    file_offset: u64,
}

impl Journal {
    /// From now on lines from `at` on belong to `file`.
    pub(crate) fn add_home(&self, at: u64, file: &Arc<dyn File>, file_offset: u64, length: u64) {
        lock(&self.homes).push(Home { at, length, file: Arc::clone(file), file_offset });
    }

    /// Writes lines where they belong.
    ///
    /// # Durability
    /// Durable on return.
    pub(super) fn write_home(&self, lines: &Lines) -> io::Result<()> {
        let homes = lock(&self.homes).clone();
        let mut written = vec![false; homes.len()];
        lines.for_each_run(|at, bytes| {
            let end = at + bytes.len() as u64;
            // Homes follow each other without a gap, in ascending order.
            let first = homes.partition_point(|home| home.at + home.length <= at);
            let mut from = at;
            for (home, written) in homes.iter().zip(&mut written).skip(first) {
                if from >= end {
                    break;
                }
                let to = end.min(home.at + home.length);
                let part = &bytes[(from - at) as usize..(to - at) as usize];
                home.file.write_at(home.file_offset + (from - home.at), part)?;
                *written = true;
                from = to;
            }
            if from == end { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
        })?;
        let synced = homes.iter().zip(&written).filter(|(_, written)| **written);
        synced.map(|(home, _)| home).try_for_each(|home| home.file.sync())
    }
}
