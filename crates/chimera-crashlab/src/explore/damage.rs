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
use crate::subject::{Failure, Store, Subject, VALUE_WORDS};

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
/// when it has moved its records, or written them anew; then takes back every change.
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
    let mut more = Chance::new(damage.first().map_or(0, |(_, value)| *value));
    let is_compacted = more.below(4) == 0;
    let added_word = (more.below(4) == 0).then(|| more.below(VALUE_WORDS as u64) as usize);
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
                Err(Failure::Full) if way == 2 && !subject.abilities().salvages_when_full => {
                    return Ok(());
                }
                other => other?,
            };
        }
        if is_compacted && let Err(panic @ Failure::Panic(_)) = store.compact(1) {
            return Err(panic);
        }
        if let Some(word) = added_word.filter(|_| subject.abilities().in_place) {
            add_nothing(&mut store, subject.keys(), word)?;
        }
        let opened = (way == 0).then(|| expectation.opened_since());
        look(subject, &mut store, opened.as_ref().unwrap_or(expectation), way == 2)?;
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

/// Adds zero to a word of every value: what is written anew for that must not get a check that is right where
/// the one before was wrong.
fn add_nothing<S: Store>(store: &mut S, keys: u64, word: usize) -> Result<(), Failure> {
    for key in 0..keys {
        if let Err(panic @ Failure::Panic(_)) = store.add(0, key, word, 0) {
            return Err(panic);
        }
    }
    Ok(())
}

/// Every key must be there as expected, or be reported. A salvaged store may have lost records, and
/// found deleted ones again: it must be readable. The one word of a value that is updated in place has no check.
fn look<S: Subject>(
    subject: &S,
    store: &mut S::Store,
    expectation: &Expectation,
    is_salvaged: bool,
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
        if !is_salvaged && !expectation.is_unnoticed(key, found.as_ref()) {
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
