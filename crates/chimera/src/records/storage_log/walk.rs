//! The records of a run, one after the other.

use chimera_pmem::Pmem;

use super::layout::{Head, KEY_AT, value_at};
use super::read::damaged;
use super::{StorageLog, steps};
use crate::records::checksum::Summed;
use crate::types::error::Result;

/// How far a walk over a run has come.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    /// Where the next record begins, and where the last one ends.
    pub(super) at: u64,
    pub(super) end: u64,
    key: Vec<u8>,
    value: Vec<u8>,
}

/// A record of a walk, verified.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walked<'a> {
    pub(crate) at: u64,
    pub(crate) bytes: u64,
    /// The hash of its key.
    pub(crate) hash: u64,
    pub(crate) version: u64,
    pub(crate) key: &'a [u8],
    /// None for a tombstone.
    pub(crate) value: Option<&'a [u8]>,
}

impl Walk {
    /// Over the records between two offsets.
    pub(super) fn between(at: u64, end: u64) -> Self {
        Self { at, end, ..Self::default() }
    }
}

impl<P: Pmem> StorageLog<P> {
    /// A walk over the records of the run whose first one lies at `start`: those that it had when it was sealed last, or
    /// opened again. The run is not freed before the walk ends.
    pub(crate) fn walk(&self, start: u64) -> Walk {
        let mut table = self.runs.lock(&*self.pool.environment);
        let slot = self.runs.slot_of(&self.pool.map, start);
        let tail = slot.map_or(start, |slot| table.entry(slot).tail);
        Walk::between(start, tail)
    }

    /// The next record of a walk.
    ///
    /// # Errors
    /// `Corrupted` when it is damaged. The walk goes on behind it if only its value is, and is over otherwise.
    ///
    /// # Cost
    /// The lines of the record.
    pub(crate) fn next<'a>(&self, walk: &'a mut Walk) -> Result<Option<Walked<'a>>> {
        let at = walk.at;
        if at >= walk.end {
            return Ok(None);
        }
        let Some((head, hash)) = self.judge(walk, None) else {
            let sound = self.sound_head(walk);
            walk.at = sound.map_or(walk.end, |(head, _)| at + head.span());
            return Err(damaged(at));
        };
        walk.at += head.span();
        let value = (!head.is_tombstone).then_some(&*walk.value);
        let (bytes, version, key) = (head.span(), head.version, &*walk.key);
        Ok(Some(Walked { at, bytes, hash, version, key, value }))
    }

    /// The head of the record where a walk is, and the hash of its key, if these are sound, whatever its value is. The walk
    /// then has its key.
    #[cold]
    fn sound_head(&self, walk: &mut Walk) -> Option<(Head, u64)> {
        let head = self.head_at(walk.at, walk.end, None)?;
        let hash = self.read_hash(walk.at, &head, &mut walk.key);
        head.is_sound(walk.at, hash).then_some((head, hash))
    }

    /// The next record of a walk, if only its value is damaged. The walk goes on behind it.
    #[cold]
    pub(super) fn next_without_value<'a>(&self, walk: &'a mut Walk) -> Option<Walked<'a>> {
        let (at, (head, hash)) = (walk.at, self.sound_head(walk)?);
        walk.at += head.span();
        let (bytes, version, key) = (head.span(), head.version, &*walk.key);
        let value = (!head.is_tombstone).then_some(&[][..]);
        Some(Walked { at, bytes, hash, version, key, value })
    }

    /// The head of the record where a walk is, and the hash of its key, if it is sound, ends before the walk does, and was
    /// written in this use of the run, if one is given. The walk then has its key and value.
    pub(super) fn judge(&self, walk: &mut Walk, use_number: Option<u32>) -> Option<(Head, u64)> {
        let (at, pmem) = (walk.at, &self.pool.pmem);
        let head = self.head_at(at, walk.end, use_number)?;
        let hash = self.read_hash(at, &head, &mut walk.key);
        let skips = pmem.skips(steps::WALK_CHECK);
        if !head.is_sound(at, hash) && !skips {
            return None;
        }
        walk.value.resize(head.value_bytes, 0);
        let from = self.pool.extent(at + value_at(head.key_bytes), head.value_bytes as u64);
        let sum = pmem.read_sum(from, 0, &mut walk.value);
        let is_sound = head.has_value(at, Summed { bytes: &walk.value, sum });
        (is_sound || skips).then_some((head, hash))
    }

    /// The head of a record at `at`, which ends at `end` at the latest. Nothing is verified.
    pub(super) fn head_at(&self, at: u64, end: u64, use_number: Option<u32>) -> Option<Head> {
        let (room, pmem) = (end.checked_sub(at)?, &self.pool.pmem);
        if room < KEY_AT {
            return None;
        }
        let head = Head::decode([0, 8, 16].map(|word| pmem.load_u64(at + word)))?;
        let is_of_use = use_number.is_none_or(|number| number == head.use_number);
        (head.span() <= room && (is_of_use || pmem.skips(steps::USE_CHECK))).then_some(head)
    }

    /// Reads the key of a record; its hash.
    pub(super) fn read_hash(&self, at: u64, head: &Head, key: &mut Vec<u8>) -> u64 {
        key.resize(head.key_bytes, 0);
        self.pool.pmem.read(self.pool.extent(at + KEY_AT, key.len() as u64), key);
        self.hash.of(key)
    }
}
