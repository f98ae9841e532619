//! The manifest: which tables each shard of an index has, in persistent memory. It is replaced as a whole, shard by shard,
//! whenever the tables of a shard change (ChameleonDB, section 2.1: "persists changes on the LSM structure").
//!
//! ```text
//! run   64 bytes of the pool, up to 256 | current words, 64 bytes a shard | two copies a shard, 256 bytes each
//! copy  epoch | flushed version | records | last level: place, bytes | dumps: place, bytes, 4 times |
//!       levels: place, tables, 6 times | 6 words of zero | check
//! ```
//! The current word of a shard says which of its copies is in force, by epoch and number; epoch 0: the shard has no tables. It
//! is a checked word of its place, so it is never 0, and a shard that lost its word is damaged.
//!
//! # Protocol
//! - **stage**: the copy that is not in force is stored, and its lines flushed. The caller *fences*, together with the
//!   tables that it names.
//! - **publish**: the current word is stored; flush, *fence*.
//!
//! # Invariants
//! 1. A copy, and all that it refers to, is durable before the current word names it.
//! 2. What only the copy before refers to is not used again before the current word is durable.
//!
//! A copy that does not match its check is damage, never a reason to go back to the other one: what that refers to may be in
//! use for something else.

use std::sync::Arc;

use chimera_pmem::{CACHE_LINE, Extent, Pmem};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::pool::{Pool, checked_word, runs};
use crate::types::error::{Error, Result};

/// Where the manifest stores, flushes and fences.
pub(crate) mod sites {
    chimera_pmem::sites! {
        /// The current words of a new manifest.
        BEGIN = "manifest.begin";
        /// The copy that is to be in force.
        COPY = "manifest.copy";
        /// The word that puts a copy in force.
        CURRENT = "manifest.current";
        /// The current words that were found at opening, written back once more.
        FOUND = "manifest.found", may_be_clean;
    }
}

/// Checks that a tool can leave out.
pub(crate) mod steps {
    chimera_pmem::steps! {
        /// The check of a copy.
        READ_CHECK = "manifest.step.read_check";
    }
}

/// Most levels above the last one, and most dumps.
pub(crate) const LEVELS_MAX: usize = 6;
pub(crate) const DUMPS_MAX: usize = 4;

const ALIGN: u64 = 256;
const COPY_BYTES: u64 = 256;
/// Bytes that a change of a shard writes: a copy, and the line of its current word.
pub(crate) const CHANGE_BYTES: u64 = COPY_BYTES + CACHE_LINE;
const COPY_WORDS: usize = COPY_BYTES as usize / 8;
const CHECK_AT: usize = COPY_WORDS - 1;
const LAST_AT: usize = 3;
const DUMPS_AT: usize = 5;
const LEVELS_AT: usize = DUMPS_AT + 2 * DUMPS_MAX;
/// Highest version, and most records: both can be counted on from.
const NUMBER_MAX: u64 = (1 << 56) - 1;
/// Epochs begin at 1 and go round within 31 bits, without 0.
const EPOCHS: u32 = (1 << 31) - 1;

/// Where a table lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableAt {
    /// Its offset in the pool; not zero.
    pub(crate) at: u64,
    pub(crate) bytes: u64,
}

/// A level above the last one: tables of one size, side by side, the oldest one first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LevelAt {
    /// Offset of its first table; zero where the level has no room for any.
    pub(crate) at: u64,
    pub(crate) tables: u32,
}

/// The tables of a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShardTables {
    /// Every write up to this version is in the tables, or superseded by one that is.
    pub(crate) flushed_version: u64,
    /// Keys of the shard, as of that version.
    pub(crate) records: u64,
    pub(crate) last: Option<TableAt>,
    /// Dumped bypass indexes, the oldest one first.
    pub(crate) dumps: [Option<TableAt>; DUMPS_MAX],
    pub(crate) levels: [LevelAt; LEVELS_MAX],
}

/// What is in force of a shard: kept by whoever changes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Current {
    epoch: u32,
    pub(crate) tables: ShardTables,
}

impl Current {
    /// How often the tables of the shard have changed; 0 for a shard without tables.
    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }
}

