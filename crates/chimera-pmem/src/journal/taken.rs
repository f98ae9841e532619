//! Places that are taken: what is stored there goes to the data file at once, and passes no journal, until the next sync.
//!
//! A place in which nothing was is of no use to anybody before something else leads to it. So what is stored there need not
//! wait for an entry. Its pages are mapped so that stores reach the file: after the end of the process everything is there.
//! What is long is [written](crate::Pmem::copy) to the file instead: the mapping shows it as if it was stored.
//! After a power loss anything may be. So an entry says that the place was taken, before anybody uses it; and after a power loss
//! the journal ends there, unless it is known that a sync has come since.
//!
//! A [sync](super::sync) takes all places back first: their pages are private again, and what is stored from then on passes the
//! journal. It syncs the data files; says in an entry that what was taken before is in its place; and syncs the journal.
//!
//! # Invariants
//! 1. **Nothing is lost that a crash may need.** In no state that a crash can bring back does a place mean anything: it was
//!    [emptied](Fenced) by an entry before a `start` that is in force.
//! 2. **No entry goes over it.** None that is pending names a page when it is taken, and none that is appended names one that
//!    is shared: both are looked at under the lock of the tail. So no checkpoint writes over what was stored meanwhile.
//! 3. **A journal that does not end at the entry has its content.** What says so is the entry of a sync that took the place
//!    back first and then synced its file, or a later one that says that the journal was synced.
//! 4. **The content is not ahead of the journal.** What a thread stored to a place may rest upon an entry that was appended
//!    before. Places are taken back before the entry that says so is appended, and meanwhile no other place is taken: so every
//!    such entry lies before the next one that a power loss could end the journal at.
//! 5. **A fence without an entry is covered.** While a page is shared, the entry of its place is behind the last sync, or the
//!    sync that is under way takes the page back later, and syncs its file.
//!
//! Pages that were stored to since they were mapped or given back are not taken: they are in memory.
//!
//! Only where operations do not wait for a sync: a place would be taken back before there is anything in it.

use std::io;
use std::ops::Range;
use std::sync::atomic::Ordering;

use super::entry::{
    DIRECT_LINES_MAX, Direct, Left, Plan, Run, Says, bytes_max, direct_bytes_max, leave_out,
};
use super::marks::NewRuns;
use super::{Fenced, Journal, SyncPolicy, lock};
use crate::pages::{Pages, steps};
use crate::{CACHE_LINE, Extent};

/// Places that were taken and not taken back.
#[derive(Debug, Default)]
pub(super) struct Taken {
    places: Vec<Range<u64>>,
    /// They are being taken back: nobody takes another one.
    is_ending: bool,
    /// Those who need the lock of the tail while they sync, and failures: nobody takes a place.
    paused: u32,
}

/// Nobody takes a place before this is dropped.
pub(super) struct Paused<'a>(&'a Journal);

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        lock(&self.0.taken).paused -= 1;
    }
}

impl Journal {
    /// From now on no place is taken: everything is written from entries, or ahead of them.
    pub fn take_no_places(&self) {
        self.takes_none.store(true, Ordering::Relaxed);
    }

    /// See [`Pmem::take_new`](crate::Pmem::take_new).
    ///
    /// # Cost
    /// A load for each whole page of `range`. Nothing else if these were taken before; else one lock, an entry, and a system call
    /// for the rest of `ahead`, or for each part of `range` between pages that are in memory.
    pub(crate) fn take_new(&self, range: Extent, ahead: Extent, emptied: Fenced) {
        let SyncPolicy::Group { .. } = self.policy else { return };
        if self.takes_none.load(Ordering::Relaxed) {
            return;
        }
        let Some(pages) = self.pages.get() else { return };
        let page = pages.page_bytes();
        let end = ahead.end() / page;
        // The first page counts in any case: who takes much ahead asks for less than a page at a time.
        let asked = range.offset().div_ceil(page)..(range.end() / page).min(end);
        let asked = asked.start..asked.end.max(asked.start + 1).min(end);
        let Some(first) = asked.clone().find(|number| !pages.is_shared(*number)) else { return };
        // After the end of a process nothing else says that no power was lost.
        let is_known = self.header.boot_id != 0;
        if !is_known {
            return;
        }
        if !self.writes_new((end - first) * page) || !self.is_written_back(emptied) {
            return;
        }
        let mut next = Some(first);
        while let Some(first) = next.filter(|next| *next < asked.end) {
            next = self.take(pages, first..asked.end, end).unwrap_or_else(|error| {
                self.fail(&error);
                None
            });
        }
    }

