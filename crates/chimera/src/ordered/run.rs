//! [`KeyRun`]: keys that are gathered in any order and read in theirs, to make a tree of.

use std::cmp::Ordering;

/// Keys that are gathered in any order.
#[derive(Debug, Default)]
pub(crate) struct KeyRun {
    bytes: Vec<u8>,
    keys: Vec<Gathered>,
}

/// A key: its first 8 bytes, which decide most comparisons, and where all of it lies.
#[derive(Clone, Copy, Debug)]
struct Gathered {
    head: u64,
    start: u64,
    length: u32,
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
        self.keys.push(Gathered { head, start, length: key.len() as u32 });
    }

    /// The keys in ascending order, each once.
    ///
    /// # Cost
    /// Sorts in place.
    pub(super) fn sorted(&mut self) -> impl Iterator<Item = &[u8]> {
        let Self { bytes, keys } = self;
        let key = |gathered: &Gathered| {
            let start = gathered.start as usize;
            &bytes[start..start + gathered.length as usize]
        };
        keys.sort_unstable_by(|one, other| match one.head.cmp(&other.head) {
            Ordering::Equal => key(one).cmp(key(other)),
            order => order,
        });
        keys.dedup_by(|one, other| key(one) == key(other));
        keys.iter().map(key)
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keys_come_in_order_and_once(keys in prop::collection::vec(prop::collection::vec(0_u8..3, 1..12), 0..200)) {
            let mut run = KeyRun::default();
            for key in &keys {
                run.push(key);
            }
            let expected: BTreeSet<_> = keys.into_iter().collect();
            prop_assert!(run.sorted().eq(expected.iter().map(Vec::as_slice)));
        }
    }
}
