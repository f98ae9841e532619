//! [`KeyRun`]: keys that are gathered in any order and read in theirs, to make a tree of.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// Keys that are gathered in any order.
#[derive(Debug, Default)]
pub(crate) struct KeyRun {
    bytes: Vec<u8>,
    keys: Vec<KeyEntry>,
}

/// A key: its first 8 bytes, which decide most comparisons, and where all of it lies.
#[derive(Clone, Copy, Debug)]
struct KeyEntry {
    head: u64,
    start: u64,
    length: u32,
}

impl KeyEntry {
    fn key(self, bytes: &[u8]) -> &[u8] {
        let start = self.start as usize;
        &bytes[start..start + self.length as usize]
    }
}

impl KeyRun {
    /// Adds a key.
    pub(crate) fn push(&mut self, key: &[u8]) {
        let mut head = [0; 8];
        let length = key.len().min(8);
        head[..length].copy_from_slice(&key[..length]);
        let start = self.bytes.len() as u64;
        self.bytes.extend_from_slice(key);
        let head = u64::from_be_bytes(head);
        self.keys.push(KeyEntry { head, start, length: key.len() as u32 });
    }

    /// Keys that were gathered.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> u64 {
        (self.bytes.capacity() + self.keys.capacity() * size_of::<KeyEntry>()) as u64
    }

    /// Puts the keys in ascending order, in place.
    pub(super) fn sort(&mut self) {
        let Self { bytes, keys } = self;
        keys.sort_unstable_by(|one, other| match one.head.cmp(&other.head) {
            Ordering::Equal => one.key(bytes).cmp(other.key(bytes)),
            order => order,
        });
    }

    fn front(&self, at: usize) -> Option<RunHead<'_>> {
        let gathered = self.keys.get(at)?;
        Some(RunHead {
            head: gathered.head,
            key: gathered.key(&self.bytes),
            run: self,
            next: at + 1,
        })
    }
}

/// The first key of what is left of a sorted run.
struct RunHead<'r> {
    head: u64,
    key: &'r [u8],
    run: &'r KeyRun,
    next: usize,
}

impl Ord for RunHead<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.head.cmp(&other.head).then_with(|| self.key.cmp(other.key))
    }
}

impl PartialOrd for RunHead<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for RunHead<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for RunHead<'_> {}

/// The keys of sorted runs in ascending order, each once.
pub(super) fn merged(runs: &[KeyRun]) -> impl Iterator<Item = &[u8]> {
    let mut fronts: BinaryHeap<_> =
        runs.iter().filter_map(|run| run.front(0)).map(Reverse).collect();
    let mut last = None;
    std::iter::from_fn(move || {
        loop {
            let mut lowest = fronts.peek_mut()?;
            let RunHead { key, run, next, .. } = lowest.0;
            match run.front(next) {
                Some(front) => lowest.0 = front,
                None => drop(PeekMut::pop(lowest)),
            }
            if last.replace(key) != Some(key) {
                return Some(key);
            }
        }
    })
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keys_come_in_order_and_once(
            keys in prop::collection::vec(prop::collection::vec(0_u8..3, 1..12), 0..200),
            count in 1_usize..6,
        ) {
            let mut runs: Vec<KeyRun> = (0..count).map(|_| KeyRun::default()).collect();
            for (number, key) in keys.iter().enumerate() {
                runs[number % 7 % count].push(key);
            }
            runs.iter_mut().for_each(KeyRun::sort);
            let expected: BTreeSet<_> = keys.into_iter().collect();
            prop_assert!(merged(&runs).eq(expected.iter().map(Vec::as_slice)));
        }
    }
}
