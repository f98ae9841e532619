//! Batches: writes of several keys that are made as one. Once for all engines, of their puts and deletes.
//!
//! # Protocol
//! 1. The batch [takes](crate::engine::contract::poison::Batching) its keys: nobody else writes to them until it ends. What they
//!    have is read, and its conditions are looked at (`plan`).
//! 2. The [record](crate::records::batch_record) of all that changes is written, durably (`space`: where).
//! 3. The changes are made, each as any put or delete: new keys first, then other values, then deletes (`apply`).
//! 4. The record is cleared, durably, and the keys are let go of.
//!
//! A batch that changes one key, or none, needs no record.
//!
//! # Why it is all or nothing
//! A crash before the record is durable leaves no change, one behind it leaves the record, from which whoever opens the store
//! makes all changes (`recover`). The record is cleared when all are durable. Until then nobody else changes those keys, so
//! making the changes again takes nothing back.
//!
//! # Where there is no room
//! A batch that cannot be made changes nothing. Before its record is written, room is set aside: to make it, and to take it back.
//! It is given up when a put or a delete finds none. Before that nobody else may begin to write until the batch ends, and who had
//! begun is waited for. New keys come first, because most engines take them back without any room. Should a change still fail, what was made is taken back; and should that
//! fail, the store refuses writes and keeps the record: opening the store again makes the batch, or takes it back.
//!
//! What an index needs to grow for new keys is not foreseen. So a crash may cut off a batch that would have found no room, and
//! then neither does opening. The record says which keys are new: while none of the others has changed, opening takes back those
//! that are there. Nobody was told that the batch was made.

mod apply;
mod plan;
mod recover;
mod space;

use chimera_pmem::{Operation, Pmem};

use crate::engine::contract::client::Client;
use crate::engine::contract::engine::Engine;
use crate::engine::contract::poison::Batching;
use crate::engine::contract::upkeep::Upkeep;
use crate::records::batch_record;
use crate::types::batch::{Batch, Write};
use crate::types::error::Result;
use apply::Failed;
use plan::{Done, Plan};
use space::Cushion;

pub(crate) use recover::{Ended, recover};
pub(crate) use space::give_back;

/// What came of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done(Done),
    /// Nothing was written: this condition does not hold. Its number.
    Refused(usize),
}

/// Makes all writes of a batch, if its conditions hold.
pub(crate) fn write<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    batch: &Batch,
) -> Result<Outcome> {
    check(engine, batch)?;
    let core = engine.core();
    let writes = batch.writes.iter().map(|(key, _)| key);
    let keys = writes.chain(batch.conditions.iter().map(|(key, _)| key));
    let hashes: Vec<u64> = keys.map(|key| core.hash.of(key)).collect();
    let pass = |hash| engine.upkeep().pass(hash);
    let mut batching = Batching::begin(&core.poison, &**core.environment(), &hashes, pass)?;
    client.shared().batch = batching.batch();
    let made = write_held(engine, client, batch, &mut batching);
    client.shared().batch = 0;
    made
}

/// As [`write`], of a batch that holds its keys.
fn write_held<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    batch: &Batch,
    batching: &mut Batching<'_>,
) -> Result<Outcome> {
    let plan = match Plan::of(engine, client, batch)? {
        Ok(plan) => plan,
        Err(condition) => return Ok(Outcome::Refused(condition)),
    };
    match &plan.changes[..] {
        [] => {}
        [change] => apply::make(engine, client, change)?,
        _ => write_recorded(engine, client, &plan, batching)?,
    }
    Ok(Outcome::Done(plan.done()))
}

/// Makes the changes of a plan, which its record says before.
fn write_recorded<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    plan: &Plan<'_>,
    batching: &mut Batching<'_>,
) -> Result<()> {
    let cushion = space::set_aside(engine, plan, batching.batch())?;
    write_with(engine, client, plan, (cushion, batching))
}

/// As [`write_recorded`], with what is set aside.
fn write_with<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    plan: &Plan<'_>,
    (mut cushion, batching): (Cushion, &mut Batching<'_>),
) -> Result<()> {
    let core = engine.core();
    let (bytes, number) = (plan.record(), client.shared_ref().number);
    let taken = space::take(engine, bytes.len() as u64, batching.batch());
    let pieces = match taken {
        Ok(pieces) => pieces,
        Err(error) => {
            cushion.give_back(engine);
            return Err(error);
        }
    };
    let at = pieces[0].bytes.offset();
    // What sessions write in batches of their own: what was written before survives where this one does.
    engine.sync();
    {
        let _booked = core.book(Operation::Batch, number);
        let change = |piece: &_, work: &dyn Fn()| engine.change_piece(piece, work);
        batch_record::write((&core.pool, core.hash), &pieces, &bytes, change);
        core.pool.pmem.operation_decided();
    }
    let applied = apply::all(engine, client, plan, (&mut cushion, batching));
    if let Err(Failed { is_in_doubt: true, error }) = applied {
        // Whoever opens the store makes the batch.
        return Err(error);
    }
    engine.sync();
    {
        let _booked = core.book(Operation::Batch, number);
        batch_record::clear(&core.pool, at);
    }
    space::put_back(engine, pieces);
    cushion.give_back(engine);
    let Err(failed) = applied else { return Ok(()) };
    // The caller is told that nothing was written: a power loss must not leave the record, and take back that it was cleared.
    core.settled(Ok(()))?;
    Err(failed.error)
}

/// Refuses a batch with a key or a value that the store does not take.
fn check<P: Pmem, E: Engine<P>>(engine: &E, batch: &Batch) -> Result<()> {
    for (key, write) in &batch.writes {
        engine.check_key(key)?;
        match write {
            Write::Put(value) | Write::Add { absent: value, .. } => engine.check_value(value)?,
            Write::Delete => {}
        }
    }
    batch.conditions.iter().try_for_each(|(key, _)| engine.check_key(key))
}

/// As [`write`], with nothing set aside: a change may find no room, and so may what takes the others back.
#[cfg(test)]
pub(crate) fn write_without_room<P: Pmem, E: Engine<P>>(engine: &E, batch: &Batch) -> Result<()> {
    let core = engine.core();
    let hashes: Vec<u64> = batch.writes.iter().map(|(key, _)| core.hash.of(key)).collect();
    let pass = |hash| engine.upkeep().pass(hash);
    let mut client = engine.client(0);
    let mut batching = Batching::begin(&core.poison, &**core.environment(), &hashes, pass)?;
    client.shared().batch = batching.batch();
    let plan = Plan::of(engine, &mut client, batch)?.expect("no conditions");
    let made = write_with(engine, &mut client, &plan, (Cushion::default(), &mut batching));
    client.shared().batch = 0;
    engine.end(&mut client);
    made
}

/// As a batch that is cut off once its record is durable: of these changes.
#[cfg(test)]
pub(crate) fn leave_record<P: Pmem, E: Engine<P>>(engine: &E, changes: &[u8]) {
    let pieces = space::take(engine, changes.len() as u64, u64::MAX).expect("room");
    let change = |piece: &_, work: &dyn Fn()| engine.change_piece(piece, work);
    // The pieces stay in use: nothing frees them.
    batch_record::write((&engine.core().pool, engine.core().hash), &pieces, changes, change);
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
