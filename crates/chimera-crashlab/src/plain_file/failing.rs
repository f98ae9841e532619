//! One sync that fails, each in turn: of the journal, of a data file, of a directory; at a put, at a sync that was asked for,
//! at closing, in the background, while a store is made or opened.
//!
//! Those behind it succeed again, and do not bring back what it has lost. So no call may say that something is durable which
//! it was to make durable. Afterwards the power fails, in several ways, or the process ends. The store is opened again: it
//! has everything that was said to be durable, and nothing that was never written.

use std::sync::Arc;

use chimera::Durability;

use super::chance::Chance;
use super::disk::Disk;
use super::files::PlainFiles;
use super::life::{State, Store, open};
use super::plan::Plan;

/// Ways in which the power fails at the end.
const SURVIVORS: u64 = 6;
/// Operations between two syncs that are asked for.
const SYNC_EVERY: usize = 7;
/// Operations between two times that the store is closed and opened again.
const CLOSE_EVERY: usize = 24;

/// What a read says where what it shows could not be made durable.
const UNSETTLED: &str = "cannot make durable what was read";

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Failing {
    /// Syncs that failed, each in a store of its own.
    pub failures: u64,
    /// Calls that said so: puts, syncs that were asked for, closing, opening.
    pub refused: [u64; 4],
    /// What the end of the power or of the process left, recovered and compared.
    pub states: u64,
    /// Promises that were broken.
    pub violations: Vec<String>,
}

/// What was said of a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Said {
    /// Nothing, or that it failed: the record may be there.
    Nothing,
    Acknowledged,
    Durable,
}

/// A store that something fails in, and what it has said.
struct Victim<'p> {
    plan: &'p Plan,
    files: Arc<PlainFiles>,
    /// All in one life of the machine.
    boot: u64,
    /// Of each put.
    said: Vec<Said>,
    refused: [u64; 4],
}

/// Lets each sync of a plan fail in turn.
pub fn explore_failing(plan: &Plan) -> Failing {
    let mut found = Failing::default();
    for syncs in 0.. {
        let mut chance = Chance::new(plan.seed ^ syncs);
        let files = Arc::new(PlainFiles::new(Disk::default(), plan.lie, 0, chance.word()));
        files.fail_after(syncs);
        let (said, refused) = (Vec::new(), [0; 4]);
        let mut victim = Victim { plan, files, boot: chance.word(), said, refused };
        let mut outcomes = vec![("before the end", victim.operate(&mut chance))];
        if !victim.files.has_failed() {
            return found;
        }
        found.failures += 1;
        for (sum, refused) in found.refused.iter_mut().zip(victim.refused) {
            *sum += refused;
        }
        let disk = victim.files.disk();
        outcomes.push(("the process ended", victim.verify(disk.killed(), victim.boot)));
        for _ in 0..SURVIVORS {
            let left = disk.survivor(&mut chance);
            outcomes.push(("the power failed", victim.verify(left, chance.word())));
        }
        found.states += outcomes.len() as u64 - 1;
        let violations = outcomes.into_iter().filter_map(|(how, outcome)| {
            let violation = outcome.err()?;
            Some(format!("seed {}: sync {syncs} failed, then {how}: {violation}", plan.seed))
        });
        found.violations.extend(violations);
    }
    found
}

fn record(plan: &Plan, number: usize) -> ([u8; 8], Vec<u8>) {
    let key = (number as u64).to_le_bytes();
    (key, plan.value(key, number))
}

impl Victim<'_> {
    /// Puts, syncs, closes and opens, whatever the calls say.
    ///
    /// # Errors
    /// When a store that was opened again lacks what was said to be durable.
    fn operate(&mut self, chance: &mut Chance) -> Result<(), String> {
        let mut store = self.reopen()?;
        while self.said.len() < self.plan.operations {
            let Some(Store { db, environment }) = &store else { return Ok(()) };
            let number = self.said.len();
            let (key, value) = record(self.plan, number);
            self.said.push(match db.put(key, &value) {
                Ok(_) if self.plan.durability == Durability::Immediate => Said::Durable,
                Ok(_) => Said::Acknowledged,
                Err(_) => {
                    self.refused[0] += 1;
                    Said::Nothing
                }
            });
            if number % SYNC_EVERY == SYNC_EVERY - 1 {
                let synced = db.sync();
                self.all_durable_if(synced.is_ok(), 1);
            }
            environment.advance(chance.below(30_000_000));
            environment.step_tasks();
            if number % CLOSE_EVERY == CLOSE_EVERY - 1 {
                self.close(store.take());
                store = self.reopen()?;
            }
        }
        self.close(store);
        Ok(())
    }

    /// A call that makes everything durable has ended.
    fn all_durable_if(&mut self, is_done: bool, call: usize) {
        if !is_done {
            self.refused[call] += 1;
            return;
        }
        for said in &mut self.said {
            if *said == Said::Acknowledged {
                *said = Said::Durable;
            }
        }
    }

    fn close(&mut self, store: Option<Store>) {
        let Some(Store { db, .. }) = store else { return };
        let closed = db.close();
        self.all_durable_if(closed.is_ok(), 2);
    }

    /// Opens the store, once more if it was this that failed. What it shows counts as acknowledged.
    fn reopen(&mut self) -> Result<Option<Store>, String> {
        for _ in 0..2 {
            let Ok(store) = open(&self.files, &self.plan.options(), self.boot) else {
                self.refused[3] += 1;
                continue;
            };
            let found = match store.verified() {
                // It was this that could not be made durable.
                Err(error) if error.contains(UNSETTLED) => {
                    self.refused[3] += 1;
                    continue;
                }
                verified => verified?,
            };
            self.compare(&found)?;
            for (number, said) in self.said.iter_mut().enumerate() {
                let is_there = found.contains_key(&record(self.plan, number).0[..]);
                let shown = if is_there { Said::Acknowledged } else { Said::Nothing };
                *said = if *said == Said::Durable { *said } else { shown };
            }
            return Ok(Some(store));
        }
        Ok(None)
    }

    /// Opens what is left, and compares it with what was promised.
    fn verify(&self, disk: Disk, boot: u64) -> Result<(), String> {
        let files = Arc::new(PlainFiles::new(disk, None, 0, 0));
        let store = open(&files, &self.plan.options(), boot)?;
        self.compare(&store.verified()?)
    }

    /// Everything durable is there, and nothing that was never written.
    fn compare(&self, found: &State) -> Result<(), String> {
        let mut there = 0;
        for (number, said) in self.said.iter().enumerate() {
            let (key, value) = record(self.plan, number);
            match found.get(&key[..]) {
                Some(found) if *found == value => there += 1,
                Some(_) => return Err(format!("record {number} has another value")),
                None if *said == Said::Durable => {
                    return Err(format!("record {number} was durable, and is missing"));
                }
                None => {}
            }
        }
        if there == found.len() { Ok(()) } else { Err("has what was never written".to_owned()) }
    }
}
