//! [`DramMap`]: a baseline: hash maps of the standard library in DRAM.
//!
//! Records are spread over shards by the hash of their key; each shard is a map under a lock of readers and
//! a writer. That is what a program would use that needs no durability, so its rows say what durability
//! costs beyond memory, threads and hashing.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use chimera::Demand;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::engine::EngineChoice;
use super::setup::Setup;
use super::store::{Create, Footprint, Store, StoreSession};
use crate::error::Result;
use crate::results::rows::Facts;

/// Shards: many more than threads, so that two seldom meet.
const SHARDS: usize = 256;
/// Bytes that a table of the standard library keeps for an entry beside the entry.
const TAG_BYTES: usize = 1;
/// The part of a table's entries that may be in use is 7 of 8.
const FULL: (usize, usize) = (7, 8);

type Map = HashMap<Box<[u8]>, Vec<u8>, BuildHasherDefault<KeyHasher>>;

/// On lines of its own, so that shards do not disturb each other.
#[repr(align(128))]
#[derive(Default)]
struct Shard(RwLock<Map>);

/// The hash that the store itself uses, so that both sides pay the same for it.
#[derive(Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    #[inline]
    fn write_usize(&mut self, length: usize) {
        self.0 ^= length as u64;
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// Records in DRAM, from which nothing survives.
#[derive(Clone)]
pub(crate) struct DramMap {
    shards: Arc<[Shard]>,
}

impl DramMap {
    #[inline(always)]
    fn shard(&self, key: &[u8]) -> &Shard {
        let hash = BuildHasherDefault::<KeyHasher>::default().hash_one(key);
        // Bits that a table of this size does not look at.
        &self.shards[(hash >> 40) as usize % SHARDS]
    }

    #[inline(always)]
    fn read(&self, key: &[u8]) -> RwLockReadGuard<'_, Map> {
        self.shard(key).0.read().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline(always)]
    fn write(&self, key: &[u8]) -> RwLockWriteGuard<'_, Map> {
        self.shard(key).0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for DramMap {
    type Session = Self;

    fn session(&self) -> Self {
        self.clone()
    }

    fn for_each(&self, mut take: impl FnMut(&[u8], &[u8])) -> Result<()> {
        for shard in &*self.shards {
            let map = shard.0.read().unwrap_or_else(PoisonError::into_inner);
            map.iter().for_each(|(key, value)| take(key, value));
        }
        Ok(())
    }

    /// There is nothing that could be made durable.
    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn close(self) -> Result<()> {
        Ok(())
    }

    fn facts(&self) -> Facts {
        Facts {
            engine: EngineChoice::DramMap.to_string(),
            medium: "dram".to_owned(),
            durability: "none".to_owned(),
            flush_instruction: "none".to_owned(),
            huge_pages: false,
        }
    }

    /// By its own account: tables as large as they are, keys and values as long as they are; not what the
    /// allocator needs beside them.
    fn footprint(&self) -> Footprint {
        let (mut records, mut bytes) = (0, size_of_val(&*self.shards));
        for shard in &*self.shards {
            let map = shard.0.read().unwrap_or_else(PoisonError::into_inner);
            let entries = (map.capacity() * FULL.1 / FULL.0).next_power_of_two();
            records += map.len();
            bytes += entries * (size_of::<(Box<[u8]>, Vec<u8>)>() + TAG_BYTES);
            bytes += map.iter().map(|(key, value)| key.len() + value.capacity()).sum::<usize>();
        }
        Footprint { records: records as u64, dram_bytes: bytes as u64, pmem_bytes: 0 }
    }
}

impl Create for DramMap {
    fn create(setup: &Setup, _: &Path, demand: &Demand) -> Result<Self> {
        // Some more, because records do not spread evenly.
        let reserved = if setup.growing { 0 } else { demand.live as usize / SHARDS * 5 / 4 };
        let shard = |_| Shard(RwLock::new(Map::with_capacity_and_hasher(reserved, <_>::default())));
        Ok(Self { shards: (0..SHARDS).map(shard).collect() })
    }
}

impl StoreSession for DramMap {
    #[inline]
    fn get_with<T>(&mut self, key: &[u8], take: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        Ok(self.read(key).get(key).map(|value| take(value)))
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        let mut map = self.write(key);
        if let Some(old) = map.get_mut(key) {
            old.clear();
            old.extend_from_slice(value);
            return Ok(false);
        }
        map.insert(key.into(), value.to_vec());
        Ok(true)
    }

    #[inline]
    fn update(&mut self, key: &[u8], mut change: impl FnMut(&mut Vec<u8>)) -> Result<bool> {
        Ok(self.write(key).get_mut(key).map(&mut change).is_some())
    }

    #[inline]
    fn fetch_add_u64(&mut self, key: &[u8], at: usize, delta: u64) -> Result<Option<u64>> {
        let mut map = self.write(key);
        let word = map.get_mut(key).and_then(|value| value.get_mut(at..)?.first_chunk_mut());
        Ok(word.map(|word| {
            let old = u64::from_le_bytes(*word);
            *word = old.wrapping_add(delta).to_le_bytes();
            old
        }))
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        Ok(self.write(key).remove(key).is_some())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn it_does_what_a_map_does() {
        let demand = Demand { live: 1000, ..Demand::default() };
        let store = DramMap::create(&Setup::small(), Path::new(""), &demand).expect("made");
        let mut session = store.session();
        for number in 0..1000_u64 {
            let (key, value) = (number.to_le_bytes(), [number as u8; 12]);
            assert!(session.put(&key, &value).expect("puts"), "new");
            assert!(!session.put(&key, &value).expect("puts"), "there");
        }
        let key = 7_u64.to_le_bytes();
        assert_eq!(session.fetch_add_u64(&key, 4, 1).expect("adds"), Some(0x0707_0707_0707_0707));
        assert!(session.update(&key, |value| value.push(9)).expect("updates"));
        let expected = [7, 7, 7, 7, 8, 7, 7, 7, 7, 7, 7, 7, 9];
        assert!(session.get_with(&key, |value| value == expected).expect("gets").expect("there"));
        assert!(session.delete(&key).expect("deletes"));
        assert!(!session.delete(&key).expect("deletes"));
        assert!(!session.update(&key, Vec::clear).expect("updates"));
        assert_eq!(session.get_with(&key, <[u8]>::to_vec).expect("gets"), None);
        let mut all = BTreeMap::new();
        let take = |key: &[u8], value: &[u8]| assert!(all.insert(key.to_vec(), value[0]).is_none());
        store.for_each(take).expect("lists");
        assert_eq!(all.len(), 999);
        assert_eq!(store.footprint().records, 999);
        assert!(store.footprint().dram_bytes > 999 * 20);
    }

    #[test]
    fn keys_are_spread_over_all_shards() {
        let demand = Demand { live: 100_000, ..Demand::default() };
        let store = DramMap::create(&Setup::small(), Path::new(""), &demand).expect("made");
        let before = store.footprint().dram_bytes;
        let mut session = store.session();
        for number in 0..100_000_u64 {
            session.put(&number.to_le_bytes(), &[]).expect("puts");
        }
        for shard in &*store.shards {
            let records = shard.0.read().expect("nobody panicked").len();
            assert!((250..550).contains(&records), "{records}");
        }
        assert_eq!(store.footprint().dram_bytes, before + 800_000, "no table has grown");
    }
}