    /// Takes pages that begin with the first one of some that can be taken, and may go on to `end`: as many as follow each other
    /// and an entry holds. The page to go on with; `None` where nobody may take one now.
    fn take(&self, pages: &Pages, asked: Range<u64>, end: u64) -> io::Result<Option<u64>> {
        let page = pages.page_bytes();
        let mut tail = lock(&self.tail);
        // What was stored to before, and is in memory, needs no other page, and its content would have to be written.
        let Some(numbers) = pages.shareable(asked, end, self.start_at()) else { return Ok(None) };
        let bytes = (numbers.end - numbers.start) * page;
        let target =
            self.target(numbers.start * page, bytes.min(direct_bytes_max(self.capacity())))?;
        let numbers = numbers.start..numbers.start + target.length / page;
        let place = numbers.start * page..numbers.end * page;
        let lines = place.start / CACHE_LINE..place.end / CACHE_LINE;
        let direct: Vec<_> = lines
            .clone()
            .step_by(DIRECT_LINES_MAX as usize)
            .map(|first| Direct {
                run: Run { first, count: (lines.end - first).min(DIRECT_LINES_MAX) },
                file: target.number,
                line_in_file: target.offset / CACHE_LINE + (first - lines.start),
                checksum: Direct::TAKEN,
            })
            .collect();
        let mut left = Left { direct: &direct, runs: &[], cut: 0 };
        tail.plan.take(&mut left, bytes_max(self.capacity()));
        let has_room = tail.plan.bytes() as u64 <= self.free_bytes();
        let has_failed = self.has_failed.load(Ordering::Acquire);
        let mut taken = lock(&self.taken);
        let is_closed = taken.is_ending || taken.paused > 0;
        if place.is_empty() || !has_room || has_failed || is_closed {
            return Ok(None);
        }
        let next = numbers.end;
        match pages.share(numbers, &*target.file, target.offset) {
            Ok(true) => {}
            Ok(false) => return Ok(Some(next)),
            Err(error) => {
                log::debug!("what is stored passes the journal: {error}");
                return Ok(None);
            }
        }
        taken.places.push(place);
        self.has_taken.store(true, Ordering::Relaxed);
        drop(taken);
        self.write_entry(&mut tail, Some(&[]), Says::Synced(self.durable()), &|_, _| ())?;
        Ok(Some(next))
    }