/// The manifest of a store.
pub(crate) struct ShardManifest<P: Pmem> {
    pool: Arc<Pool<P>>,
    shards: u32,
    /// Offsets of the current words, and of the copies.
    words_at: u64,
    copies_at: u64,
}

/// Bytes of the engine's part of a run with the manifest of so many shards, whatever its place.
pub(crate) fn run_bytes(shards: u32) -> u64 {
    ALIGN + u64::from(shards) * (CACHE_LINE + 2 * COPY_BYTES) + ALIGN
}

/// Makes a new manifest of shards without tables, in these bytes of a run that is not taken yet. The caller fences.
pub(crate) fn begin<P: Pmem>(pool: &Pool<P>, bytes: Extent, shards: u32) {
    let words = pool.extent(words_at(bytes), u64::from(shards) * CACHE_LINE);
    pool.pmem.zero(words, sites::BEGIN);
    for at in (words.offset()..words.end()).step_by(CACHE_LINE as usize) {
        pool.pmem.store_u64(at, checked_word::encode_at(0, at), sites::BEGIN);
    }
    pool.pmem.flush(words, sites::BEGIN);
}

fn words_at(bytes: Extent) -> u64 {
    bytes.offset().next_multiple_of(ALIGN)
}

impl<P: Pmem> ShardManifest<P> {
    /// The manifest in this run. `None` where the run is too short for so many shards.
    pub(crate) fn new(pool: Arc<Pool<P>>, run: &runs::Run, shards: u32) -> Option<Self> {
        let bytes = pool.run_bytes(run);
        let words_at = words_at(bytes);
        let copies_at = (words_at + u64::from(shards) * CACHE_LINE).next_multiple_of(ALIGN);
        let end = copies_at + u64::from(shards) * 2 * COPY_BYTES;
        (end <= bytes.end()).then_some(Self { pool, shards, words_at, copies_at })
    }

    /// That of a store without one, which is open for reading only: no shard has a table.
    pub(crate) fn none(pool: Arc<Pool<P>>, shards: u32) -> Self {
        Self { pool, shards, words_at: 0, copies_at: 0 }
    }

    fn word_at(&self, shard: u32) -> u64 {
        assert!(shard < self.shards, "a shard of the store");
        self.words_at + u64::from(shard) * CACHE_LINE
    }

    fn copy(&self, shard: u32, epoch: u32) -> Extent {
        let number = u64::from(shard) * 2 + u64::from(epoch % 2);
        self.pool.extent(self.copies_at + number * COPY_BYTES, COPY_BYTES)
    }

    /// Reads what is in force of a shard. Where it lies is as the manifest says: the caller checks what is there.
    ///
    /// # Errors
    /// `Corrupted` for damage.
    ///
    /// # Durability
    /// Opened for writing: the current word is flushed again, because the last process may have been killed before its fence.
    /// The caller fences before it relies on it. The copy that the word names was durable before the word was stored.
    ///
    /// # Cost
    /// 5 lines, of which 1 is flushed.
    pub(crate) fn load(&self, shard: u32) -> Result<Current> {
        if self.words_at == 0 {
            return Ok(Current::default());
        }
        let (pmem, word_at) = (&self.pool.pmem, self.word_at(shard));
        let damaged = |at| Error::corrupted("the manifest of a shard is damaged", at);
        let epoch = checked_word::decode_at(pmem.load_u64(word_at), word_at);
        let epoch = epoch.ok_or_else(|| damaged(word_at))?;
        if !self.pool.read_only {
            pmem.flush(self.pool.extent(word_at, 8), sites::FOUND);
        }
        if epoch == 0 {
            return Ok(Current::default());
        }
        let copy = self.copy(shard, epoch);
        let mut words = [0; COPY_WORDS];
        for (word, at) in words.iter_mut().zip((copy.offset()..).step_by(8)) {
            *word = pmem.load_u64(at);
        }
        let is_sound = words[CHECK_AT] == check(shard, &words) && words[0] == u64::from(epoch);
        if !is_sound && !pmem.skips(steps::READ_CHECK) {
            return Err(damaged(copy.offset()));
        }
        let tables = decode(&words).ok_or_else(|| damaged(copy.offset()))?;
        Ok(Current { epoch, tables })
    }

