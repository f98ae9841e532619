//! Damage of media: flipped bits and poisoned lines must be reported or be without effect. A record
//! never vanishes in silence.

use std::sync::Arc;

use chimera_pmem::Environment;

use super::expectation::Expectation;
use super::model::text;
use super::quiet;
use super::verify::STEPS_PER_WORD_MAX;
use crate::chance::Chance;
use crate::media::LINE_WORDS;
use crate::simulated::{Machine, Memory};
use crate::subject::{Failure, Store, Subject};

/// What becomes of some words.
type Damage = Vec<(u32, u64)>;

/// A flipped bit, or a line of garbage, where there is something.
fn random_damage(machine: &Machine, chance: &mut Chance) -> Damage {
    let used: Vec<u32> =
        (0..machine.len() as u32).filter(|word| machine.peek(*word) != 0).collect();
    if used.is_empty() {
        return Damage::new();
    }
    let word = used[chance.below(used.len() as u64) as usize];
    if chance.below(4) > 0 {
        // Numbers and bits of slots are in the low half.
        let bit = if chance.below(2) == 0 { chance.below(8) } else { chance.below(64) };
        return vec![(word, machine.peek(word) ^ 1 << bit)];
    }
    let first = word / LINE_WORDS * LINE_WORDS;
    (first..first + LINE_WORDS).map(|word| (word, chance.next())).collect()
}

/// Damages the machine before or after the store is opened, and verifies what it makes of that, perhaps
/// when it has moved its records; then takes back every change.
///
/// # Errors
/// What is wrong.
pub(crate) fn verify_damaged<S: Subject>(
    subject: &S,
    machine: &Arc<Machine>,
    environment: &Arc<dyn Environment>,
    expectation: &Expectation,
    chance: &mut Chance,
) -> Result<(), String> {
    let damage = random_damage(machine, chance);
    let way = chance.below(3);
    // Follows from the damage, so that cases that were kept stay what they were.
    let is_compacted = Chance::new(damage.first().map_or(0, |(_, value)| *value)).below(4) == 0;
    machine.start(STEPS_PER_WORD_MAX * machine.len() as u64);
    machine.remember(Memory::Undo);
    let outcome = quiet::catch(|| {
        let mut store;
        if way == 0 {
            store = subject.open(machine, environment)?;
            apply(machine, &damage);
        } else {
            apply(machine, &damage);
            let opened = match way {
                1 => subject.open(machine, environment),
                _ => subject.salvage(machine, environment),
            };
            store = match opened {
                Err(Failure::Wrong(_)) => return Ok(()),
                other => other?,
            };
        }
        // What moves gets a check, of whatever it is where it had none.
        let is_unchecked = store.has_unchecked_values();
        if is_compacted && let Err(panic @ Failure::Panic(_)) = store.compact(1) {
            return Err(panic);
        }
        look(subject, &mut store, expectation, way == 2, is_unchecked)?;
        machine.remember(Memory::Off);
        Ok(())
    });
    machine.remember(Memory::Off);
    machine.undo();
    let how = ["an open store", "a store to be opened", "a store to be salvaged"][way as usize];
    outcome.map_err(|failure| format!("{how} with damaged words {damage:x?}: {failure}"))
}

fn apply(machine: &Machine, damage: &Damage) {
    let mut state = machine.state();
    for (word, value) in damage {
        machine.patch(&mut state, *word, *value);
    }
}

/// Every key must be there as expected, or be reported. A salvaged store may have lost records, and
/// found deleted ones again: it must be readable. Values that are changed in place have no check
/// (`is_unchecked`).
fn look<S: Subject>(
    subject: &S,
    store: &mut S::Store,
    expectation: &Expectation,
    is_salvaged: bool,
    is_unchecked: bool,
) -> Result<(), Failure> {
    let mut is_reported = false;
    for key in 0..subject.keys() {
        let found = match store.get(0, key) {
            Err(Failure::Wrong(_)) => {
                is_reported = true;
                continue;
            }
            other => other?,
        };
        let is_right =
            is_salvaged || expectation.model().get(key) == found || found.is_some() && is_unchecked;
        if !is_right {
            let (found, expected) = (text(found.as_ref()), expectation.text(key));
            let what = format!("key {key} holds {found} without complaint, instead of {expected}");
            return Err(Failure::Wrong(what));
        }
    }
    if is_reported && store.check_media().is_ok() {
        let what = "a record cannot be read, and verification finds nothing wrong";
        return Err(Failure::Wrong(what.to_owned()));
    }
    Ok(())
}
