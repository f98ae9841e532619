//! Ending batches that a crash has cut off.

use std::collections::BTreeSet;

use chimera_pmem::{Operation, Pmem};

use super::{apply, space};
use crate::engine::contract::client::Client;
use crate::engine::contract::engine::Engine;
use crate::engine::contract::upkeep::{Step, Upkeep};
use crate::pool::Pool;
use crate::pool::runs::Piece;
use crate::records::batch_record::{self, FoundChange, FoundRecord, sites, steps};
use crate::types::error::{Error, Result};

/// What came of batches that a crash has cut off: how many were made, and how many taken back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) made: u64,
    pub(crate) taken_back: u64,
}

/// Makes the changes again of each batch whose record is whole, or takes them back, and frees all pieces. Before there are
/// sessions.
///
/// # Errors
/// `BatchUnfinished` where nothing may be written, and a batch was cut off. `Corrupted` for a record that no program writes,
/// before anything is changed; those of a put and of a delete. With `salvage` a batch that cannot be made stays as it is, that is
/// noted as a loss, and the store refuses writes.
///
/// # Durability
/// Each batch is durably made before its record is cleared, and its damage is noticed from then on: else what was acknowledged
/// long before could look cut off. A crash before leaves the record.
pub(crate) fn recover<P: Pmem, E: Engine<P>>(engine: &E, salvage: bool) -> Result<Ended> {
    let pieces = engine.take_found_pieces();
    if pieces.is_empty() {
        return Ok(Ended::default());
    }
    let core = engine.core();
    let (pool, _booked) = (&core.pool, core.book(Operation::Recovery, 0));
    let mut records = batch_record::find(pool, core.hash, &pieces);
    if pool.read_only {
        if !(records.is_empty() || salvage) {
            return Err(Error::BatchUnfinished);
        }
        for record in records {
            pool.note_loss(record.at(), "a batch was cut off, and a part of it may be missing");
        }
        return Ok(Ended::default());
    }
    for number in (0..records.len()).rev() {
        match read(engine, &records[number]) {
            Err(error) if salvage => {
                let at = records.swap_remove(number).at();
                pool.note_lost(&error, at);
                batch_record::clear(pool, at);
            }
            changes => drop(changes?),
        }
    }
    let used: BTreeSet<usize> =
        records.iter().flat_map(|record| &record.pieces).map(|(number, _)| *number).collect();
    let pieces = pieces.into_iter().enumerate();
    let (used, unused): (Vec<_>, Vec<_>) = pieces.partition(|(number, _)| used.contains(number));
    write_back(&core.pool, &records, unused.iter().map(|(_, piece)| piece));
    // The batches may need their room.
    for (_, piece) in unused {
        space::free(engine, piece);
    }
    let ended = end_all(engine, &records, salvage)?;
    if ended.made + ended.taken_back == records.len() as u64 {
        for (_, piece) in used {
            space::free(engine, piece);
        }
    }
    core.forget();
    Ok(ended)
}

/// Makes durable what a process may have stored, and not fenced, when it was killed: whole records, and that there is none in
/// any other piece.
fn write_back<'p, P: Pmem>(
    pool: &Pool<P>,
    records: &[FoundRecord],
    unused: impl Iterator<Item = &'p Piece>,
) {
    if !pool.may_hold_undurable() {
        return;
    }
    for (_, whole) in records.iter().flat_map(|record| &record.pieces) {
        pool.pmem.flush(*whole, sites::FOUND);
    }
    for piece in unused {
        pool.pmem.flush(pool.extent(piece.bytes.offset(), 8), sites::FOUND);
    }
    pool.pmem.fence(sites::FOUND);
}

/// Ends batches, and clears their records. How many were made. With `salvage` the record of one that cannot be made stays.
fn end_all<P: Pmem, E: Engine<P>>(
    engine: &E,
    records: &[FoundRecord],
    salvage: bool,
) -> Result<Ended> {
    let (pool, mut client) = (&engine.core().pool, engine.client(0));
    let (mut ended, mut all) = (Ended::default(), Ok(()));
    for record in records {
        match end(engine, &mut client, record) {
            Ok(is_made) => {
                batch_record::clear(pool, record.at());
                ended.made += u64::from(is_made);
                ended.taken_back += u64::from(!is_made);
            }
            Err(error) if salvage => {
                pool.note_lost(&error, record.at());
                // The next opening makes it: what was written meanwhile would be undone.
                engine.core().poison.poison("a batch that a crash has cut off cannot be made");
            }
            Err(error) => {
                all = Err(error);
                break;
            }
        }
    }
    engine.end(&mut client);
    all.map(|()| ended)
}