    /// Takes all places back, and lets nobody take one: a sync needs the lock of the tail only where there are some.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub(super) fn pause_taking(&self) -> io::Result<Paused<'_>> {
        let paused = {
            // Whoever is taking a place has appended its entry then.
            let _tail = lock(&self.tail);
            lock(&self.taken).paused += 1;
            Paused(self)
        };
        // What entries of places are before, a sync that has taken one back is under way or over.
        self.sync_to(self.tail_at())?;
        Ok(paused)
    }

    /// Takes all places back; where what says so [goes](Self::say_in_place). The data files are to be synced before.
    pub(super) fn end_taken(&self) -> io::Result<Option<u64>> {
        if !self.take_back()? {
            return Ok(None);
        }
        let _tail = lock(&self.tail);
        let mut taken = lock(&self.taken);
        taken.is_ending = false;
        self.has_taken.store(false, Ordering::Relaxed);
        Ok(Some(self.tail_at()))
    }

    /// Before the journal appends nothing any more: what is stored to places that are taken would be in their file all the same.
    pub(super) fn take_back_for_ever(&self) {
        // First: whoever takes a place later is refused, and what was taken before is taken back.
        lock(&self.taken).paused += 1;
        if let Err(error) = self.take_back() {
            log::error!("stores go on to reach the file: {error}");
        }
    }

    /// Takes all places back, and lets nobody take one; `false` if there is none.
    fn take_back(&self) -> io::Result<bool> {
        let _one = lock(&self.taking_back);
        let mut places = {
            let mut taken = lock(&self.taken);
            if taken.places.is_empty() {
                return Ok(false);
            }
            taken.is_ending = true;
            std::mem::take(&mut taken.places)
        };
        places.sort_unstable_by_key(|place| place.start);
        places.dedup_by(|next, before| {
            let is_next = before.end == next.start;
            if is_next {
                before.end = next.end;
            }
            is_next
        });
        let Some(pages) = self.pages.get() else { return Ok(false) };
        places.into_iter().try_for_each(|place| self.take_back_place(pages, place))?;
        Ok(true)
    }

    fn take_back_place(&self, pages: &Pages, mut place: Range<u64>) -> io::Result<()> {
        let page = pages.page_bytes();
        while !place.is_empty() {
            let target = self.target(place.start, place.end - place.start)?;
            let part = place.start..place.start + target.length;
            let numbers = part.start / page..part.end / page;
            if !pages.skips(steps::TAKEN_ENDS) {
                let wait = |attempt| self.relax(attempt);
                pages.unshare(numbers, &*target.file, target.offset, wait)?;
            }
            target.unsynced.store(true, Ordering::SeqCst);
            place.start = part.end;
        }
        Ok(())
    }

    /// Says in an entry that what was taken before `position` is in its place, durably; up to where entries are, if nobody has
    /// appended one since.
    pub(super) fn say_in_place(&self, position: u64) -> io::Result<u64> {
        let mut tail = lock(&self.tail);
        let begun = self.tail_at();
        let mut nothing = Left { direct: &[], runs: &[], cut: 0 };
        tail.plan.take(&mut nothing, bytes_max(self.capacity()));
        let end = self.write_entry(&mut tail, Some(&[]), Says::Placed(position), &|_, _| ())?;
        Ok(if begun == position { end } else { position })
    }

    /// Leaves what was stored to places that are taken out of an entry that is planned; how many bytes.
    pub(super) fn leave_taken_out(&self, plan: &mut Plan) -> u64 {
        let Some(pages) = self.pages_with_taken() else { return 0 };
        let page_lines = pages.page_bytes() / CACHE_LINE;
        plan.leave_out(page_lines, |page| pages.is_shared(page)) * CACHE_LINE
    }

    /// Leaves it out of what is to be written ahead of an entry.
    pub(super) fn leave_taken_places(&self, new: &mut NewRuns) {
        let Some(pages) = self.pages_with_taken() else { return };
        let page_lines = pages.page_bytes() / CACHE_LINE;
        let is_shared = |page| pages.is_shared(page);
        let lines = leave_out(&mut new.flushed, &mut new.spare, page_lines, is_shared);
        self.direct_bytes.fetch_add(lines * CACHE_LINE, Ordering::Relaxed);
    }

    fn pages_with_taken(&self) -> Option<&Pages> {
        let pages = self.pages.get()?;
        self.has_taken.load(Ordering::Relaxed).then_some(pages)
    }

    /// Writes what was just stored to a place that is taken, where its file is not mapped.
    pub(crate) fn write_taken(&self, at: u64, bytes: &[u8]) {
        if let Err(error) = self.try_write_taken(at, bytes) {
            // In the middle of a store, which whoever takes places back would wait for.
            self.fail_at_once(&error);
        }
    }

    /// Writes to a place that is taken.
    ///
    /// # Errors
    /// What the file says, also where it ends inside. A part may be written.
    pub(crate) fn try_write_taken(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let target = self.target(at, bytes.len() as u64)?;
        if target.length < bytes.len() as u64 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        target.file.write_stored(target.offset, bytes)
    }
}
