//! The order of keys, written when the store is closed and read when it is opened again. See [`key_dump`].
//!
//! Closing writes the runs, each durable before the next one. Then one change of the superblock says that the store is closed,
//! and which dump it has. Opening says in both copies that the store is open and has no dump, then builds the tree of the dump,
//! then frees all runs of dumps before the store serves anybody. So:
//! - A run is read only when a closed superblock named its dump. The run was durable before that, and nothing has changed since.
//! - A crash at any other moment leaves runs that nothing names. The next opening frees them, and the order is gathered from the
//!   index. So does an opening without order, and one that salvages: an old dump never misses keys that came later.
//! - A dump of an older life has another number: the number is above that of every earlier change of the superblock.
//! - A damaged copy of the superblock may leave the other one in force, which names the dump of before the opening. If the store
//!   was written to since, the runs were freed before. So the dump is not whole, or it is of keys of which none has changed.

use std::ops::Bound;

use chimera_pmem::{Operation, Pmem};

use super::items::Items;
use super::kinds::ORDER;
use crate::ordered::{Cursor, Direction, Order};
use crate::pool::CLOSED_WORDS;
use crate::pool::runs::Run;
use crate::records::key_dump::{self, Dump, Writer};
use crate::records::limits::Limits;
use crate::sync::{Mutex, lock};
use crate::types::error::Result;

/// Runs that the last life wrote keys to, in their order. None any more once the store takes writes.
pub(super) struct LastDump(Mutex<Vec<Run>>);

impl LastDump {
    pub(super) fn new(runs: Vec<Run>) -> Self {
        Self(Mutex::new(runs))
    }

    /// Makes the order of the keys of a dump, if it is whole and has as many keys as the index; frees all dumps.
    pub(super) fn load<P: Pmem>(
        &self,
        items: &Items<P>,
        limits: Limits,
        order: Option<&Order>,
    ) -> Result<bool> {
        let (core, pool) = (items.core(), items.pool());
        let _booked = core.book(Operation::Recovery, 0);
        let runs = std::mem::take(&mut *lock(&self.0));
        let dump = Dump::from_words(pool.closed_words()).filter(|_| !items.salvages());
        let is_loaded =
            order.zip(dump).is_some_and(|(order, dump)| load(items, limits, order, dump, &runs));
        // A store that lacks a part changes nothing.
        if !pool.read_only && core.poison.failure().is_none() {
            runs.into_iter().try_for_each(|run| pool.free_run(run))?;
            core.forget();
        }
        Ok(is_loaded)
    }
}

/// Makes the order of the keys of a dump in these runs. Whether it could be made.
fn load<P: Pmem>(
    items: &Items<P>,
    limits: Limits,
    order: &Order,
    dump: Dump,
    runs: &[Run],
) -> bool {
    let is_key = |key: &[u8]| limits.check_key(key).is_ok();
    let parts = (dump.keys() == items.index().len())
        .then(|| key_dump::read(items.pool(), runs, dump, is_key))
        .flatten();
    if parts.is_none() {
        order.refuse_dump();
    }
    parts.is_some_and(|parts| order.load(parts.iter().flat_map(|part| key_dump::entries(part))))
}

/// Writes a dump, where the order has all keys and the pool has room for it.
pub(super) fn save<P: Pmem>(items: &Items<P>) -> [u64; CLOSED_WORDS] {
    let (core, pool) = (items.core(), items.pool());
    let Some(order) = core.changes.order() else { return [0; CLOSED_WORDS] };
    let is_last = pool.read_only || pool.is_anonymous();
    if is_last || items.salvages() || !order.is_ready() || order.catch_up().is_err() {
        return [0; CLOSED_WORDS];
    }
    let _booked = core.book(Operation::Recovery, 0);
    let mut writer = Writer::new(pool, ORDER, order.dump_bytes());
    let written = write_all(order, &mut writer);
    let written = written.or_else(|error| writer.give_up().and(Err(error)));
    core.forget();
    match written {
        Ok(dump) => dump.to_words(),
        Err(error) => {
            log::info!("the next open gathers the order of keys anew: {error}");
            [0; CLOSED_WORDS]
        }
    }
}

/// Writes all keys of an order.
fn write_all<P: Pmem>(order: &Order, writer: &mut Writer<'_, P>) -> Result<Dump> {
    let mut cursor = Cursor::new(Bound::Unbounded, Bound::Unbounded);
    loop {
        let page = cursor.read(order, Direction::Ascending, usize::MAX);
        if page.is_empty() {
            return writer.finish();
        }
        (0..page.len()).try_for_each(|at| writer.push(page.key(at)))?;
    }
}