/// The changes of a record.
///
/// # Errors
/// `Corrupted` where they are none that the store could have.
fn read<P: Pmem, E: Engine<P>>(engine: &E, record: &FoundRecord) -> Result<Vec<FoundChange>> {
    let core = engine.core();
    let changes = batch_record::read(&core.pool, core.hash, record);
    let is_possible = |FoundChange { key, value, .. }: &FoundChange| {
        let is_value = value.as_ref().is_none_or(|value| engine.check_value(value).is_ok());
        engine.check_key(key).is_ok() && is_value
    };
    changes.filter(|changes| changes.iter().all(is_possible)).ok_or_else(|| {
        Error::corrupted("the record of a batch says what no batch does", record.at())
    })
}

/// Makes the changes of a batch again, new keys first. Whether it is made: where there is no room for it, and nothing but new keys
/// is there of it, these are taken back, because it was never acknowledged.
fn end<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    record: &FoundRecord,
) -> Result<bool> {
    let changes = read(engine, record)?;
    if engine.core().pool.pmem.skips(steps::REDO) {
        return Ok(true);
    }
    let (inserts, others): (Vec<_>, Vec<_>) = changes.iter().partition(|change| change.is_new);
    // Deletes make room. Each key comes once, so the order does not matter.
    let (puts, deletes): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|change| change.value.is_some());
    let others = [deletes, puts].concat();
    let mut may_be_taken_back = true;
    for change in &others {
        may_be_taken_back &= !is_made(engine, client, change)?;
    }
    for change in inserts.iter().chain(&others) {
        match end_change(engine, client, change) {
            Err(Error::PoolFull { .. }) if may_be_taken_back => {
                log::warn!("a batch that a crash has cut off finds no room, and is taken back");
                take_back(engine, client, &inserts)?;
                return Ok(false);
            }
            done => done.map_err(without_room)?,
        }
        may_be_taken_back &= change.is_new;
    }
    engine.certify(client);
    engine.sync();
    Ok(true)
}

/// Takes back what is there of new keys.
fn take_back<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    inserts: &[&FoundChange],
) -> Result<()> {
    for FoundChange { key, .. } in inserts.iter().rev() {
        let nothing = FoundChange { key: key.clone(), value: None, is_new: false };
        end_change(engine, client, &nothing).map_err(without_room)?;
    }
    engine.certify(client);
    engine.sync();
    Ok(())
}

/// Whether a key is as a change leaves it.
fn is_made<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    FoundChange { key, value, .. }: &FoundChange,
) -> Result<bool> {
    let is_there = engine.read(client, engine.core().hash.of(key), key)?;
    Ok(match value {
        Some(value) => is_there && client.shared().value == *value,
        None => !is_there,
    })
}

/// Makes a change again, where the key is not as it is to be. Where it finds no room, some is made.
fn end_change<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    change: &FoundChange,
) -> Result<()> {
    if is_made(engine, client, change)? {
        return Ok(());
    }
    let FoundChange { key, value, .. } = change;
    match apply::set(engine, client, key, value.as_deref()) {
        Err(Error::PoolFull { .. }) => {
            make_room(engine)?;
            apply::set(engine, client, key, value.as_deref())
        }
        done => done,
    }
}

/// Reclaims what space there is to be had.
fn make_room<P: Pmem, E: Engine<P>>(engine: &E) -> Result<()> {
    let upkeep = engine.upkeep();
    while upkeep.is_rebuilding() && upkeep.rebuild_step() != Step::Done {}
    while upkeep.reclaim_step(1)? != Step::Done {}
    upkeep.end_reclaim();
    Ok(())
}

fn without_room(error: Error) -> Error {
    match error {
        Error::PoolFull { reason } => {
            let what = "a batch that a crash has cut off needs more room";
            let todo = "give the store more capacity, or the disk, and open it again";
            Error::PoolFull { reason: format!("{what} ({reason}); {todo}") }
        }
        error => error,
    }
}
