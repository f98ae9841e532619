//! Growth: the first segment, splits, and doubling of the directory. docs/DURABILITY.md has what a crash in each step leaves.

use chimera_pmem::{CACHE_LINE, Pmem};

use super::changes::Locked;
use super::directory::Directory;
use super::{ExtendibleHash, Growth, damaged_directory, sites};
use crate::index::persistent::buckets::{self, DEPTH_MAX, Image, Prefix};
use crate::pool::runs::Run;
use crate::sync::atomic::{Ordering, fence};
use crate::sync::{MutexGuard, lock_relaxing};
use crate::types::error::{Error, Result};

/// A directory up to this size, or of so many words for each segment, may double whenever a split wants it to. Hashes that
/// agree in their leading bits would double a larger one for ever.
const DIRECTORY_ALWAYS_MAX: u64 = 64;
const DIRECTORY_WORDS_PER_SEGMENT_MAX: u64 = 16;

/// All hashes.
const WHOLE: Prefix = Prefix { prefix: 0, depth: 0 };

impl<P: Pmem> ExtendibleHash<P> {
    /// Makes room for an entry of `hash` where there is none: splits a segment, or takes the first one. The window may still
    /// be full afterwards, where all its entries went to the same half: to be called again.
    ///
    /// # Errors
    /// `PoolFull`, with no entry changed. `KeyCollisions` when so many hashes are alike that splitting does not help.
    /// `Corrupted` when the way to the entry, or the directory, is damaged.
    ///
    /// # Durability
    /// Durable on return. A crash before leaves the segment whole or split.
    ///
    /// # Cost
    /// What a run costs, with the lines of a segment, and 2 lines or more and 2 fences. Where the directory doubles also
    /// what two runs cost, all lines of the directory and 2 fences: every writer that splits a segment waits.
    pub(crate) fn make_room(&self, hash: u64) -> Result<()> {
        let Some(locked) = self.lock(hash)? else { return self.begin() };
        if self.slots(locked.at).free_slot(hash, locked.prefix).is_some() {
            return Ok(());
        }
        self.split(&locked)
    }

