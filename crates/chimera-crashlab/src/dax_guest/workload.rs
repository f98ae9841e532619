//! The operations that follow from a seed, and what a store holds after them.

use std::collections::BTreeMap;

/// Bytes of keys.
pub(crate) const KEY_BYTES: u32 = 16;
/// Bytes of values.
pub(crate) const VALUE_BYTES: u32 = 64;
/// Where the counter lies in a value.
pub(crate) const COUNTER_AT: usize = 8;
/// Keys of each thread.
const KEYS: u64 = 300;

/// What an operation does with its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Put,
    /// Adds to the counter, in place.
    Add(u64),
    /// Replaces the value by way of a read-modify-write.
    Update,
    Delete,
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    pub(crate) key: u64,
    pub(crate) action: Action,
}

/// The finaliser of SplitMix64.
pub(crate) fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Operation `number` of a thread.
pub(crate) fn operation(seed: u64, thread: usize, number: u64) -> Operation {
    let chance = mix(mix(seed ^ (thread as u64) << 56).wrapping_add(number));
    let action = match chance % 10 {
        0..5 => Action::Put,
        5..7 => Action::Add(chance >> 48 | 1),
        7 => Action::Update,
        _ => Action::Delete,
    };
    Operation { key: (chance >> 8) % KEYS, action }
}

/// The bytes of a thread's key.
pub(crate) fn key(thread: usize, number: u64) -> [u8; KEY_BYTES as usize] {
    let mut key = [0; KEY_BYTES as usize];
    key[..8].copy_from_slice(&(thread as u64).to_le_bytes());
    key[8..].copy_from_slice(&number.to_le_bytes());
    key
}

/// The thread a key belongs to, and the key's number.
pub(crate) fn owner(key: &[u8]) -> Option<(usize, u64)> {
    let (thread, number) = key.split_at_checked(8)?;
    let thread = u64::from_le_bytes(thread.try_into().ok()?);
    Some((usize::try_from(thread).ok()?, u64::from_le_bytes(number.try_into().ok()?)))
}

/// What is under a key: written whole by which operation, and added to since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    written_by: u64,
    counter: u64,
}

/// What the keys of one thread hold after some of its operations.
#[derive(Clone, Debug)]
pub(crate) struct State {
    seed: u64,
    thread: usize,
    /// How many.
    pub(crate) done: u64,
    entries: BTreeMap<u64, Entry>,
}

impl State {
    /// After the first `done` operations.
    pub(crate) fn after(seed: u64, thread: usize, done: u64) -> Self {
        let mut state = Self { seed, thread, done: 0, entries: BTreeMap::new() };
        (0..done).for_each(|_| state.advance());
        state
    }

    /// The number of the thread.
    pub(crate) fn thread(&self) -> usize {
        self.thread
    }

    /// The next operation.
    pub(crate) fn next(&self) -> Operation {
        operation(self.seed, self.thread, self.done)
    }

    /// Does the next operation.
    pub(crate) fn advance(&mut self) {
        let Operation { key, action } = self.next();
        let whole = Entry { written_by: self.done, counter: 0 };
        match action {
            Action::Put => drop(self.entries.insert(key, whole)),
            Action::Add(delta) => {
                if let Some(entry) = self.entries.get_mut(&key) {
                    entry.counter = entry.counter.wrapping_add(delta);
                }
            }
            Action::Update => {
                if let Some(entry) = self.entries.get_mut(&key) {
                    *entry = whole;
                }
            }
            Action::Delete => drop(self.entries.remove(&key)),
        }
        self.done += 1;
    }

    pub(crate) fn holds(&self, key: u64) -> bool {
        self.entries.contains_key(&key)
    }

    /// The value under a key.
    pub(crate) fn value(&self, key: u64) -> Option<Vec<u8>> {
        let entry = self.entries.get(&key)?;
        let mut value = value(self.thread, key, entry.written_by);
        value[COUNTER_AT..COUNTER_AT + 8].copy_from_slice(&entry.counter.to_le_bytes());
        Some(value)
    }

