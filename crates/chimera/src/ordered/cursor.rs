//! [`Cursor`]: a range of keys that shrinks from either end while it is read.

use std::ops::Bound;

use super::{Order, Page};

/// A range of keys, of which what was read is no part any more.
#[derive(Debug)]
pub(crate) struct Cursor {
    from: Bound<Vec<u8>>,
    to: Bound<Vec<u8>>,
    is_done: bool,
    page: Page,
}

/// From which end of its range a cursor reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Ascending,
    Descending,
}

impl Cursor {
    /// Of the keys between two bounds: none where the lower one lies above the upper one.
    pub(crate) fn new(from: Bound<&[u8]>, to: Bound<&[u8]>) -> Self {
        Self {
            from: from.map(<[u8]>::to_vec),
            to: to.map(<[u8]>::to_vec),
            is_done: is_empty(from, to),
            page: Page::default(),
        }
    }

    /// Takes the next keys out of the range, `most` at the most. None are left when there are none.
    pub(crate) fn read(&mut self, order: &Order, direction: Direction, most: usize) -> &Page {
        self.page.clear();
        while !self.is_done && self.page.is_empty() {
            match direction {
                Direction::Ascending => self.ascend(order, most),
                Direction::Descending => self.descend(order, most),
            }
        }
        &self.page
    }

    fn ascend(&mut self, order: &Order, most: usize) {
        order.read_ascending(as_slice(&self.from), most, &mut self.page);
        let read = self.page.len();
        let inside = (0..read).take_while(|&key| is_below(self.page.key(key), as_slice(&self.to)));
        self.page.truncate(inside.count());
        match self.page.resume() {
            Some(next) if self.page.len() == read => {
                self.from = next.map(<[u8]>::to_vec);
                self.is_done = is_empty(next, as_slice(&self.to));
            }
            _ => self.is_done = true,
        }
    }

    fn descend(&mut self, order: &Order, most: usize) {
        order.read_descending(as_slice(&self.to), most, &mut self.page);
        let read = self.page.len();
        let inside =
            (0..read).take_while(|&key| is_above(self.page.key(key), as_slice(&self.from)));
        self.page.truncate(inside.count());
        match self.page.resume() {
            Some(next) if self.page.len() == read => {
                self.to = next.map(<[u8]>::to_vec);
                self.is_done = is_empty(as_slice(&self.from), next);
            }
            _ => self.is_done = true,
        }
    }

    /// Puts what was read behind `key`, in this direction, back into the range: only keys up to it were used.
    pub(crate) fn put_back_behind(&mut self, key: &[u8], direction: Direction) {
        self.is_done = false;
        let behind = Bound::Excluded(key.to_vec());
        match direction {
            Direction::Ascending => self.from = behind,
            Direction::Descending => self.to = behind,
        }
    }
}

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

fn is_below(key: &[u8], to: Bound<&[u8]>) -> bool {
    match to {
        Bound::Included(to) => key <= to,
        Bound::Excluded(to) => key < to,
        Bound::Unbounded => true,
    }
}

fn is_above(key: &[u8], from: Bound<&[u8]>) -> bool {
    match from {
        Bound::Included(from) => key >= from,
        Bound::Excluded(from) => key > from,
        Bound::Unbounded => true,
    }
}

/// Whether no key can lie between the bounds.
fn is_empty(from: Bound<&[u8]>, to: Bound<&[u8]>) -> bool {
    match (from, to) {
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (
            Bound::Included(from) | Bound::Excluded(from),
            Bound::Included(to) | Bound::Excluded(to),
        ) => from >= to,
        _ => false,
    }
}
