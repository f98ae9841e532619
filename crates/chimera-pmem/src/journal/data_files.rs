//! The data files: those that lines are written back to, and that pages given back come from.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::direct::Target;
use super::{Journal, Lines, damaged, lock};
use crate::environment::File;
use crate::pages::{Backing, Pages};

/// Most data files that an entry can name.
const FILES_MAX: usize = u16::MAX as usize + 1;

/// A part of a file, and where it lies in the pool.
#[derive(Clone, Debug)]
pub(super) struct DataFile {
    at: u64,
    length: u64,
    file: Arc<dyn File>,
    file_offset: u64,
    /// It has lines that were written ahead of their entry, and that no sync has covered.
    unsynced: Arc<AtomicBool>,
}

impl DataFile {
    fn backing(&self) -> Backing {
        if self.file.descriptor().is_some() { Backing::Mapped } else { Backing::Copied }
    }
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
        let (file, unsynced) = (Arc::clone(file), Arc::default());
        let mut files = lock(&self.data_files);
        files.push(DataFile { at, length, file, file_offset, unsynced });
        if files.len() > FILES_MAX {
            // Entries cannot name it: everything passes the journal from now on.
            self.write_new_from(u64::MAX);
        }
    }

    /// Where lines of the pool from `at` on lie: `length` bytes, or fewer where the file ends.
    pub(super) fn target(&self, at: u64, length: u64) -> io::Result<Target> {
        let files = lock(&self.data_files);
        let number = files.partition_point(|file| file.at + file.length <= at);
        let outside = || damaged("bytes outside of all data files are written".to_owned());
        let found = files.get(number).filter(|file| file.at <= at).ok_or_else(outside)?;
        Ok(Target {
            number: u16::try_from(number).map_err(|_| outside())?,
            file: found.file.clone(),
            offset: found.file_offset + (at - found.at),
            length: length.min(found.at + found.length - at),
            unsynced: found.unsynced.clone(),
        })
    }

    /// The files with lines that were written ahead of their entry and that no sync has covered. The caller syncs them.
    pub(super) fn take_unsynced(&self) -> Vec<Arc<dyn File>> {
        let files = lock(&self.data_files);
        let unsynced = files.iter().filter(|file| file.unsynced.swap(false, Ordering::SeqCst));
        unsynced.map(|file| file.file.clone()).collect()
    }

    /// Writes lines to their data files, and syncs these.
    ///
    /// # Durability
    /// Durable on return.
    pub(super) fn write_to_files(&self, lines: &Lines) -> io::Result<()> {
        let files = lock(&self.data_files).clone();
        let pages = self.pages.get();
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
                if let (Some(pages), Backing::Copied) = (pages, file.backing()) {
                    pages.show(from, part);
                }
                *written = true;
                from = to;
            }
            if from == end { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
        })?;
        let synced = files.iter().zip(&written).filter(|(_, written)| **written);
        synced.map(|(file, _)| file).try_for_each(|file| self.sync_data(|| file.file.sync()))
    }

    /// Gives back those of consecutive pages whose content is in their files. All entries up to `reached` are written
    /// back. `content` is used again and again.
    ///
    /// # Errors
    /// What a file says when it is read: the pages are not given back.
    pub(super) fn give_back_run(
        &self,
        pages: &Pages,
        run: Range<u64>,
        reached: u64,
        content: &mut Vec<u8>,
    ) -> io::Result<()> {
        let page = pages.page_bytes();
        let (start, end) = (run.start * page, run.end * page);
        let files = lock(&self.data_files).clone();
        let first = files.partition_point(|file| file.at + file.length <= start);
        for file in files[first..].iter().take_while(|file| file.at < end) {
            let (from, to) = (start.max(file.at), end.min(file.at + file.length));
            content.resize((to - from) as usize, 0);
            // Before the pages are held: a read may take long. A thread that writes new lines meanwhile has stored them to memory
            // before, so their page differs from what is read here, and afterwards an entry that is pending names it.
            file.file.read_at(file.file_offset + (from - file.at), content)?;
            pages.give_back(from / page, content, reached, file.backing());
        }
        Ok(())
    }

    /// Lets go of all pages that memory holds for reading only.
    pub(super) fn forget_clean_pages(&self) {
        let Some(pages) = self.pages.get() else { return };
        let files = lock(&self.data_files).clone();
        let mapped = files.iter().filter(|file| file.backing() == Backing::Mapped);
        mapped.for_each(|file| pages.forget_clean(file.at..file.at + file.length));
    }
}
