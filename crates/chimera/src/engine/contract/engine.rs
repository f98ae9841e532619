//! [`Engine`]: an open store.

use std::ops::RangeInclusive;

use chimera_pmem::Pmem;

use super::client::Client;
use super::core::Core;
use super::engine_type::EngineType;
use super::listed::Listed;
use super::upkeep::Upkeep;
use crate::engine::options::Options;
use crate::pool::Compared;
use crate::pool::runs::{Piece, PieceOf};
use crate::types::durability::Durability;
use crate::types::error::Result;
use crate::types::stats::RecoveryStats;
use crate::types::stream::StreamKind;
use crate::types::swap::Swap;
use crate::types::totals::Totals;

/// What came of opening a store.
pub(crate) struct Recovered {
    pub(crate) stats: RecoveryStats,
    /// That nothing was changed before it was compared with its closing.
    pub(crate) compared: Compared,
}

/// An open store: its sessions and its records.
///
/// A method without a body is what only the engine knows. What is made of these, once for all engines, is in
/// [`shared`](crate::engine::shared).
pub(crate) trait Engine<P: Pmem>: Sized + Send + Sync + 'static {
    /// Its static face.
    type Type: EngineType;

    /// What a session keeps between operations.
    type Client: Client;

    /// Its work beside sessions.
    type Upkeep<'a>: Upkeep
    where
        Self: 'a;

    /// Whether this form of the engine is the one for a store with these parameters.
    fn takes(parameters: &<Self::Type as EngineType>::Parameters) -> bool;

    /// Makes an open pool ready for sessions. What was found is [compared](crate::pool::Pool::compare_with_closing) with what
    /// the store held when it was closed, before anything on media is changed.
    ///
    /// # Errors
    /// `Corrupted` for damage and where the store is not what it was, unless the options say to salvage; when memory runs
    /// out.
    fn open(
        core: Core<P>,
        parameters: <Self::Type as EngineType>::Parameters,
        options: &Options,
    ) -> Result<(Self, Recovered)>;

    /// What every engine is built on.
    fn core(&self) -> &Core<P>;

    /// The durability of an acknowledged write, where the medium and the options give `given`. Weaker only as
    /// a choice that has a name.
    fn durability(&self, given: Durability) -> Durability {
        given
    }

    /// Makes acknowledged writes that wait for a batch as durable as others: there are none, unless said otherwise.
    fn sync(&self) {}

    /// A client for a new session.
    fn client(&self, number: u32) -> Self::Client;

    /// Gives back what a session holds: nothing, unless said otherwise.
    fn end(&self, client: &mut Self::Client) {
        let _ = client;
    }

    /// Makes what a session has written durable, and certain: from now on its damage is noticed, and does not look like writes
    /// that a crash has cut off. Nothing, where each write is.
    fn certify(&self, client: &mut Self::Client) {
        let _ = client;
    }

    // ---- records -------------------------------------------------------------------------------

    /// # Errors
    /// When the store takes no such key.
    fn check_key(&self, key: &[u8]) -> Result<()>;

    /// # Errors
    /// When the store takes no such value.
    fn check_value(&self, value: &[u8]) -> Result<()>;

    /// Starts loading what of the index a put of a key with this hash needs, if that can be told.
    fn prefetch_to_put(&self, hash: u64) {
        let _ = hash;
    }

    /// Starts loading what of the index a get of a key with this hash needs, if that can be told.
    fn prefetch_to_get(&self, hash: u64) {
        let _ = hash;
    }

    /// Starts loading the records of keys with these hashes, if that can be told: what of the index leads to them was
    /// [loaded](Self::prefetch_to_get).
    fn prefetch_records(&self, hashes: &[u64]) {
        let _ = hashes;
    }

    /// Stores `value` under `key`, both of which are checked; tells whether the key is new.
    fn put(&self, client: &mut Self::Client, key: &[u8], value: &[u8]) -> Result<bool>;

    /// As [`put`](Self::put), of a value in which the 8 bytes at `at`, a multiple of 8, are a number that will be updated: the
    /// first [update](Self::update_word) costs no more than later ones, where the engine can do that.
    fn put_counter(
        &self,
        client: &mut Self::Client,
        key: &[u8],
        value: &[u8],
        at: usize,
    ) -> Result<bool> {
        let _ = at;
        self.put(client, key, value)
    }

    /// As [`read`](Self::read), for a get: [`Core::verify_reads`] says whether it verifies the sum of the value.
    /// Everything else is verified, and a mixture of two values is never read. Verifies it, unless the engine can
    /// leave it out.
    #[inline]
    fn get(&self, client: &mut Self::Client, hash: u64, key: &[u8]) -> Result<bool> {
        self.read(client, hash, key)
    }

    /// Reads the value of `key`, which has this hash, into the client's buffer, and verifies it whatever the options
    /// say. `false` when there is none.
    fn read(&self, client: &mut Self::Client, hash: u64, key: &[u8]) -> Result<bool>;

    /// Replaces the value of `key` by `new` if it is `expected`. `verify` where the caller has not read the
    /// value as `expected`: a damaged value that happens to be alike must not be confirmed.
    fn replace(
        &self,
        client: &mut Self::Client,
        hash: u64,
        key: &[u8],
        expected: &[u8],
        new: &[u8],
        verify: bool,
    ) -> Result<Swap>;

    /// Stores `value` under `key`, which has this hash, if there is no such key; tells whether there was none. Both are checked.
    fn insert(
        &self,
        client: &mut Self::Client,
        hash: u64,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool>;

    /// Removes `key`, which has this hash, if its value is `expected`. The value is verified.
    fn remove_if(
        &self,
        client: &mut Self::Client,
        hash: u64,
        key: &[u8],
        expected: &[u8],
    ) -> Result<Swap>;

    /// Applies `change` to the 8 bytes at `at`, a multiple of 8, of the value of `key`, little-endian;
    /// returns the number before. `change` answers `None` to leave it. An engine without `in_place` writes the
    /// record [anew](crate::engine::shared::update::update_bytes).
    fn update_word(
        &self,
        client: &mut Self::Client,
        key: &[u8],
        at: usize,
        change: impl Fn(u64) -> Option<u64>,
    ) -> Result<Option<u64>>;

    /// Removes `key`, which is checked; tells whether it was there.
    fn delete(&self, client: &mut Self::Client, key: &[u8]) -> Result<bool>;

    /// Hands every record from position `from` on to `take`, in the order of positions: keys that are
    /// there all the time exactly once, with a value that they have at that moment. Ends early when
    /// `take` says `false`. Nothing is locked while `take` runs.
    fn list(
        &self,
        client: &mut Self::Client,
        from: u64,
        take: impl FnMut(&Listed<'_>) -> bool,
    ) -> Result<()>;

    /// Hands every key at these positions to `take`, in any order. Others may write: a key that is there all the time
    /// comes, and what comes was there at some moment meanwhile. By a listing, unless the engine can do without values.
    fn list_keys(
        &self,
        client: &mut Self::Client,
        positions: RangeInclusive<u64>,
        mut take: impl FnMut(&[u8]),
    ) -> Result<()> {
        self.list(client, *positions.start(), |listed| {
            let is_inside = positions.contains(&listed.position);
            if is_inside {
                take(listed.key);
            }
            is_inside
        })
    }

    // ---- batches -------------------------------------------------------------------------------

    /// Takes a piece of about so many bytes for records of batches, or a shorter one.
    ///
    /// # Errors
    /// `PoolFull`, with nothing changed.
    fn take_piece(&self, bytes: u64) -> Result<Piece> {
        self.core().pool.take_piece(bytes)
    }

    /// Frees a piece that has no record.
    ///
    /// # Errors
    /// When it cannot be freed; it stays in use.
    fn free_piece(&self, piece: Piece) -> Result<()> {
        match piece.of {
            PieceOf::Run(run) => self.core().pool.free_run(run),
            PieceOf::Block(_) => Ok(()),
        }
    }

    /// The pieces that opening found: once.
    fn take_found_pieces(&self) -> Vec<Piece> {
        self.core().pool.take_found_pieces()
    }

    /// Does `work`, which stores into a piece, beside readers of what was there before.
    fn change_piece(&self, piece: &Piece, work: &dyn Fn()) {
        let _ = piece;
        work();
    }

    // ---- the whole store -----------------------------------------------------------------------

    /// Live records, roughly while others write.
    fn records(&self) -> u64;

    /// The sizes of its records: any, unless said otherwise.
    fn kind(&self) -> StreamKind {
        StreamKind { key_bytes: 0, value_bytes: 0 }
    }

    /// What the store holds, when it is closed and nobody uses it any more.
    ///
    /// # Cost
    /// Reads the index once.
    fn totals(&self) -> Totals;

    /// Its work beside sessions.
    fn upkeep(&self) -> Self::Upkeep<'_>;
}
