//! Lookups, without a lock, and listings.

use chimera_pmem::{CACHE_LINE, Pmem};

use super::directory::Directory;
use super::{ExtendibleHash, damaged_directory};
use crate::index::Probe;
use crate::index::persistent::buckets::{self, Batch, Prefix, Slot, damaged_slot};
use crate::pool::Held;
use crate::types::error::{Error, Result};

/// What the directory has for a hash.
pub(super) struct Place {
    directory: Directory,
    pub(super) word_at: u64,
    word: u64,
    /// Offset of the segment's header. None where the word is damaged, or was of a directory that is gone.
    pub(super) at: Option<u64>,
}

/// What probing a window has found.
enum Probed<T> {
    Found(T),
    Nothing,
    /// The closure saw something that is not stable.
    Unstable,
    /// Nothing, and a slot at this offset is damaged.
    Damaged(u64),
}

impl<P: Pmem> ExtendibleHash<P> {
    /// The segment that the directory has for a hash. None in an index without segments.
    #[inline(always)]
    pub(super) fn place_of(&self, hash: u64) -> Option<Place> {
        let directory = self.directory()?;
        let word_at = directory.word_at(hash);
        let word = self.pool.pmem.load_u64(word_at);
        let at = if self.beside.is_empty() { None } else { self.beside(hash) };
        let at = at.or_else(|| self.segment_at(word_at, word));
        Some(Place { directory, word_at, word, at })
    }

    /// The segment that a word of the directory leads to.
    #[inline(always)]
    pub(super) fn segment_at(&self, word_at: u64, word: u64) -> Option<u64> {
        let at = buckets::offset(word_at, word)?;
        self.pool.pmem.check(at, CACHE_LINE + self.slots_bytes()).map(|_| at)
    }

    /// The segment of a hash that the directory does not lead to.
    #[cold]
    fn beside(&self, hash: u64) -> Option<u64> {
        let found = self.beside.iter().find(|(prefix, _)| prefix.covers(hash));
        found.map(|(_, at)| *at)
    }

    /// Whether the directory still has it, after the version of the segment was read.
    #[inline(always)]
    pub(super) fn is_place(&self, place: &Place) -> bool {
        let word = self.pool.pmem.load_u64(place.word_at);
        word == place.word && self.directory() == Some(place.directory)
    }

    /// Starts loading the home bucket of a hash.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        if let Some(at) = self.place_of(hash).and_then(|place| place.at) {
            let slots = self.slots(at);
            let home = slots.window(hash).next().unwrap_or_default();
            self.pool.pmem.prefetch(self.pool.extent(slots.offset(home), 8));
        }
    }

    /// Looks an entry up: `probe` is asked about the positions of this hash, one after the other, until it has found its
    /// record. `None` when somebody has changed the segment meanwhile: what was asked and answered means nothing.
    ///
    /// # Errors
    /// `Corrupted` when the word of the directory is damaged; when nothing is found, and a slot in which the entry may have
    /// been is damaged.
    ///
    /// # Cost
    /// A line of the directory, 1 to 4 lines of the segment.
    #[inline]
    pub(crate) fn find_once<T>(
        &self,
        hash: u64,
        probe: &mut impl FnMut(u64) -> Probe<T>,
    ) -> Option<Result<Option<T>>> {
        let Some(place) = self.place_of(hash) else { return Some(Ok(None)) };
        self.find_in(&place, hash, probe)
    }

    /// As [`find_once`](Self::find_once), where the directory had this for the hash.
    #[inline(always)]
    pub(super) fn find_in<T>(
        &self,
        place: &Place,
        hash: u64,
        probe: &mut impl FnMut(u64) -> Probe<T>,
    ) -> Option<Result<Option<T>>> {
        let Some(at) = place.at else {
            return self.is_place(place).then(|| self.judge(damaged_directory(place.word_at)));
        };
        let lock = &self.stripe(at).lock;
        let version = lock.read_begin()?;
        if !self.is_place(place) {
            return None;
        }
        let probed = self.probe(at, hash, probe);
        if !lock.read_is_valid(version) {
            return None;
        }
        match probed {
            Probed::Found(found) => Some(Ok(Some(found))),
            Probed::Nothing => Some(Ok(None)),
            Probed::Unstable => None,
            Probed::Damaged(at) => Some(self.judge(damaged_slot(at))),
        }
    }

    /// What a lookup makes of damage.
    #[cold]
    fn judge<T>(&self, error: Error) -> Result<Option<T>> {
        if !self.salvages {
            return Err(error);
        }
        // Recovery has noted it with what it may have led to.
        self.pool.note_lost_of(Held::Nothing, &error, 0);
        Ok(None)
    }

    #[inline(always)]
    fn probe<T>(&self, at: u64, hash: u64, probe: &mut impl FnMut(u64) -> Probe<T>) -> Probed<T> {
        let (slots, mut damaged) = (self.slots(at), None);
        for slot in slots.window(hash) {
            match slots.read(slot) {
                Slot::Entry { signature, at } if signature == hash => match probe(at) {
                    Probe::Found(found) => return Probed::Found(found),
                    Probe::NotThis => {}
                    Probe::Retry => return Probed::Unstable,
                },
                Slot::Damaged => damaged = Some(slots.offset(slot)),
                Slot::Empty | Slot::Entry { .. } => {}
            }
        }
        damaged.map_or(Probed::Nothing, Probed::Damaged)
    }

    /// The entries of the segment that has the hash `from`, from there on, in the order of hashes.
    ///
    /// # Cost
    /// Reads a segment, with its lock held.
    pub(crate) fn list(&self, from: u64, batch: &mut Batch) {
        *batch = Batch::default();
        match self.lock(from) {
            Ok(None) => {}
            Ok(Some(locked)) => {
                self.slots(locked.at).list(locked.at, locked.prefix, from, batch);
            }
            Err(error) => {
                if let Error::Corrupted { at, .. } = error {
                    batch.damages.push(at);
                }
                // Behind the hashes of this word of the directory.
                let depth = self.directory_depth();
                let prefix = from.checked_shr(u64::BITS - depth).unwrap_or(0);
                batch.next = Prefix { prefix, depth }.range().1.checked_add(1);
            }
        }
    }
}
