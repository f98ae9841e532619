//! The data files: those that lines are written back to.

use std::io;
use std::sync::Arc;

use super::{Journal, Lines, lock};
use crate::environment::File;

/// A part of a file, and where it lies in the pool.
#[derive(Clone, Debug)]
pub(super) struct DataFile {
    at: u64,
    length: u64,
    file: Arc<dyn File>,
    file_offset: u64,
}

impl Journal {
    /// From now on lines from `at` on are written back to `file`.
    pub(crate) fn add_data_file(
        &self,
        at: u64,
        file: &Arc<dyn File>,
        file_offset: u64,
        length: u64,
    ) {
        lock(&self.data_files).push(DataFile { at, length, file: Arc::clone(file), file_offset });
    }

    /// Writes lines to their data files, and syncs these.
    ///
    /// # Durability
    /// Durable on return.
    pub(super) fn write_to_files(&self, lines: &Lines) -> io::Result<()> {
        let files = lock(&self.data_files).clone();
        let mut written = vec![false; files.len()];
        lines.for_each_run(|at, bytes| {
            let end = at + bytes.len() as u64;
            // The files follow each other without a gap, in ascending order.
            let first = files.partition_point(|file| file.at + file.length <= at);
            let mut from = at;
            for (file, written) in files.iter().zip(&mut written).skip(first) {
                if from >= end {
                    break;
                }
                let to = end.min(file.at + file.length);
                let part = &bytes[(from - at) as usize..(to - at) as usize];
                file.file.write_at(file.file_offset + (from - file.at), part)?;
                *written = true;
                from = to;
            }
            if from == end { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
        })?;
        let synced = files.iter().zip(&written).filter(|(_, written)| **written);
        synced.map(|(file, _)| file).try_for_each(|file| file.file.sync())
    }
}
