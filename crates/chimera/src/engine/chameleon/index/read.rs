//! Lookups: without a lock, validated afterwards.
//!
//! # Why a value is whole, also where its sum is not verified
//! A reader takes an answer only if the places of its shard's tables were the same all the time, and no run of the log was
//! freed meanwhile. Then each table that it looked at was in force, and each record that it read was what it had been
//! written to be: records never change, and their bytes are used again only after their run was freed. The MemTable and the
//! bypass index only get more entries, or newer ones, while places stay.

use chimera_pmem::{Operation, Pmem};

use super::Index;
use crate::engine::contract::client::SharedClient;
use crate::index::Probe;
use crate::types::error::Result;

impl<P: Pmem> Index<P> {
    /// Reads the value of `key` into the client's buffer, and verifies it, its sum only if `sum`. `false` when there is
    /// none.
    pub(crate) fn read_value(
        &self,
        client: &mut SharedClient,
        hash: u64,
        key: &[u8],
        sum: bool,
    ) -> Result<bool> {
        let _booked = self.core().book(Operation::Get, client.number);
        self.shards.prefetch(hash);
        let number = self.shards.number_of(hash);
        let version = self.shards.shard(number).version();
        let read = self.core().read_unlocked(|| {
            let (freed, seen) = (self.log().freed(), version.read_begin()?);
            let read = self.read_once(&mut client.value, number, hash, key, sum);
            let is_valid = version.read_is_valid(seen) && self.log().is_unchanged(freed);
            read.transpose().filter(|_| is_valid)
        });
        let is_there = if let Some(read) = read {
            read?
        } else {
            let _writing = self.lock_to_look(number);
            let read = self.read_once(&mut client.value, number, hash, key, sum)?;
            read.expect("nothing changes in a shard that is locked")
        };
        Ok(is_there || self.is_missing(hash))
    }

    /// Starts loading the records of keys with these hashes, and their places in last tables. Proves nothing.
    pub(crate) fn prefetch_records(&self, hashes: &[u64]) {
        for hash in hashes {
            self.shards.prefetch_last(*hash);
        }
        for at in hashes.iter().filter_map(|hash| self.shards.peek(*hash)) {
            self.log().prefetch(at);
        }
    }

    /// Reads the value of `key`, if the places of tables stay meanwhile. None where they did not, for certain.
    #[inline(always)]
    fn read_once(
        &self,
        value: &mut Vec<u8>,
        number: u32,
        hash: u64,
        key: &[u8],
        sum: bool,
    ) -> Result<Option<bool>> {
        let records = &self.records;
        let probed = self
            .shards
            .probe(number, hash, |found| records.probe_value(found, (hash, key), value, sum))?;
        match probed {
            Probe::Found(found) => found.map(Some),
            Probe::NotThis => Ok(Some(false)),
            Probe::Retry => Ok(None),
        }
    }
}
