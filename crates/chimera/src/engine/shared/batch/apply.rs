//! Making the changes of a batch, and taking them back.

use chimera_pmem::Pmem;

use super::plan::{Change, Plan};
use super::space::{self, Cushion};
use crate::engine::contract::client::Client;
use crate::engine::contract::engine::Engine;
use crate::engine::contract::poison::Batching;
use crate::types::error::{Error, Result};

/// The pause before the second try, as [`relax`](chimera_pmem::Environment::relax) counts them: a short sleep.
const FIRST_PAUSE: u32 = 19;

/// What a batch has set aside, and its keys.
pub(super) type Held<'h, 'k> = (&'h mut Cushion, &'h mut Batching<'k>);

/// Why a batch was not made.
pub(super) struct Failed {
    pub(super) error: Error,
    /// It was not taken back either: the store refuses writes.
    pub(super) is_in_doubt: bool,
}

/// Makes all changes of a plan.
///
/// # Errors
/// Those of a put and of a delete, with all of it taken back, or with the store in doubt.
pub(super) fn all<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    plan: &Plan<'_>,
    (cushion, batching): Held<'_, '_>,
) -> Result<(), Failed> {
    for (number, change) in plan.changes.iter().enumerate() {
        let done = |client: &mut E::Client| make(engine, client, change);
        let Err(error) = with_room(engine, client, (cushion, batching), done) else { continue };
        cushion.begin_taking_back(engine);
        let made = number + usize::from(is_made(engine, client, change, &error));
        for change in plan.changes[..made].iter().rev() {
            let undo =
                |client: &mut E::Client| set(engine, client, change.key, change.old.as_deref());
            if let Err(failed) = with_room(engine, client, (cushion, batching), undo) {
                let reason = format!(
                    "a batch could not be made, because {error}, nor taken back, because {failed}: opening \
                     the store again makes it, or takes it back"
                );
                engine.core().poison.poison(&reason);
                return Err(Failed { error: Error::Poisoned { reason }, is_in_doubt: true });
            }
        }
        return Err(Failed { error, is_in_doubt: false });
    }
    Ok(())
}

/// Whether a change that failed was made all the same, as where what follows on it failed: damage of what is to be freed.
fn is_made<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    change: &Change<'_>,
    error: &Error,
) -> bool {
    if matches!(error, Error::PoolFull { .. }) {
        return false;
    }
    match engine.read(client, engine.core().hash.of(change.key), change.key) {
        Ok(is_there) => is_there.then_some(&client.shared().value) != change.old.as_ref(),
        // Its value is damaged: nothing was made of it.
        Err(_) => false,
    }
}

/// Makes a change.
pub(super) fn make<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    change: &Change<'_>,
) -> Result<()> {
    set(engine, client, change.key, change.new.as_deref())
}

/// Gives a key this value, or none.
pub(super) fn set<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    key: &[u8],
    value: Option<&[u8]>,
) -> Result<()> {
    match value {
        Some(value) => engine.put(client, key, value).map(drop),
        None => engine.delete(client, key).map(drop),
    }
}

/// Does `work`. Where the pool is full, what was set aside is given up, and it is tried again while nobody else may write. More
/// than once, because who was about to write before that may still take some of it, and leave it again: the pauses get longer.
fn with_room<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    (cushion, batching): Held<'_, '_>,
    work: impl Fn(&mut E::Client) -> Result<()>,
) -> Result<()> {
    loop {
        match work(client) {
            Err(error @ Error::PoolFull { .. }) => {
                let Some(number) = cushion.next_try() else { return Err(error) };
                if batching.be_alone() {
                    space::pass_all(engine);
                }
                cushion.give_up(engine);
                engine.core().environment().relax(FIRST_PAUSE + number);
            }
            done => return done,
        }
    }
}
