//! [`Page`]: keys that were read together.

use std::mem::swap;
use std::ops::Bound;

/// Keys that were read together, and where to go on. Used again and again, so that nothing is allocated once
/// it has grown.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// All keys, and room for more, which is not cleared again and again.
    bytes: Vec<u8>,
    /// Where the last key ends.
    end: usize,
    ends: Vec<u32>,
    /// While the page is being filled: what its keys begin with.
    prefix: Vec<u8>,
    /// Where the next page begins.
    resume: Resume,
    resume_key: Vec<u8>,
    /// Where this page began, if it went on from another one.
    pub(super) from: Vec<u8>,
}

/// Where to go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Resume {
    /// There are no more keys.
    #[default]
    End,
    /// With a key itself, if it is there.
    With,
    /// Behind a key.
    Behind,
}

impl Resume {
    pub(super) fn bound(self, key: &[u8]) -> Option<Bound<&[u8]>> {
        match self {
            Self::End => None,
            Self::With => Some(Bound::Included(key)),
            Self::Behind => Some(Bound::Excluded(key)),
        }
    }
}

impl Page {
    /// How many keys there are. An empty page may have others behind it.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Keeps the first `count` keys.
    pub(crate) fn truncate(&mut self, count: usize) {
        self.ends.truncate(count);
        self.end = self.ends.last().map_or(0, |&end| end as usize);
    }

    /// The key with this number.
    ///
    /// # Panics
    /// When there is none.
    pub(crate) fn key(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.bytes[start as usize..self.ends[at] as usize]
    }

    /// The bound from which on the next page is read, in the same direction. `None` at the end.
    pub(crate) fn resume(&self) -> Option<Bound<&[u8]>> {
        self.resume.bound(&self.resume_key)
    }

    /// Moves the place where to go on to `from`, unless this is the end.
    pub(super) fn turn(&mut self) -> Resume {
        if self.resume != Resume::End {
            swap(&mut self.from, &mut self.resume_key);
        }
        self.resume
    }

    /// Forgets all keys, and where to go on.
    pub(crate) fn clear(&mut self) {
        self.end = 0;
        self.ends.clear();
        self.resume = Resume::End;
    }

    /// Puts aside the prefix of the keys that follow, which `append` writes.
    pub(super) fn begin(&mut self, append: impl FnOnce(&mut Vec<u8>)) {
        self.prefix.clear();
        append(&mut self.prefix);
    }

    /// Appends a key with the prefix, and behind it `length` bytes, which `read` reads to `room` bytes.
    #[inline(always)]
    pub(super) fn push_rest(
        &mut self,
        (length, room): (usize, usize),
        read: impl FnOnce(&mut [u8]),
    ) {
        let start = self.end + self.prefix.len();
        if self.bytes.len() < start + room {
            self.bytes.resize((start + room) * 2, 0);
        }
        self.bytes[self.end..start].copy_from_slice(&self.prefix);
        read(&mut self.bytes[start..start + room]);
        self.end_key(start + length);
    }

    /// Appends a key, which `append` writes.
    pub(super) fn push(&mut self, append: impl FnOnce(&mut Vec<u8>)) {
        self.bytes.truncate(self.end);
        append(&mut self.bytes);
        self.end_key(self.bytes.len());
    }

    #[inline(always)]
    fn end_key(&mut self, end: usize) {
        self.end = end;
        self.ends.push(end as u32);
    }

    /// Goes on behind the last key.
    pub(super) fn resume_behind_last(&mut self) {
        let start = if let [.., before, _] = self.ends[..] { before } else { 0 };
        self.resume_key.clear();
        self.resume_key.extend_from_slice(&self.bytes[start as usize..self.end]);
        self.resume = Resume::Behind;
    }

    /// Where there are no more keys in the tree: goes on at `bound`, in the tree beside it.
    pub(in super::super) fn go_on_at_end(&mut self, bound: Bound<&[u8]>) {
        let (how, key) = match bound {
            Bound::Included(key) => (Resume::With, key),
            Bound::Excluded(key) => (Resume::Behind, key),
            Bound::Unbounded => return,
        };
        if self.resume == Resume::End {
            self.resume_key.clear();
            self.resume_key.extend_from_slice(key);
            self.resume = how;
        }
    }

    /// Goes on at a fence, which `append` writes if there is one.
    pub(super) fn resume_at(&mut self, how: Resume, append: impl FnOnce(&mut Vec<u8>) -> bool) {
        self.resume_key.clear();
        self.resume = if append(&mut self.resume_key) { how } else { Resume::End };
    }
}
