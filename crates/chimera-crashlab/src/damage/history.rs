//! [`History`]: what a store holds, the writes that led there, and what it ever held.

use std::collections::{BTreeMap, BTreeSet};

/// Records by key.
pub(super) type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// A write that was acknowledged since the store was opened.
#[derive(Clone, Debug)]
pub(super) struct Write {
    /// No two sessions of a store have one number.
    pub(super) session: u64,
    pub(super) key: Vec<u8>,
    /// What the key had before, and has now.
    pub(super) old: Option<Vec<u8>>,
    pub(super) new: Option<Vec<u8>>,
    /// It changed one word of the value alone.
    pub(super) is_of_word: bool,
}

/// What a store holds, the writes that led there since it was opened, and what it ever held.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    /// What it holds.
    pub(super) now: Contents,
    /// Since the store was opened.
    pub(super) writes: Vec<Write>,
    /// How many of these were synced.
    pub(super) synced: usize,
    /// Sessions whose end was acknowledged.
    pub(super) ended: BTreeSet<u64>,
    /// The word of a key's value that was updated by itself, and by nothing else since.
    words: BTreeMap<Vec<u8>, usize>,
    /// All values that a key ever had.
    ever: BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>,
}

impl History {
    /// A write was acknowledged: of one word of the value only, where that is said.
    pub(super) fn write(
        &mut self,
        session: u64,
        key: &[u8],
        new: Option<Vec<u8>>,
        word: Option<usize>,
    ) {
        let old = match &new {
            Some(value) => {
                self.ever.entry(key.to_vec()).or_default().insert(value.clone());
                self.now.insert(key.to_vec(), value.clone())
            }
            None => self.now.remove(key),
        };
        match word {
            Some(word) => self.words.insert(key.to_vec(), word),
            None => self.words.remove(key),
        };
        self.writes.push(Write {
            session,
            key: key.to_vec(),
            old,
            new,
            is_of_word: word.is_some(),
        });
    }

    /// The store was closed in order, or what it holds was read after its process was killed.
    pub(super) fn settle(&mut self, now: Contents) {
        for (key, value) in &now {
            self.ever.entry(key.clone()).or_default().insert(value.clone());
        }
        self.now = now;
        self.writes.clear();
        self.synced = 0;
        self.ended.clear();
    }

    /// The end of its process took the last writes of its sessions, as far as it may: this is left.
    pub(super) fn lose(&mut self, left: Contents) {
        self.now = left;
    }

    /// The word of a key's value that has no check.
    pub(super) fn unchecked_word(&self, key: &[u8]) -> Option<usize> {
        self.words.get(key).copied()
    }

    /// Whether a key ever had this; every key once had nothing.
    pub(super) fn had(&self, key: &[u8], found: Option<&Vec<u8>>) -> bool {
        found.is_none_or(|found| self.ever.get(key).is_some_and(|ever| ever.contains(found)))
    }

    /// Whether the store held exactly this behind one of its writes from number `first` on.
    pub(super) fn held(&self, found: &Contents, first: usize) -> bool {
        let mut then = self.now.clone();
        for write in self.writes.iter().skip(first).rev() {
            if then == *found {
                return true;
            }
            match &write.old {
                Some(old) => then.insert(write.key.clone(), old.clone()),
                None => then.remove(&write.key),
            };
        }
        then == *found
    }
}