    fn lock_growth(&self) -> MutexGuard<'_, Growth> {
        lock_relaxing(&self.growth, &*self.pool.environment)
    }

    /// Takes the first segment and a directory, unless there is one.
    fn begin(&self) -> Result<()> {
        let mut growth = self.lock_growth();
        if self.directory().is_some() {
            return Ok(());
        }
        let segment = self.take_segment(WHOLE, &self.slots(0).none())?;
        let at = self.pool.run_bytes(&segment).offset();
        let run = match self.take_directory(0) {
            Ok(run) => run,
            Err(error) => return self.pool.free_run(segment).and(Err(error)),
        };
        self.segments.store(1, Ordering::Relaxed);
        self.put_in_force(&mut growth, run, 0, |_| at)
    }

    /// Splits a segment in two by the next bit of its hashes.
    pub(super) fn split(&self, old: &Locked<'_>) -> Result<()> {
        self.ensure_deeper(old.prefix)?;
        let (lower, upper) = (old.prefix.half(0), old.prefix.half(1));
        let image = self.slots(old.at).half(upper);
        let moved = image.entries();
        let new = self.pool.run_bytes(&self.take_segment(upper, &image)?);
        self.pool.pmem.publish(old.at, lower.encode(old.at), &[new], sites::SPLIT);
        self.pool.pmem.flush(self.pool.extent(old.at, 8), sites::SPLIT);
        // Before anybody comes to the new segment: recovery completes the directory from here on.
        self.pool.pmem.fence(sites::SPLIT);
        let growth = self.lock_growth();
        let directory = self.directory().expect("there is a segment");
        directory.lead(&self.pool, upper, new, sites::LEAD);
        self.pool.pmem.fence(sites::LEAD);
        self.segments.fetch_add(1, Ordering::Relaxed);
        drop(growth);
        self.stripe(new.offset()).add(moved.into());
        old.stripe.subtract(moved.into());
        Ok(())
    }

    /// Makes sure that the directory tells the halves of a segment apart.
    fn ensure_deeper(&self, prefix: Prefix) -> Result<()> {
        let mut growth = self.lock_growth();
        let old = self.directory().expect("there is a segment");
        if prefix.depth < old.depth {
            return Ok(());
        }
        let words = 2 << old.depth;
        let most = (DIRECTORY_WORDS_PER_SEGMENT_MAX * self.segments()).max(DIRECTORY_ALWAYS_MAX);
        if old.depth == DEPTH_MAX || words > most {
            return Err(Error::KeyCollisions);
        }
        let each = (0..1 << old.depth).map(|number| {
            let word_at = old.number_at(number);
            let word = self.pool.pmem.load_u64(word_at);
            self.segment_at(word_at, word).ok_or_else(|| damaged_directory(word_at))
        });
        let each: Vec<_> = each.collect::<Result<_>>()?;
        let run = self.take_directory(old.depth + 1)?;
        self.put_in_force(&mut growth, run, old.depth + 1, |number| each[(number / 2) as usize])
    }

    /// Takes a run with the header and the slots of a segment, durably.
    fn take_segment(&self, prefix: Prefix, image: &Image) -> Result<Run> {
        let pool = &self.pool;
        pool.take_run(self.kinds.segment, self.segment_blocks, |bytes| {
            let at = bytes.offset();
            pool.pmem.zero(pool.extent(at, CACHE_LINE), sites::SEGMENT);
            pool.pmem.store_u64(at, prefix.encode(at), sites::SEGMENT);
            pool.pmem.flush(pool.extent(at, CACHE_LINE), sites::SEGMENT);
            self.slots(at).store(image, sites::SEGMENT);
        })
    }

    /// Takes a run for a directory of this depth, which is not in force, whatever lay there before.
    fn take_directory(&self, depth: u32) -> Result<Run> {
        let pool = &self.pool;
        let bytes = Directory::bytes(depth) + CACHE_LINE;
        let blocks = bytes.div_ceil(pool.map.block_bytes).min(u64::from(u32::MAX)) as u32;
        pool.take_run(self.kinds.directory, blocks, |bytes| {
            let header = pool.extent(bytes.offset(), 8);
            pool.pmem.store_u64(header.offset(), Directory::begun(header.offset()), sites::BEGIN);
            pool.pmem.flush(header, sites::BEGIN);
        })
    }

    /// Fills a directory whose words lead where `segment_of` says of their numbers, puts it in force, and frees the one
    /// before.
    fn put_in_force(
        &self,
        growth: &mut Growth,
        run: Run,
        depth: u32,
        segment_of: impl Fn(u64) -> u64,
    ) -> Result<()> {
        let (pmem, new) = (&self.pool.pmem, self.pool.run_bytes(&run));
        let directory = Directory { at: new.offset(), depth };
        for number in 0..1 << depth {
            let word_at = directory.number_at(number);
            let word = buckets::position(word_at, segment_of(number));
            pmem.store_u64(word_at, word, sites::DIRECTORY);
        }
        let words = directory.words_of(WHOLE);
        pmem.flush(words, sites::DIRECTORY);
        pmem.fence(sites::DIRECTORY);
        pmem.publish(directory.at, directory.header(), &[words], sites::DOUBLE);
        pmem.flush(self.pool.extent(directory.at, 8), sites::DOUBLE);
        pmem.fence(sites::DOUBLE);
        self.directory.store(directory.pack(), Ordering::Release);
        // Whoever sees what is stored in the old one from now on sees that another one is in force.
        fence(Ordering::Release);
        match growth.run.replace(run) {
            Some(old) => self.pool.free_run(old),
            None => Ok(()),
        }
    }
}
