//! Making the [`Order`] of a store that is opened: from its listing, while it is used.

use chimera_pmem::{Operation, Pmem};

use crate::engine::contract::core::Core;
use crate::engine::contract::engine::Engine;
use crate::engine::contract::upkeep::Upkeep;
use crate::ordered::{Order, RebuildStep};
use crate::types::error::{Error, Result};

impl<P: Pmem> Core<P> {
    /// The order of the store's keys.
    ///
    /// # Errors
    /// `NotOrdered` when the store was opened without.
    pub(crate) fn order(&self) -> Result<&Order> {
        self.changes.order().map(|order| &**order).ok_or(Error::NotOrdered)
    }

    /// Threads that make the order: `asked`, or one for each processor where that is 0, but no more than there are parts.
    pub(crate) fn order_threads(&self, asked: usize) -> usize {
        let parts = self.changes.order().map_or(0, |order| order.parts());
        let threads = if asked == 0 { self.environment().parallelism() } else { asked };
        threads.min(usize::try_from(parts).unwrap_or(usize::MAX))
    }
}

/// Says how many keys there are, if they are to have an order, before anybody uses the store. Makes the order at once
/// where nothing may go on in the background.
///
/// # Errors
/// When a key does not match its checksum.
pub(crate) fn begin<P: Pmem, E: Engine<P>>(engine: &E, threads: usize) -> Result<()> {
    let core = engine.core();
    let order = core.changes.order();
    let is_loaded = engine.upkeep().load_order(order.map(|order| &**order))?;
    let Some(order) = order else { return Ok(()) };
    if is_loaded {
        return Ok(());
    }
    order.begin_rebuild(engine.records());
    if !core.pool.read_only {
        return Ok(());
    }
    core.environment().run_parallel(core.order_threads(threads), &|number| {
        while matches!(step(engine, number as u32), Ok(RebuildStep::Again)) {}
    });
    order.catch_up()
}

/// One step of making the order. Done where there is none.
///
/// # Errors
/// When a key does not match its checksum; scans are refused from then on.
pub(crate) fn step<P: Pmem, E: Engine<P>>(engine: &E, number: u32) -> Result<RebuildStep> {
    let core = engine.core();
    let Some(order) = core.changes.order() else { return Ok(RebuildStep::Done) };
    order.rebuild_step(|positions, keys| {
        let _booked = core.book(Operation::Recovery, number);
        let mut client = engine.client(number);
        let listed = engine.list_keys(&mut client, positions, |key| keys.push(key));
        engine.end(&mut client);
        core.forget();
        listed
    })
}

/// Makes sure that a scan that begins now sees every write that was acknowledged: makes the order, or waits while others
/// do, and lets it catch up.
///
/// # Errors
/// `NotOrdered`; `NotYetOrdered` when it is not to wait; when the order cannot have all keys.
#[inline]
pub(crate) fn begin_scan<P: Pmem, E: Engine<P>>(engine: &E, number: u32) -> Result<()> {
    let order = engine.core().order()?;
    if !order.is_ready() {
        await_order(engine, order, number)?;
    }
    order.catch_up()
}

#[cold]
fn await_order<P: Pmem, E: Engine<P>>(engine: &E, order: &Order, number: u32) -> Result<()> {
    order.check_ready()?;
    let mut attempt = 0;
    loop {
        match step(engine, number)? {
            RebuildStep::Done => return Ok(()),
            RebuildStep::Again => attempt = 0,
            RebuildStep::Busy => {
                engine.core().environment().relax(attempt);
                attempt = attempt.saturating_add(1);
            }
        }
    }
}
