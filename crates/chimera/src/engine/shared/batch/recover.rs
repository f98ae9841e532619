//! Ending batches that a crash has cut off.

use chimera_pmem::{Operation, Pmem};

use super::space;
use crate::engine::contract::client::Client;
use crate::engine::contract::engine::Engine;
use crate::records::batch_record::{self, FoundChange, FoundRecord, sites, steps};
use crate::types::error::{Error, Result};

/// Makes the changes again of each batch whose record is whole, and frees all pieces. Before there are sessions. How many there
/// were.
///
/// # Errors
/// `BatchUnfinished` where nothing may be written, and a batch was cut off. `Corrupted` for a record that no program writes;
/// those of a put and of a delete. With `salvage` such a batch stays as it is, and that is noted as a loss.
///
/// # Durability
/// Each batch is durably made before its record is cleared. A crash before leaves the record.
pub(crate) fn recover<P: Pmem, E: Engine<P>>(engine: &E, salvage: bool) -> Result<u64> {
    let pieces = engine.take_found_pieces();
    if pieces.is_empty() {
        return Ok(0);
    }
    let core = engine.core();
    let (pool, _booked) = (&core.pool, core.book(Operation::Recovery, 0));
    let records = batch_record::read(pool, core.hash, &pieces);
    if pool.read_only {
        let is_served = records.is_empty() || salvage;
        return if is_served { Ok(0) } else { Err(Error::BatchUnfinished) };
    }
    let count = records.len() as u64;
    let mut client = engine.client(0);
    let (used, unused): (Vec<_>, Vec<_>) =
        pieces.into_iter().enumerate().partition(|(number, _)| {
            records.iter().any(|record| record.pieces.iter().any(|(of, _)| of == number))
        });
    // The batch may need their room.
    for (_, piece) in unused {
        space::free(engine, piece);
    }
    write_back(engine, &records);
    for record in records {
        match end(engine, &mut client, &record) {
            Ok(()) => {}
            Err(error) if salvage => pool.note_lost(&error, record.at),
            Err(error) => return Err(error),
        }
        batch_record::clear(pool, record.at);
    }
    engine.end(&mut client);
    for (_, piece) in used {
        space::free(engine, piece);
    }
    core.forget();
    Ok(count)
}

/// Makes records durable that a process may have stored, and not fenced, when it was killed.
fn write_back<P: Pmem, E: Engine<P>>(engine: &E, records: &[FoundRecord]) {
    let pool = &engine.core().pool;
    if !pool.may_hold_undurable() {
        return;
    }
    for (_, whole) in records.iter().flat_map(|record| &record.pieces) {
        pool.pmem.flush(*whole, sites::FOUND);
    }
    pool.pmem.fence(sites::FOUND);
}

/// Makes the changes of a batch again.
fn end<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    record: &FoundRecord,
) -> Result<()> {
    let nonsense = || Error::corrupted("the record of a batch says what no batch does", record.at);
    let changes = record.changes.as_ref().ok_or_else(nonsense)?;
    for FoundChange { key, value } in changes {
        let is_possible = engine.check_key(key).is_ok()
            && value.as_ref().is_none_or(|value| engine.check_value(value).is_ok());
        if !is_possible {
            return Err(nonsense());
        }
    }
    if engine.core().pool.pmem.skips(steps::REDO) {
        return Ok(());
    }
    for FoundChange { key, value } in changes {
        let is_there = engine.read(client, engine.core().hash.of(key), key)?;
        match value {
            Some(value) if is_there && client.shared().value == *value => {}
            Some(value) => engine.put(client, key, value).map(drop)?,
            None if is_there => engine.delete(client, key).map(drop)?,
            None => {}
        }
    }
    engine.persist(client);
    Ok(())
}
