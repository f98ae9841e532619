//! [`Flusher`]: MemTables have room for the next write, and a restart has little to replay. It decides where MemTables go, and
//! when; the [compactor](super::compactor) makes tables of them.
//!
//! - `room`: a MemTable that is full when a writer comes. `empty`: where it goes, by the [mode](super::modes).
//! - `replay_bound`: MemTables that pin the log.
//! - `growth_room`: shards that are merged in a pool that is nearly full.

mod empty;
mod growth_room;
mod replay_bound;
mod room;

use chimera_pmem::Pmem;

use super::compactor::Compactor;
use super::index::Index;
use super::modes::Modes;
use super::space::Need;
use super::tables::Tables;
use crate::engine::contract::upkeep::Step;
use crate::sync::Mutex;
use crate::types::error::Error;
pub(super) use replay_bound::{BYTES_MAX, open_bytes_max};

/// Empties MemTables.
pub(super) struct Flusher<P: Pmem> {
    compactor: Compactor<P>,
    modes: Modes,
    /// Bytes of the log that a restart replays at most, in the normal mode, and who sees to that now.
    replay_bytes_max: u64,
    replay_turn: Mutex<()>,
    /// Held by the session that merges shards without growth room.
    merging: Mutex<()>,
}

impl<P: Pmem> Flusher<P> {
    pub(super) fn new(compactor: Compactor<P>, modes: Modes, replay_bytes_max: u64) -> Self {
        let (replay_turn, merging) = <(Mutex<()>, Mutex<()>)>::default();
        Self { compactor, modes, replay_bytes_max, replay_turn, merging }
    }

    #[inline(always)]
    pub(super) fn index(&self) -> &Index<P> {
        self.compactor.index()
    }

    pub(super) fn tables(&self) -> &Tables<P> {
        self.compactor.tables()
    }

    pub(super) fn compactor(&self) -> &Compactor<P> {
        &self.compactor
    }

    /// Before there are sessions.
    pub(super) fn tables_mut(&mut self) -> &mut Tables<P> {
        self.compactor.tables_mut()
    }

    pub(super) fn modes(&self) -> &Modes {
        &self.modes
    }

    pub(super) fn replay_bytes_max(&self) -> u64 {
        self.replay_bytes_max
    }

    /// Completes the bypass index of one shard after a restart.
    pub(super) fn complete_one(&self) -> Step {
        let Some(shard) = self.index().complete_one() else { return Step::Done };
        self.shrink_bypass(shard);
        Step::More { moved_bytes: 0 }
    }

    /// Makes one bypass index smaller, where all of them take more memory than they may. Whether there was one.
    pub(super) fn shrink_one(&self) -> bool {
        (0..self.index().shards().shape().shards()).any(|shard| self.shrink_bypass(shard))
    }

    /// Where bypass indexes take more memory than they may, puts what that of a shard has into the last table, and a small one
    /// in its place. Whether it was larger.
    fn shrink_bypass(&self, shard: u32) -> bool {
        let index = self.index();
        if !index.shards().bypass_exceeds_budget(shard) || index.core().poison.check().is_err() {
            return false;
        }
        let slots = || index.shards().bypass(shard).slots();
        let before = slots();
        match self.compactor.merge_shard(shard, Need::Upkeep) {
            Ok(()) | Err(Error::PoolFull { .. }) => {}
            Err(error) => log::error!("the bypass index of shard {shard} stays large: {error}"),
        }
        slots() < before
    }
}
