//! [`Lines`]: the newest content of every line that a part of a journal names.

use std::io;
use std::ops::Range;

use crate::CACHE_LINE;

/// Bytes of a line.
const LINE: usize = CACHE_LINE as usize;
/// Most bytes to hand out at a time.
const RUN_BYTES_MAX: usize = 256 << 10;

/// Lines of a pool with their content.
#[derive(Debug, Default)]
pub struct Lines {
    /// Number of a line, and which content it has.
    order: Vec<(u64, u32)>,
    content: Vec<u8>,
    /// Runs that lie in their place: first line, number of lines.
    direct: Vec<(u64, u64)>,
}

impl Lines {
    pub(super) fn clear(&mut self) {
        self.order.clear();
        self.content.clear();
        self.direct.clear();
    }

    /// Notes lines that lie in their place.
    pub(super) fn note_direct(&mut self, first: u64, count: u64) {
        self.direct.push((first, count));
    }

    /// Forgets all but the first `count` lines that were added. They are not [folded](Self::fold).
    pub(super) fn truncate(&mut self, count: usize) {
        self.order.truncate(count);
        self.content.truncate(count * LINE);
    }

    /// Lines that were added.
    pub(super) fn count(&self) -> usize {
        self.order.len()
    }

    /// Adds a line; of several with one number the last is kept by [`fold`](Self::fold).
    pub(super) fn push(&mut self, line: u64, content: &[u8]) {
        self.order.push((line, (self.content.len() / LINE) as u32));
        self.content.extend_from_slice(content);
    }

    /// Sorts the lines and keeps the newest content of each.
    pub(super) fn fold(&mut self) {
        self.order.sort_unstable();
        // Of equal numbers the later one stays: look from the end.
        self.order.reverse();
        self.order.dedup_by_key(|(line, _)| *line);
        self.order.reverse();
    }

    /// The numbers of the pages of this size that the lines lie in, once each, in ascending order; those in their place, too.
    pub(super) fn pages(&self, page_bytes: u64) -> impl Iterator<Item = u64> + use<> {
        let page_of = |line| line * CACHE_LINE / page_bytes;
        let direct = self.direct.iter();
        let direct = direct.flat_map(|(first, count)| page_of(*first)..=page_of(first + count - 1));
        let mut numbers: Vec<_> =
            self.order.iter().map(|(line, _)| page_of(*line)).chain(direct).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.into_iter()
    }

    /// Whether lines have a newer content than what lies in their place. They are [folded](Self::fold).
    pub(super) fn touch_direct(&self) -> bool {
        self.direct.iter().any(|(first, count)| {
            let next = self.order.partition_point(|(line, _)| line < first);
            self.order.get(next).is_some_and(|(line, _)| *line < first + count)
        })
    }

    /// Bytes of content that were added.
    pub(super) fn bytes(&self) -> usize {
        self.content.len()
    }

    /// Bytes of lines that differ in their numbers, once they are [folded](Self::fold).
    pub(super) fn folded_bytes(&self) -> u64 {
        self.order.len() as u64 * CACHE_LINE
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// One past the last byte of the last line, in the pool.
    pub fn end(&self) -> u64 {
        self.order.last().map_or(0, |(line, _)| (line + 1) * CACHE_LINE)
    }

    fn content_of(&self, content: u32) -> &[u8] {
        &self.content[content as usize * LINE..][..LINE]
    }

    /// Hands out all lines in ascending order, as many consecutive ones at a time as are there, with
    /// the offset of the first in the pool.
    ///
    /// # Errors
    /// The first one of `each`.
    pub fn for_each_run(
        &self,
        mut each: impl FnMut(u64, &[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut run = Vec::new();
        let mut first = 0;
        for (line, content) in &self.order {
            let next = first + (run.len() / LINE) as u64;
            if !run.is_empty() && (*line != next || run.len() >= RUN_BYTES_MAX) {
                each(first * CACHE_LINE, &run)?;
                run.clear();
            }
            if run.is_empty() {
                first = *line;
            }
            run.extend_from_slice(self.content_of(*content));
        }
        if run.is_empty() { Ok(()) } else { each(first * CACHE_LINE, &run) }
    }

    /// Puts the lines that lie in `range` of the pool over `bytes`, which are what lies there. The
    /// range is whole lines.
    pub fn put_over(&self, range: Range<u64>, bytes: &mut [u8]) {
        let first = self.order.partition_point(|(line, _)| line * CACHE_LINE < range.start);
        for (line, content) in &self.order[first..] {
            let at = line * CACHE_LINE;
            if at >= range.end {
                break;
            }
            let into = (at - range.start) as usize;
            bytes[into..into + LINE].copy_from_slice(self.content_of(*content));
        }
    }
}
