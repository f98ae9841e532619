//! A writer locks a shard whose MemTable has room for one entry more. Where it has none, the writer makes room.

use chimera_pmem::{Operation, Pmem};

use super::Flusher;
use crate::engine::chameleon::shard::{Locked, Writing};
use crate::engine::chameleon::space::Need;
use crate::engine::contract::client::SharedClient;
use crate::types::error::{Error, Result};

impl<P: Pmem> Flusher<P> {
    /// Locks a shard whose MemTable has room for one entry more, to move a record. `need` says what making room may take.
    #[inline]
    pub(crate) fn lock_with_room(
        &self,
        number: u32,
        shard: u32,
        need: Need,
    ) -> Result<Locked<'_, Writing>> {
        self.locked_with_room(number, shard, need, || self.index().lock(shard))
    }

    /// As [`lock_with_room`](Self::lock_with_room), for a write of a session to a key with this hash: waits for a batch that
    /// holds it.
    #[inline]
    pub(crate) fn lock_to_write(
        &self,
        client: &SharedClient,
        hash: u64,
        shard: u32,
        need: Need,
    ) -> Result<Locked<'_, Writing>> {
        let index = self.index();
        let (poison, environment) = (&index.core().poison, &**index.core().environment());
        let lock = || {
            let writing = index.lock_to_look(shard);
            if poison.is_quiet() {
                return Ok(writing);
            }
            poison.admit((hash, client.batch), environment, writing, || index.lock_to_look(shard))
        };
        self.locked_with_room(client.number, shard, need, lock)
    }

    #[inline(always)]
    fn locked_with_room<'a>(
        &'a self,
        number: u32,
        shard: u32,
        need: Need,
        lock: impl Fn() -> Result<Locked<'a, Writing>>,
    ) -> Result<Locked<'a, Writing>> {
        loop {
            let writing = lock()?;
            if !self.is_short(shard, &writing, need) {
                return Ok(writing);
            }
            drop(writing);
            self.make_room(number, shard, need)?;
        }
    }

    /// Whether the MemTable of a shard takes no entry for such a purpose.
    #[inline(always)]
    fn is_short(&self, shard: u32, writing: &Writing, need: Need) -> bool {
        self.index().shards().memtable(shard).is_full(writing.entries_max)
            || writing.refuses_puts && need == Need::Growth
    }

    /// Makes room in the MemTable of a shard, unless another session has: by a flush, or where there is no room for that by a
    /// new last table.
    ///
    /// # Errors
    /// When there is no space for tables, or a table or a record is damaged. The MemTable stays as it is.
    #[cold]
    pub(crate) fn make_room(&self, number: u32, shard: u32, need: Need) -> Result<()> {
        let index = self.index();
        let _booked = index.core().book(Operation::BlockHandOut, number);
        let mut work = index.lock_work(shard);
        let has_growth_room = self.tables().has_growth_room(shard);
        {
            let mut writing = index.lock_to_look(shard);
            writing.refuses_puts &= !has_growth_room;
            if !self.is_short(shard, &writing, need) {
                return Ok(());
            }
        }
        if index.core().pool.read_only {
            let reason = "the log has more that is in no table than a store open for reading only has room for: open it for \
                          writing once";
            return Err(Error::PoolFull { reason: reason.to_owned() });
        }
        let emptied = has_growth_room.then(|| self.empty_memtable(shard, &mut work));
        drop(work);
        match emptied {
            None | Some(Err(Error::PoolFull { .. })) => self.compactor.merge_shard(shard, need)?,
            Some(emptied) => emptied?,
        }
        index.log().free_ready()?;
        self.keep_growth_room();
        if need == Need::Growth && index.lock_to_look(shard).refuses_puts {
            let reason = "the table of a shard has no room to grow".to_owned();
            return Err(Error::PoolFull { reason });
        }
        Ok(())
    }
}
