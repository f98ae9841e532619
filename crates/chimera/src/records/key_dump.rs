//! A *dump*: all keys in their order, written when a store is closed, for the next open (HiKV, section 3.5).
//!
//! # Structure
//! A dump is some runs of blocks. Each has, behind the pool's line:
//! ```text
//! header   [number of the dump: 8] [number of the run, from 0: 8] [keys: 8] [bytes: 8] [sum of the bytes: 8]
//!          [sum of the header: 8] [0: 16]
//! bytes    keys in strictly ascending order, also from run to run: [length: 4] [key] each
//! ```
//! The superblock of a store that was closed in order says the number of its dump and how many keys it has. It does so in
//! the words that say that the store was closed, and the words that say that it is open take both away. So a dump is in
//! force only while nobody has the store open, and is used once.
//!
//! A dump is used only if it is whole: all runs, sums, lengths and the number of keys are as they must be, and keys ascend. Anything else is no damage: the keys are gathered from the index.

use chimera_pmem::{CACHE_LINE, Extent, Pmem};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::pool::runs::Run;
use crate::pool::{BlockKind, CLOSED_WORDS, Pool};
use crate::types::error::{Error, Result};

/// Where dumps are written.
pub(crate) mod sites {
    chimera_pmem::sites! {
        /// A run of a dump.
        DUMP = "dump.run";
    }
}

/// Words of a header, and those that its sum covers.
const HEADER_WORDS: usize = 6;
const SUMMED_WORDS: usize = 5;
/// Bytes of a length.
const LENGTH_BYTES: usize = 4;

/// What the superblock says of a dump; zeros where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dump {
    number: u64,
    keys: u64,
}

impl Dump {
    /// From the words of the superblock.
    pub(crate) fn from_words([number, keys]: [u64; CLOSED_WORDS]) -> Option<Self> {
        (number > 0).then_some(Self { number, keys })
    }

    /// As words of the superblock.
    pub(crate) fn to_words(self) -> [u64; CLOSED_WORDS] {
        [self.number, self.keys]
    }

    pub(crate) fn keys(self) -> u64 {
        self.keys
    }
}

/// A dump that is being written.
pub(crate) struct Writer<'p, P: Pmem> {
    pool: &'p Pool<P>,
    kind: BlockKind,
    dump: Dump,
    runs: Vec<Run>,
    /// Most bytes of a run, with its header.
    bytes_max: usize,
    /// The next run: room for its header, and its keys, so many.
    bytes: Vec<u8>,
    keys: u64,
}

