//! [`RecordCache`]: records in DRAM, of which the one that was used least recently makes room.

use std::collections::HashMap;

/// No entry.
const NONE: u32 = u32::MAX;

struct Entry {
    key: Box<[u8]>,
    value: Vec<u8>,
    newer: u32,
    older: u32,
}

/// A hash index over a list of records in the order of their use.
pub(super) struct RecordCache {
    entries: Vec<Entry>,
    index: HashMap<Box<[u8]>, u32>,
    newest: u32,
    oldest: u32,
    /// Most records.
    capacity: usize,
}

impl RecordCache {
    /// Room for so many records.
    pub(super) fn new(capacity: usize) -> Self {
        Self { entries: Vec::new(), index: HashMap::new(), newest: NONE, oldest: NONE, capacity }
    }

    fn unlink(&mut self, number: u32) {
        let Entry { newer, older, .. } = self.entries[number as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.entries[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.entries[older as usize].newer = newer,
        }
    }

    fn link_newest(&mut self, number: u32) {
        let before = self.newest;
        let entry = &mut self.entries[number as usize];
        (entry.newer, entry.older) = (NONE, before);
        match before {
            NONE => self.oldest = number,
            before => self.entries[before as usize].newer = number,
        }
        self.newest = number;
    }

    /// Reads the value of a key, which is the one used last then; whether it is here.
    pub(super) fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> bool {
        let Some(number) = self.index.get(key).copied() else { return false };
        self.unlink(number);
        self.link_newest(number);
        value.clone_from(&self.entries[number as usize].value);
        true
    }

    /// Enters a record, or its new value.
    pub(super) fn put(&mut self, key: &[u8], value: &[u8]) {
        if self.capacity == 0 {
            return;
        }
        if self.replace(key, value) {
            return;
        }
        let number = if self.entries.len() < self.capacity {
            let (key, value) = (key.into(), value.to_vec());
            self.entries.push(Entry { key, value, newer: NONE, older: NONE });
            self.entries.len() as u32 - 1
        } else {
            let oldest = self.oldest;
            self.unlink(oldest);
            let entry = &mut self.entries[oldest as usize];
            self.index.remove(&entry.key);
            entry.key = key.into();
            entry.value.clear();
            entry.value.extend_from_slice(value);
            oldest
        };
        self.link_newest(number);
        self.index.insert(key.into(), number);
    }

    /// Gives a record that is here another value; whether it is.
    pub(super) fn replace(&mut self, key: &[u8], value: &[u8]) -> bool {
        let Some(number) = self.index.get(key).copied() else { return false };
        let entry = &mut self.entries[number as usize];
        entry.value.clear();
        entry.value.extend_from_slice(value);
        self.unlink(number);
        self.link_newest(number);
        true
    }

    /// Forgets a record.
    pub(super) fn remove(&mut self, key: &[u8]) {
        let Some(number) = self.index.remove(key) else { return };
        self.unlink(number);
        let last = self.entries.len() as u32 - 1;
        if number != last {
            // The last one takes its place.
            let key = self.entries[last as usize].key.clone();
            let (newer, older) = {
                let entry = &self.entries[last as usize];
                (entry.newer, entry.older)
            };
            self.entries.swap(number as usize, last as usize);
            match newer {
                NONE => self.newest = number,
                newer => self.entries[newer as usize].older = number,
            }
            match older {
                NONE => self.oldest = number,
                older => self.entries[older as usize].newer = number,
            }
            self.index.insert(key, number);
        }
        self.entries.pop();
    }

    /// Memory for what is in it, without what the allocator needs.
    pub(super) fn dram_bytes(&self) -> u64 {
        let entry =
            |entry: &Entry| size_of::<Entry>() + 2 * entry.key.len() + entry.value.capacity();
        let table = self.index.capacity() * (size_of::<(Box<[u8]>, u32)>() + 1);
        (self.entries.iter().map(entry).sum::<usize>() + table) as u64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// Against a list, newest first.
    #[test]
    fn the_least_recently_used_record_makes_room() {
        let mut cache = RecordCache::new(8);
        let mut model: VecDeque<(u8, u64)> = VecDeque::new();
        let mut state = 1_u64;
        for round in 0..20_000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let key = (state >> 33) as u8 % 20;
            let at = model.iter().position(|(of, _)| *of == key);
            match (state >> 50) % 4 {
                0 => {
                    cache.put(&[key], &round.to_le_bytes());
                    at.map(|at| model.remove(at));
                    model.push_front((key, round));
                    model.truncate(8);
                }
                1 => {
                    cache.remove(&[key]);
                    at.map(|at| model.remove(at));
                }
                _ => {
                    let mut value = Vec::new();
                    assert_eq!(cache.get(&[key], &mut value), at.is_some(), "{round}");
                    if let Some(found) = at.and_then(|at| model.remove(at)) {
                        assert_eq!(value, found.1.to_le_bytes());
                        model.push_front(found);
                    }
                }
            }
        }
        assert!(cache.dram_bytes() > 8 * 16);
    }
}
