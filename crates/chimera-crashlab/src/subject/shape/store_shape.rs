//! [`StoreShape`]: what the lab must know of an engine's stores.

use std::fmt::Debug;

use chimera::{EngineInspect, Options};

use crate::chance::Chance;
use crate::durability::{End, Loss};
use crate::simulated::Mutation;

/// What can be asked of a store: a case draws only such actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// It changes words of values in place.
    pub in_place: bool,
    /// Its puts say whether their key is new. Else they may say so of a key that is there.
    pub knows_new: bool,
    /// It empties and gives back blocks on demand.
    pub reclaim: bool,
    /// Space of dead records is used again, on demand or by itself. Not so where a log only grows.
    pub frees: bool,
    /// It finds damage of media.
    pub finds_damage: bool,
    /// What a killed process has stored is made durable before anybody relies on it.
    pub survives_kills: bool,
    /// A write that is refused for want of room does not happen either if a crash comes before it is refused. Not so where
    /// recovery makes changes of a log again, and has more room.
    pub refuses_at_once: bool,
    /// What an opening for reading shows of a write that was cut off, later openings show, too. Not so where a log is left for the
    /// next opening that may write.
    pub settles_when_read: bool,
    /// A full store can always delete. Not so one whose deletes are records, in a pool that is too small to hold room back.
    pub deletes_when_full: bool,
    /// What is left of a damaged store can be read also where it is full. Not so where tables must be made first.
    pub salvages_when_full: bool,
    /// It makes writes of several keys as one.
    pub batches: bool,
}

impl Abilities {
    /// Everything.
    pub const ALL: Self = Self {
        in_place: true,
        knows_new: true,
        reclaim: true,
        frees: true,
        finds_damage: true,
        survives_kills: true,
        refuses_at_once: true,
        settles_when_read: true,
        deletes_when_full: true,
        salvages_when_full: true,
        batches: true,
    };

    /// What a structure by itself has, which is no store: planted bugs, the primitives study.
    pub(crate) const OF_STRUCTURES: Self = Self {
        reclaim: false,
        finds_damage: false,
        survives_kills: false,
        batches: false,
        ..Self::ALL
    };
}

/// A store of one engine, written down: one implementation for each engine, in a file of its own.
pub(crate) trait StoreShape: Debug {
    /// A small store for a simulated machine, so that space is reused and segments are added soon.
    fn random(chance: &mut Chance) -> Self
    where
        Self: Sized;

    /// Store number `number` for real files: room for thousands of keys of 8 bytes and values of
    /// [`VALUE_BYTES`](crate::subject::VALUE_BYTES), in small blocks and segments, so that it grows often.
    fn for_files(number: u64) -> Self
    where
        Self: Sized;

    /// Why no crash shows a mutant of this engine, if it is one of those. Reviewed by hand.
    fn equivalent(mutation: Mutation) -> Option<&'static str>
    where
        Self: Sized;

    /// What can be asked of it.
    fn abilities(&self) -> Abilities;

    /// Whether the store's tasks are stepped: once after each action. Else what they do is left to the operations.
    fn steps_tasks(&self) -> bool {
        false
    }

    /// Verifies what of the pool is in use, by the lengths of the key and of the value of each record.
    ///
    /// # Errors
    /// What is wrong.
    fn verify_structure(
        &self,
        _found: &EngineInspect,
        _records: &[(usize, usize)],
    ) -> Result<(), String> {
        Ok(())
    }

    /// Which acknowledged writes may be missing after an end, on persistent memory.
    fn loss(&self, _end: End) -> Loss {
        Loss::Nothing
    }

    /// How many of the last writes of each session damage may take without a word, because nothing but their own checksums
    /// says that they are there: what is not sound at the end of a log looks as if a crash had cut it off.
    fn unchecked_tail(&self) -> usize {
        0
    }

    /// Bytes of simulated memory it needs.
    fn image_bytes(&self) -> u64 {
        32 << 10
    }

    /// Keys are numbers below this.
    fn keys(&self) -> u64;

    /// Bytes of a key, at least 8.
    fn key_bytes(&self, key: u64) -> usize;

    /// How many bytes may follow the words of a value.
    fn extra_bytes(&self) -> &'static [usize] {
        &[0]
    }

    /// How it is made: engine, geometry, sizes. Nothing about background work.
    fn options(&self) -> Options;
}
