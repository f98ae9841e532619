//! [`Holes`]: which blocks have no storage although they are ready.

use std::collections::BTreeMap;
use std::ops::Range;

/// Ranges of blocks, none of which touches another.
#[derive(Debug, Default)]
pub(super) struct Holes {
    /// The end of each by its first block.
    ends: BTreeMap<u64, u64>,
}

impl Holes {
    pub(super) fn add(&mut self, blocks: Range<u64>) {
        let Range { mut start, mut end } = blocks;
        let touching: Vec<u64> = self
            .ends
            .range(..=end)
            .rev()
            .take_while(|found| *found.1 >= start)
            .map(|found| *found.0)
            .collect();
        for first in touching {
            start = start.min(first);
            end = end.max(self.ends.remove(&first).unwrap_or(end));
        }
        self.ends.insert(start, end);
    }

    pub(super) fn remove(&mut self, blocks: Range<u64>) {
        while let Some((&start, &end)) = self.ends.range(..blocks.end).next_back() {
            if end <= blocks.start {
                return;
            }
            self.ends.remove(&start);
            if end > blocks.end {
                self.ends.insert(blocks.end, end);
            }
            if start < blocks.start {
                self.ends.insert(start, blocks.start);
            }
        }
    }

    pub(super) fn has_any(&self, blocks: &Range<u64>) -> bool {
        self.ends.range(..blocks.end).next_back().is_some_and(|(_, end)| *end > blocks.start)
    }

    pub(super) fn has_all(&self, blocks: &Range<u64>) -> bool {
        let found = self.ends.range(..=blocks.start).next_back();
        found.is_some_and(|(_, end)| *end >= blocks.end)
    }

    #[cfg(test)]
    pub(super) fn all(&self) -> Vec<Range<u64>> {
        self.ends.iter().map(|(&start, &end)| start..end).collect()
    }
}

#[cfg(test)]
mod tests;
