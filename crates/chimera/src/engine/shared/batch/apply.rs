//! Making the changes of a batch, and taking them back.

use chimera_pmem::Pmem;

use super::plan::{Change, Plan};
use super::space::Cushion;
use crate::engine::contract::engine::Engine;
use crate::engine::contract::poison::Batching;
use crate::types::error::{Error, Result};

/// Times that a change is tried again, while nobody else may write, when the room that was set aside is given up: who was about
/// to write before that may still take some of it.
const TRIES: u32 = 16;

/// What a batch has set aside, and its keys.
pub(super) type Held<'h, 'k> = (&'h mut Cushion, &'h mut Batching<'k>);

/// Makes all changes of a plan.
///
/// # Errors
/// Those of a put and of a delete, with all of it taken back; or else the store refuses writes.
pub(super) fn all<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    plan: &Plan<'_>,
    (cushion, batching): Held<'_, '_>,
) -> Result<()> {
    for (number, change) in plan.changes.iter().enumerate() {
        let done = |client: &mut E::Client| make(engine, client, change);
        let made = with_room(engine, client, (cushion, batching), done);
        if let Err(error) = made {
            let made = plan.changes[..number].iter().rev();
            for change in made {
                let undo = |client: &mut E::Client| undo(engine, client, change);
                if let Err(failed) = with_room(engine, client, (cushion, batching), undo) {
                    let reason = format!(
                        "a batch could not be made, because {error}, nor taken back, because {failed}: it is made when \
                         the store is opened again"
                    );
                    engine.core().poison.poison(&reason);
                    return Err(Error::Poisoned { reason });
                }
            }
            return Err(error);
        }
    }
    Ok(())
}

/// Makes a change.
pub(super) fn make<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    change: &Change<'_>,
) -> Result<()> {
    match &change.new {
        Some(value) => engine.put(client, change.key, value).map(drop),
        None => engine.delete(client, change.key).map(drop),
    }
}

/// Takes a change back.
fn undo<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    change: &Change<'_>,
) -> Result<()> {
    match &change.old {
        Some(value) => engine.put(client, change.key, value).map(drop),
        None => engine.delete(client, change.key).map(drop),
    }
}

/// Does `work`. Where the pool is full, what was set aside is given up, and it is tried again while nobody else may write.
fn with_room<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    (cushion, batching): Held<'_, '_>,
    work: impl Fn(&mut E::Client) -> Result<()>,
) -> Result<()> {
    let mut tried = 0;
    loop {
        match work(client) {
            Err(Error::PoolFull { .. }) if tried < TRIES => {
                batching.be_alone();
                cushion.give_up(engine);
                engine.core().environment().relax(tried);
                tried += 1;
            }
            done => return done,
        }
    }
}
