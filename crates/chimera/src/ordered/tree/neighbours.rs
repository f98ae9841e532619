//! [`Neighbours`]: the entries of a node, or of two that follow one another, to be divided anew.

use std::ops::Range;
use std::sync::Arc;

use super::format::{Header, separator};
use super::image::{Image, frame_units};
use super::locked::LockedNode;
use super::node::Node;
use super::shape::SLOT_UNITS;

/// Nodes whose locks are held, as one sequence of entries.
pub(super) struct Neighbours<'a> {
    nodes: [Option<(Node<'a>, Header)>; 2],
    level: u32,
    low: Option<Arc<[u8]>>,
    high: Option<Arc<[u8]>>,
}

/// Two nodes in the making, and the key from which on entries are in the second one.
pub(super) struct SplitNodes<'a> {
    pub(super) left: Image<'a>,
    pub(super) right: Image<'a>,
    pub(super) separator: Arc<[u8]>,
}

impl<'a> Neighbours<'a> {
    pub(super) fn of_one(node: &LockedNode<'a>) -> Self {
        let [low, high] = node.whole_fences();
        let header = node.header();
        Self { nodes: [Some((**node, header)), None], level: header.level, low, high }
    }

    pub(super) fn of_two(left: &LockedNode<'a>, right: &LockedNode<'a>) -> Self {
        let [low, _] = left.whole_fences();
        let [_, high] = right.whole_fences();
        let nodes = [left, right].map(|node| Some((**node, node.header())));
        Self { nodes, level: left.header().level, low, high }
    }

    /// How many entries there are.
    pub(super) fn count(&self) -> u32 {
        self.nodes.iter().flatten().map(|(_, header)| header.count).sum()
    }

    /// The node that has an entry, and the number of the entry there.
    fn entry(&self, at: u32) -> (Node<'a>, Header, u32) {
        let mut at = at;
        for (node, header) in self.nodes.iter().flatten() {
            if at < header.count {
                return (*node, *header, at);
            }
            at -= header.count;
        }
        unreachable!("an entry that is counted")
    }

    fn key(&self, at: u32) -> Vec<u8> {
        let (node, header, at) = self.entry(at);
        let mut key = Vec::new();
        if header.level > 0 && at == 0 {
            let [low, _] = node.fences();
            node.append_fence(header, low, &mut key);
        } else {
            node.append_key(header, node.slot(at), &mut key);
        }
        key
    }

    /// Where to divide so that both sides have as much, and at least `least` entries.
    pub(super) fn middle(&self, least: u32) -> u32 {
        let units = |at| {
            let (node, header, at) = self.entry(at);
            node.units_of(header.level, node.slot(at))
        };
        let count = self.count();
        let all: u32 = (0..count).map(units).sum();
        let (mut at, mut before) = (0, 0);
        while at < count && before * 2 < all {
            before += units(at);
            at += 1;
        }
        at.clamp(least, count - least)
    }

    /// The key from which on entries belong to the right side, if that begins with the entry `at`. In front of
    /// all of a leaf, or behind them, it keeps apart the key `new`.
    fn separator(&self, at: u32, new: &[u8]) -> Arc<[u8]> {
        let key = |at| self.key(at);
        if self.level > 0 {
            return key(at).into();
        }
        let before = if at == 0 { new.to_vec() } else { key(at - 1) };
        let after = if at == self.count() { new.to_vec() } else { key(at) };
        separator(&before, &after).into()
    }

    /// Bytes that an entry has behind a prefix, in a node that begins with the entry `first`; more than any node
    /// keeps if its key is a long one.
    fn length(&self, at: u32, first: u32, prefix: u32) -> u32 {
        let (node, header, number) = self.entry(at);
        if header.level > 0 && at == first {
            return 0;
        }
        if header.level > 0 && number == 0 {
            return self.key(at).len() as u32 - prefix;
        }
        let length = node.slot(number).place.length();
        length.map_or(u32::MAX, |length| header.prefix + length - prefix)
    }

    /// Whether entries fit a node between two fences.
    fn fit(&self, low: Option<&[u8]>, high: Option<&[u8]>, entries: Range<u32>) -> bool {
        let Some((node, _)) = self.nodes[0] else { return false };
        let layout = node.layout();
        let (prefix, frame) = frame_units(layout, low, high);
        let first = entries.start;
        let units =
            |at| SLOT_UNITS + layout.entry_units(self.level, self.length(at, first, prefix));
        frame + entries.map(units).sum::<u32>() <= layout.units()
    }

    /// How many entries fit the left node at most, if the right one keeps at least one. A guess, if entries do
    /// not become larger the more there are.
    pub(super) fn most_on_the_left(&self) -> u32 {
        let (mut fits, mut fails) = (0, self.count());
        while fits + 1 < fails {
            let middle = fits.midpoint(fails);
            let separator = self.separator(middle, &[]);
            if self.fit(self.low.as_deref(), Some(&separator), 0..middle) {
                fits = middle;
            } else {
                fails = middle;
            }
        }
        fits
    }

    /// One node with all entries, if they fit.
    pub(super) fn merged(&self) -> Option<Image<'a>> {
        let fits = self.fit(self.low.as_deref(), self.high.as_deref(), 0..self.count());
        if !fits {
            return None;
        }
        self.image(self.low.as_ref(), self.high.as_ref(), 0..self.count())
    }

    /// Two nodes, the second one beginning with the entry `at`, if they fit. See
    /// [`separator`](Self::separator) for `new`.
    pub(super) fn halves(&self, at: u32, new: &[u8]) -> Option<SplitNodes<'a>> {
        let separator = self.separator(at, new);
        let left = self.image(self.low.as_ref(), Some(&separator), 0..at)?;
        let right = self.image(Some(&separator), self.high.as_ref(), at..self.count())?;
        Some(SplitNodes { left, right, separator })
    }

    fn image(
        &self,
        low: Option<&Arc<[u8]>>,
        high: Option<&Arc<[u8]>>,
        entries: Range<u32>,
    ) -> Option<Image<'a>> {
        let (first, _) = self.nodes[0]?;
        let mut image = Image::new(first.context, self.level, low, high);
        for at in entries {
            let (node, header, at) = self.entry(at);
            if !image.push_from(node, header, at) {
                return None;
            }
        }
        Some(image)
    }
}