    /// What differs between this and what a store holds for this thread, if anything does.
    pub(crate) fn difference(&self, found: &BTreeMap<u64, Vec<u8>>) -> Option<String> {
        let keys = self.entries.keys().chain(found.keys());
        let describe = |value: Option<&Vec<u8>>| match value {
            Some(value) => {
                let word = |at: usize| {
                    u64::from_le_bytes(value[at..at + 8].try_into().unwrap_or_default())
                };
                format!("operation {} plus {}", word(0), word(COUNTER_AT))
            }
            None => "nothing".to_owned(),
        };
        keys.copied().find_map(|key| {
            let expected = self.value(key);
            (expected.as_ref() != found.get(&key)).then(|| {
                let (thread, done) = (self.thread, self.done);
                let (found, expected) = (describe(found.get(&key)), describe(expected.as_ref()));
                format!(
                    "after {done} operations of thread {thread}, key {key} holds {found} instead of \
                     {expected}"
                )
            })
        })
    }
}

/// The value that operation `number` writes: every byte follows from the three.
pub(crate) fn value(thread: usize, key: u64, number: u64) -> Vec<u8> {
    let mut value = Vec::with_capacity(VALUE_BYTES as usize);
    value.extend_from_slice(&number.to_le_bytes());
    value.extend_from_slice(&0_u64.to_le_bytes());
    let mut word = mix(number ^ key << 32 ^ (thread as u64) << 56);
    while value.len() < VALUE_BYTES as usize {
        word = mix(word.wrapping_add(0x9e37_79b9_7f4a_7c15));
        value.extend_from_slice(&word.to_le_bytes());
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_actions_happen_and_repeat() {
        let some: Vec<_> = (0..200).map(|number| operation(7, 1, number)).collect();
        assert_eq!(some, (0..200).map(|number| operation(7, 1, number)).collect::<Vec<_>>());
        assert_ne!(some[..20], (0..20).map(|number| operation(8, 1, number)).collect::<Vec<_>>());
        let has = |wanted: fn(&Action) -> bool| some.iter().any(|one| wanted(&one.action));
        assert!(has(|action| *action == Action::Put) && has(|action| *action == Action::Delete));
        assert!(
            has(|action| matches!(action, Action::Add(_)))
                && has(|action| *action == Action::Update)
        );
    }

    #[test]
    fn a_lost_an_invented_and_a_changed_record_are_noticed() {
        let state = State::after(7, 1, 500);
        let all: BTreeMap<u64, Vec<u8>> =
            (0..KEYS).filter_map(|key| Some((key, state.value(key)?))).collect();
        assert!(all.len() > 10);
        assert_eq!(state.difference(&all), None);
        let key = *all.keys().next().expect("some");
        let mut lost = all.clone();
        lost.remove(&key);
        assert!(state.difference(&lost).is_some_and(|text| text.contains("holds nothing")));
        let absent = (0..KEYS).find(|key| !all.contains_key(key)).expect("some");
        let mut invented = all.clone();
        invented.insert(absent, value(1, absent, 3));
        assert!(
            state.difference(&invented).is_some_and(|text| text.contains("instead of nothing"))
        );
        for byte in 0..VALUE_BYTES as usize {
            let mut changed = all.clone();
            changed.get_mut(&key).expect("there")[byte] ^= 1;
            assert!(state.difference(&changed).is_some(), "byte {byte}");
        }
    }

    #[test]
    fn every_operation_that_changes_something_makes_another_state() {
        let mut state = State::after(7, 0, 100);
        let contents = |state: &State| -> BTreeMap<u64, Vec<u8>> {
            (0..KEYS).filter_map(|key| Some((key, state.value(key)?))).collect()
        };
        for _ in 0..100 {
            let Operation { key, action } = state.next();
            let changes = action == Action::Put || state.holds(key);
            let before = contents(&state);
            state.advance();
            assert_eq!(state.difference(&before).is_some(), changes);
        }
    }
}