impl<'p, P: Pmem> Writer<'p, P> {
    /// Writes keys into runs of this kind, of some `run_bytes`.
    pub(crate) fn new(pool: &'p Pool<P>, kind: BlockKind, run_bytes: u32) -> Self {
        let block_bytes = pool.map.block_bytes;
        let blocks_max = u64::from(run_bytes).div_ceil(block_bytes);
        let blocks_max = blocks_max.clamp(1, pool.run_blocks_max().into());
        Self {
            pool,
            kind,
            // Each change of the superblock has another one, so no other life's dump has it.
            dump: Dump { number: pool.superblock().sequence.wrapping_add(1).max(1), keys: 0 },
            runs: Vec::new(),
            bytes_max: (blocks_max * block_bytes - CACHE_LINE) as usize,
            bytes: vec![0; CACHE_LINE as usize],
            keys: 0,
        }
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    ///
    /// # Durability
    /// The dump is durable on return. Nothing leads to it: a crash leaves runs that the next open frees.
    pub(crate) fn finish(&mut self) -> Result<Dump> {
        if self.keys > 0 {
            self.write_run()?;
        }
        Ok(self.dump)
    }

    /// Frees what was written.
    ///
    /// # Errors
    /// As freeing runs.
    pub(crate) fn give_up(self) -> Result<()> {
        self.runs.into_iter().try_for_each(|run| self.pool.free_run(run))
    }

    /// Adds a key, which is higher than those before it.
    ///
    /// # Errors
    /// `PoolFull`.
    ///
    /// # Cost
    /// 4 bytes and its own; once for each run what a run costs, its lines and 1 fence.
    pub(crate) fn push(&mut self, key: &[u8]) -> Result<()> {
        let need = LENGTH_BYTES + key.len();
        if self.bytes.len() + need > self.bytes_max && self.keys > 0 {
            self.write_run()?;
        }
        if self.bytes.len() + need > self.bytes_max {
            let reason = format!("a key of {} bytes is longer than a run of blocks", key.len());
            return Err(Error::PoolFull { reason });
        }
        self.bytes.extend_from_slice(&(key.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(key);
        self.keys += 1;
        Ok(())
    }

    /// Writes the keys that were pushed to a run of their own, durably.
    fn write_run(&mut self) -> Result<()> {
        let (header, keys) = self.bytes.split_at(CACHE_LINE as usize);
        debug_assert!(header.iter().all(|byte| *byte == 0));
        let number = self.runs.len() as u64;
        let sum = xxh3_64_with_seed(keys, self.dump.number);
        let words = [self.dump.number, number, self.keys, keys.len() as u64, sum];
        let words = [words.as_slice(), &[header_sum(&words)]].concat();
        for (at, word) in words.iter().enumerate() {
            self.bytes[8 * at..8 * at + 8].copy_from_slice(&word.to_le_bytes());
        }
        let bytes = self.bytes.len().next_multiple_of(CACHE_LINE as usize);
        self.bytes.resize(bytes, 0);
        let block_bytes = self.pool.map.block_bytes;
        let blocks = (bytes as u64 + CACHE_LINE).div_ceil(block_bytes) as u32;
        let run = self.pool.take_bare_run(self.kind, blocks)?;
        let to = self.pool.extent(self.pool.run_bytes(&run).offset(), bytes as u64);
        self.runs.push(run);
        self.pool.pmem.copy(to, &self.bytes, sites::DUMP);
        self.pool.pmem.flush(to, sites::DUMP);
        self.pool.pmem.fence(sites::DUMP);
        self.dump.keys += self.keys;
        self.keys = 0;
        self.bytes.clear();
        self.bytes.resize(CACHE_LINE as usize, 0);
        Ok(())
    }
}

fn header_sum(words: &[u64; SUMMED_WORDS]) -> u64 {
    xxh3_64_with_seed(zerocopy::IntoBytes::as_bytes(words), 0)
}

/// The keys of a dump, in the parts in which they were written. `None` when it is not whole, or has a key that is none, or
/// that is not behind the one before it.
pub(crate) fn read<P: Pmem>(
    pool: &Pool<P>,
    runs: &[Run],
    dump: Dump,
    is_key: impl Fn(&[u8]) -> bool,
) -> Option<Vec<Vec<u8>>> {
    let mut parts = Vec::new();
    for run in runs {
        let place = pool.run_bytes(run);
        let header = read_header(pool, place);
        if header[0] == dump.number {
            parts.push((header, place));
        }
    }
    parts.sort_unstable_by_key(|(header, _)| header[1]);
    let (mut keys, mut contents) = (0_u64, Vec::new());
    for (number, (header, place)) in (0..).zip(parts) {
        let part = read_part(pool, header, place).filter(|_| header[1] == number)?;
        let count =
            entries(&part).try_fold(0_u64, |count, key| Some(count + 1).filter(|_| is_key(key)))?;
        // All of it was keys.
        let bytes: usize = entries(&part).map(|key| LENGTH_BYTES + key.len()).sum();
        if bytes != part.len() || count != header[2] {
            return None;
        }
        keys = keys.checked_add(count)?;
        contents.push(part);
    }
    let ascends =
        contents.iter().flat_map(|part| entries(part)).is_sorted_by(|one, next| one < next);
    (keys == dump.keys && ascends).then_some(contents)
}

fn read_header<P: Pmem>(pool: &Pool<P>, place: Extent) -> [u64; HEADER_WORDS] {
    std::array::from_fn(|word| pool.pmem.load_u64(place.offset() + 8 * word as u64))
}

/// The bytes of a run with this header, if both match their sums.
fn read_part<P: Pmem>(
    pool: &Pool<P>,
    header: [u64; HEADER_WORDS],
    place: Extent,
) -> Option<Vec<u8>> {
    let [summed @ .., check] = header;
    let [number, _, _, bytes, sum] = summed;
    if check != header_sum(&summed) || bytes > place.length() - CACHE_LINE {
        return None;
    }
    let mut part = vec![0; bytes as usize];
    pool.pmem.read(pool.extent(place.offset() + CACHE_LINE, bytes), &mut part);
    (xxh3_64_with_seed(&part, number) == sum).then_some(part)
}

/// The keys of a part, up to where it is not valid any more.
pub(crate) fn entries(part: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = part;
    std::iter::from_fn(move || {
        let (length, behind) = rest.split_first_chunk::<LENGTH_BYTES>()?;
        let (key, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        rest = behind;
        Some(key)
    })
}

#[cfg(test)]
mod tests;
