//! Pages whose stores go to their file at once: [taken](crate::journal::taken), until the next sync.

use std::io;
use std::ops::Range;
use std::sync::atomic::Ordering;

use super::{Page, Pages, page_state, steps};
use crate::environment::File;
use crate::mapping::{Sharing, words};

impl Pages {
    /// Pages that can be shared and follow each other, before `end`, the first of them one of those asked for: without stores of
    /// their own, and which no entry names behind `reached`. `None` if none of those is one.
    pub(crate) fn shareable(
        &self,
        mut asked: Range<u64>,
        end: u64,
        reached: u64,
    ) -> Option<Range<u64>> {
        let skips = self.skips(steps::TAKEN_UNNAMED);
        let is_free = |number: &u64| {
            let page: &Page = self.page(*number);
            page_state::is_clean(&page.state) && (skips || !page.is_pending(reached))
        };
        let first = asked.find(is_free)?;
        let count = (first..end).take_while(is_free).count();
        Some(first..first + count as u64)
    }

    /// Lets what is stored to clean pages go to their file, from `offset` on. Readers see no change. Called under the lock that
    /// orders entries, of which none that is pending names one. Whether it is done: nothing changes where somebody is at a page.
    ///
    /// # Errors
    /// When the pages cannot be mapped; nothing has changed.
    pub(crate) fn share(
        &self,
        pages: Range<u64>,
        file: &dyn File,
        offset: u64,
    ) -> io::Result<bool> {
        let is_held = |number: &u64| page_state::try_hold_clean(&self.page(*number).state);
        let count = pages.clone().take_while(is_held).count() as u64;
        let held = pages.start..pages.start + count;
        let is_all = held == pages;
        let mapped =
            if is_all { self.map_again(pages, file, offset, Sharing::Shared) } else { Ok(()) };
        let is_shared = is_all && mapped.is_ok();
        let end = if is_shared { page_state::share } else { page_state::keep };
        held.for_each(|number| end(&self.page(number).state));
        mapped.map(|()| is_shared)
    }

    fn map_again(
        &self,
        pages: Range<u64>,
        file: &dyn File,
        offset: u64,
        sharing: Sharing,
    ) -> io::Result<()> {
        let Some(descriptor) = file.descriptor() else {
            // What is stored is written.
            self.writes_through.store(true, Ordering::Relaxed);
            return Ok(());
        };
        let (at, length) =
            (pages.start * self.page_bytes, (pages.end - pages.start) * self.page_bytes);
        self.memory.map_again(at as usize, length as usize, descriptor, offset, sharing)?;
        // New storage: nobody reads what lies there.
        let is_alone = sharing == Sharing::Shared || self.reads_alone.load(Ordering::Relaxed);
        if is_alone && let Err(error) = self.memory.advise_random(at as usize, length as usize) {
            log::debug!("more is read than is asked for at offset {at}: {error}");
        }
        Ok(())
    }

    /// Keeps what is stored to some shared pages in memory from now on. Everything stored before is in the file, from
    /// `offset` on. `wait` lets others run; it is given the number of the attempt. Called by one thread at a time.
    ///
    /// # Errors
    /// When the pages cannot be mapped. Then they stay shared.
    pub(crate) fn unshare(
        &self,
        pages: Range<u64>,
        file: &dyn File,
        offset: u64,
        wait: impl Fn(u32),
    ) -> io::Result<()> {
        for number in pages.clone() {
            let mut attempt = 0;
            page_state::hold_shared(&self.page(number).state, || {
                wait(attempt);
                attempt += 1;
            });
        }
        let mapped = self.map_again(pages.clone(), file, offset, Sharing::Private);
        let end = if mapped.is_ok() { page_state::unshare } else { page_state::keep };
        pages.for_each(|number| end(&self.page(number).state));
        mapped
    }

    /// Whether what is stored to a page goes to its file.
    #[inline]
    pub(crate) fn is_shared(&self, number: u64) -> bool {
        page_state::is_shared(&self.page(number).state)
    }

    /// Calls `visit` for each part of a range in turn, with where it begins and ends and whether what is stored there goes to a
    /// file that is mapped. Parts end where pages do.
    pub(crate) fn for_parts(&self, at: u64, length: u64, mut visit: impl FnMut(Range<u64>, bool)) {
        let is_mapped = !self.writes_through.load(Ordering::Relaxed);
        let end = at + length;
        let mut start = at;
        while start < end {
            let is_shared = |page: u64| is_mapped && self.is_shared(page);
            let first = start / self.page_bytes;
            let is_first = is_shared(first);
            let pages = self.touched(start, end - start);
            let others = pages.take_while(|page| is_shared(*page) == is_first).count() as u64;
            let part = start..end.min((first + others) * self.page_bytes);
            start = part.end;
            visit(part, is_first);
        }
    }

    /// Calls `write` for each part of a range, just stored to, whose page is shared and of a file that is not mapped.
    #[inline]
    pub(crate) fn write_through(&self, at: u64, length: u64, write: impl Fn(u64, &[u8])) {
        if self.writes_through.load(Ordering::Relaxed) {
            self.write_shared(at, length, write);
        }
    }

    #[cold]
    fn write_shared(&self, at: u64, length: u64, write: impl Fn(u64, &[u8])) {
        for number in self.touched(at, length).filter(|number| self.is_shared(*number)) {
            let page = number * self.page_bytes;
            let start = at.max(page);
            let end = (at + length).next_multiple_of(8).min(page + self.page_bytes);
            let mut content = vec![0; (end - start) as usize];
            let words =
                &self.words(number)[((start - page) / 8) as usize..((end - page) / 8) as usize];
            words::read(words, &mut content);
            write(start, &content);
        }
    }
}
