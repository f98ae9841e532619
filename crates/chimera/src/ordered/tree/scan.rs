//! Reading keys in order, one leaf after the other.
//!
//! A page is what one leaf had at one moment, from a bound on. The next page begins at the leaf's fence, and
//! is read of whatever leaf is responsible for that by then. So ranges of pages touch and never overlap, and
//! a key that is in the tree all the time is read exactly once.

use std::mem::take;
use std::ops::Bound;

use chimera_pmem::Environment;

use super::Tree;
use super::descent::{Attempts, DescentTarget};
use super::node::Node;
use super::page::{Page, Resume};
use super::search::SearchKey;

impl Tree {
    /// Reads keys from `from` on, ascending: at most `most`, and at least 1 unless the rest of a leaf is empty.
    /// They were there together, at one moment.
    ///
    /// # Cost
    /// The lines of one leaf. Takes no lock; waits while a writer is at the leaf.
    pub(crate) fn read_ascending(
        &self,
        environment: &dyn Environment,
        from: Bound<&[u8]>,
        most: usize,
        page: &mut Page,
    ) {
        let toward = match from {
            Bound::Included(key) | Bound::Excluded(key) => DescentTarget::At(key),
            Bound::Unbounded => DescentTarget::At(&[]),
        };
        self.read(environment, toward, page, |node, page| {
            let header = node.header();
            let start = match from {
                Bound::Included(key) => node.lower_bound(header, SearchKey::new(key, header)).0,
                Bound::Excluded(key) => node.upper_bound(header, SearchKey::new(key, header)),
                Bound::Unbounded => 0,
            };
            let end = start.saturating_add(most_of(most)).min(header.count);
            page.begin(|into| node.append_prefix(header, into));
            (start..end).for_each(|at| push(node, at, page));
            if end < header.count {
                return page.resume_behind_last();
            }
            let [_, high] = node.fences();
            page.resume_at(Resume::With, |into| node.append_fence(header, high, into));
        });
    }

    /// Reads keys up to `to`, descending: at most `most`, and at least 1 unless the rest of a leaf is empty.
    /// They were there together, at one moment.
    ///
    /// # Cost
    /// As of [`read_ascending`](Self::read_ascending).
    pub(crate) fn read_descending(
        &self,
        environment: &dyn Environment,
        to: Bound<&[u8]>,
        most: usize,
        page: &mut Page,
    ) {
        let toward = match to {
            Bound::Included(key) => DescentTarget::At(key),
            Bound::Excluded(key) => DescentTarget::Below(key),
            Bound::Unbounded => DescentTarget::End,
        };
        self.read(environment, toward, page, |node, page| {
            let header = node.header();
            let end = match to {
                Bound::Included(key) => node.upper_bound(header, SearchKey::new(key, header)),
                Bound::Excluded(key) => node.lower_bound(header, SearchKey::new(key, header)).0,
                Bound::Unbounded => header.count,
            };
            let start = end.saturating_sub(most_of(most));
            page.begin(|into| node.append_prefix(header, into));
            (start..end).rev().for_each(|at| push(node, at, page));
            if start > 0 {
                return page.resume_behind_last();
            }
            let [low, _] = node.fences();
            page.resume_at(Resume::Behind, |into| node.append_fence(header, low, into));
        });
    }

    /// Reads the next page ascending. `false`, with nothing changed, when there is none.
    pub(crate) fn read_on_ascending(
        &self,
        environment: &dyn Environment,
        most: usize,
        page: &mut Page,
    ) -> bool {
        read_on(page, |from, page| self.read_ascending(environment, from, most, page))
    }

    /// Reads the next page descending. `false`, with nothing changed, when there is none.
    pub(crate) fn read_on_descending(
        &self,
        environment: &dyn Environment,
        most: usize,
        page: &mut Page,
    ) -> bool {
        read_on(page, |to, page| self.read_descending(environment, to, most, page))
    }

    /// Fills the page with what `fill` reads of a leaf, until nothing has changed meanwhile.
    #[inline]
    fn read(
        &self,
        environment: &dyn Environment,
        toward: DescentTarget<'_>,
        page: &mut Page,
        fill: impl Fn(Node<'_>, &mut Page),
    ) {
        let mut attempts = Attempts::new(environment);
        loop {
            page.clear();
            let Some(path) = self.find(toward, 0, &mut attempts) else { return };
            let node = path.node.node;
            node.prefetch_heap(node.header());
            if attempts.are_many() {
                // A leaf that changes faster than it is read: its writers wait once.
                if let Some(_locked) = path.node.lock() {
                    fill(node, page);
                    return;
                }
            } else {
                fill(node, page);
                if path.node.is_valid() {
                    return;
                }
            }
            attempts.relax();
        }
    }
}

/// Reads from where the page ends. `false` when that is the end of all keys.
fn read_on(page: &mut Page, read: impl FnOnce(Bound<&[u8]>, &mut Page)) -> bool {
    let resume = page.turn();
    let from = take(&mut page.from);
    let bound = resume.bound(&from);
    let is_more = bound.is_some();
    if let Some(bound) = bound {
        read(bound, page);
    }
    page.from = from;
    is_more
}

fn most_of(most: usize) -> u32 {
    u32::try_from(most).unwrap_or(u32::MAX).max(1)
}

#[inline]
fn push(node: Node<'_>, at: u32, page: &mut Page) {
    let slot = node.slot(at);
    match node.long_key(0, slot) {
        None => {
            let length = node.rest_length(slot);
            page.push_rest(length, |into| node.read_rest(0, slot, into));
        }
        Some(number) => page.push(|into| node.context.long_keys.append(number, into)),
    }
}
