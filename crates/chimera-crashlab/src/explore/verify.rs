//! Verifying what one crash left: recovery must succeed and find what is expected.

use std::sync::Arc;

use chimera_pmem::Environment;

use super::case::value;
use super::expectation::Expectation;
use super::quiet;
use super::record::read_all;
use crate::media::Patch;
use crate::simulated::{Machine, Memory};
use crate::subject::{Failure, Store, Subject, Value};

/// Seam calls that recovery and verification may make, for each word of memory.
pub(crate) const STEPS_PER_WORD_MAX: u64 = 64;

/// Puts the machine into the state `patch`, opens the store there and verifies it; then takes back
/// every change.
///
/// # Errors
/// What is wrong.
pub(crate) fn verify<S: Subject>(
    subject: &S,
    machine: &Arc<Machine>,
    environment: &Arc<dyn Environment>,
    expectation: &Expectation,
    patch: &Patch,
    twice: bool,
) -> Result<(), String> {
    machine.start(STEPS_PER_WORD_MAX * machine.len() as u64);
    let before = {
        let mut state = machine.state();
        for (word, value) in &patch.words {
            machine.patch(&mut state, *word, *value);
        }
        std::mem::replace(&mut state.tree, patch.tree.clone())
    };
    machine.remember(Memory::Undo);
    let outcome = quiet::catch(|| {
        let recovered = look(subject, machine, environment, expectation, None)?;
        if twice {
            machine.start(STEPS_PER_WORD_MAX * machine.len() as u64);
            machine.remember(Memory::Undo);
            look(subject, machine, environment, expectation, Some(&recovered))?;
            machine.start(STEPS_PER_WORD_MAX * machine.len() as u64);
            machine.remember(Memory::Undo);
            use_it(subject, machine, environment)?;
        }
        Ok(())
    });
    machine.remember(Memory::Off);
    machine.undo();
    machine.state().tree = before;
    outcome.map_err(|failure| failure.to_string())
}

/// Writes to the recovered store: what it takes for free, and the versions it gives, must be right.
fn use_it<S: Subject>(
    subject: &S,
    machine: &Arc<Machine>,
    environment: &Arc<dyn Environment>,
) -> Result<(), Failure> {
    let mut store = subject.open(machine, environment)?;
    let mut expected = read_all(&mut store, subject.keys())?;
    for (key, new) in [(0, value(key_seed(0))), (1, value(key_seed(1)))] {
        match store.put(0, key, &new) {
            Ok(_) => expected[key as usize] = Some(new),
            Err(Failure::Full) => {}
            Err(failure) => return Err(failure),
        }
    }
    let last = subject.keys() - 1;
    match store.delete(0, last) {
        Err(Failure::Full) if !subject.abilities().deletes_when_full => {}
        Err(failure) => {
            return Err(Failure::Wrong(format!("deleting after recovery: {failure}")));
        }
        Ok(_) => expected[last as usize] = None,
    }
    let mut records = 0;
    for (key, expected) in (0..).zip(&expected) {
        let found = store.get(0, key)?;
        if found != *expected {
            let what = format!("written to after recovery, key {key} holds something else");
            return Err(Failure::Wrong(what));
        }
        records += u64::from(found.is_some());
    }
    store.check(records)?;
    machine.remember(Memory::Off);
    Ok(())
}

fn key_seed(key: u64) -> u64 {
    !key
}

/// Opens the store and compares everything. What recovery once found, it must find again.
fn look<S: Subject>(
    subject: &S,
    machine: &Arc<Machine>,
    environment: &Arc<dyn Environment>,
    expectation: &Expectation,
    before: Option<&[Option<Value>]>,
) -> Result<Vec<Option<Value>>, Failure> {
    let mut store = subject.open(machine, environment)?;
    let found = read_all(&mut store, subject.keys())?;
    expectation.judge(&found).map_err(Failure::Wrong)?;
    if before.is_some_and(|before| before != found) {
        return Err(Failure::Wrong("recovering twice gives another result than once".to_owned()));
    }
    store.check(found.iter().flatten().count() as u64)?;
    // What closing would change is of no interest.
    machine.remember(Memory::Off);
    Ok(found)
}