    /// Stores the copy of a shard that is to be in force, and flushes it. The caller fences, and then
    /// [publishes](Self::publish).
    ///
    /// # Cost
    /// 4 lines.
    pub(crate) fn stage(&self, shard: u32, before: &Current, tables: ShardTables) -> Current {
        let epoch = before.epoch % EPOCHS + 1;
        // One after EPOCHS, which is odd, is 1: the same copy would be written while it is in force.
        let epoch = if epoch % 2 == before.epoch % 2 { epoch + 1 } else { epoch };
        let (copy, mut words) = (self.copy(shard, epoch), encode(u64::from(epoch), &tables));
        words[CHECK_AT] = check(shard, &words);
        for (word, at) in words.iter().zip((copy.offset()..).step_by(8)) {
            self.pool.pmem.store_u64(at, *word, sites::COPY);
        }
        self.pool.pmem.flush(copy, sites::COPY);
        Current { epoch, tables }
    }

    /// Puts a copy in force that was [staged](Self::stage) and is durable.
    ///
    /// # Durability
    /// Durable on return. A crash before leaves the tables before, or these.
    ///
    /// # Cost
    /// 1 line, 1 fence.
    pub(crate) fn publish(&self, shard: u32, staged: &Current) {
        let (pmem, word_at) = (&self.pool.pmem, self.word_at(shard));
        let copy = self.copy(shard, staged.epoch);
        let word = checked_word::encode_at(staged.epoch, word_at);
        pmem.publish(word_at, word, &[copy], sites::CURRENT);
        pmem.flush(self.pool.extent(word_at, 8), sites::CURRENT);
        pmem.fence(sites::CURRENT);
        self.settled(shard, staged);
    }

    /// The word is durable that puts a copy in force: the one before is not in force any more.
    pub(crate) fn settled(&self, shard: u32, current: &Current) {
        if self.words_at > 0 {
            self.pool.pmem.withdrawn(self.copy(shard, current.epoch + 1));
        }
    }
}

fn encode(epoch: u64, tables: &ShardTables) -> [u64; COPY_WORDS] {
    let mut words = [0; COPY_WORDS];
    words[0] = epoch;
    words[1] = tables.flushed_version;
    words[2] = tables.records;
    let places = [tables.last].into_iter().chain(tables.dumps);
    for (number, table) in places.enumerate() {
        let place = LAST_AT + 2 * number;
        words[place] = table.map_or(0, |table| table.at);
        words[place + 1] = table.map_or(0, |table| table.bytes);
    }
    for (number, level) in tables.levels.iter().enumerate() {
        words[LEVELS_AT + 2 * number] = level.at;
        words[LEVELS_AT + 2 * number + 1] = level.tables.into();
    }
    words
}

fn decode(words: &[u64; COPY_WORDS]) -> Option<ShardTables> {
    let place = |number: usize| {
        let (at, bytes) = (words[LAST_AT + 2 * number], words[LAST_AT + 2 * number + 1]);
        (at > 0).then_some(TableAt { at, bytes })
    };
    let (flushed_version, records) = (words[1], words[2]);
    if flushed_version.max(records) > NUMBER_MAX {
        return None;
    }
    let mut tables = ShardTables { flushed_version, records, last: place(0), ..Default::default() };
    for (number, dump) in tables.dumps.iter_mut().enumerate() {
        *dump = place(1 + number);
    }
    for (number, level) in tables.levels.iter_mut().enumerate() {
        let (at, count) = (words[LEVELS_AT + 2 * number], words[LEVELS_AT + 2 * number + 1]);
        *level = LevelAt { at, tables: count.try_into().ok()? };
    }
    Some(tables)
}

fn check(shard: u32, words: &[u64; COPY_WORDS]) -> u64 {
    let mut bytes = [0; CHECK_AT * 8];
    for (bytes, word) in bytes.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    xxh3_64_with_seed(&bytes, shard.into())
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
