//! What is tested: stores on a simulated machine, through their public interface; the planted bugs; the structures of the
//! primitives study.

mod any;
mod engine;
mod fixtures;
mod primitives;
mod shape;

use std::fmt;
use std::sync::Arc;

use chimera_pmem::Environment;

use crate::durability::{End, Loss};
use crate::simulated::Machine;
pub(crate) use any::{Shape, SubjectVisitor};
pub(crate) use engine::Engine;
pub(crate) use fixtures::{Bug, Fixture, Form};
pub(crate) use primitives::Primitive;
pub use shape::Abilities;
pub(crate) use shape::{EngineShape, parse_engine};

/// Words of a value.
pub(crate) const VALUE_WORDS: usize = 4;
/// Bytes of a value.
pub(crate) const VALUE_BYTES: usize = 8 * VALUE_WORDS;
/// A value.
pub(crate) type Value = [u64; VALUE_WORDS];

/// Why an operation did not do what it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// There is no room: nothing has changed.
    Full,
    /// Anything else: a violation, or what damage of media brings about.
    Wrong(String),
    /// A panic: always a violation.
    Panic(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("the store is full"),
            Self::Wrong(what) => f.write_str(what),
            Self::Panic(what) => write!(f, "a panic: {what}"),
        }
    }
}

/// How to open what is tested.
pub(crate) trait Subject: Send + Sync {
    /// The open store.
    type Store: Store;

    /// Bytes of simulated memory it needs.
    fn image_bytes(&self) -> u64;

    /// Keys are numbers below this.
    fn keys(&self) -> u64;

    /// Opens or creates it.
    ///
    /// # Errors
    /// When it cannot be opened, which is a violation after every crash.
    fn open(
        &self,
        machine: &Arc<Machine>,
        environment: &Arc<dyn Environment>,
    ) -> Result<Self::Store, Failure>;

    /// What can be asked of it.
    fn abilities(&self) -> Abilities;

    /// Whether its tasks are stepped, once after each action.
    fn steps_tasks(&self) -> bool {
        false
    }

    /// Which acknowledged writes may be missing after an end.
    fn loss(&self, _end: End) -> Loss {
        Loss::Nothing
    }

    /// How many of the last writes of each session damage may take without a word, because nothing but their own checksums
    /// says that they are there: what is not sound at the end of a log looks as if a crash had cut it off.
    fn unchecked_tail(&self) -> usize {
        0
    }

    /// Opens it in spite of damage.
    ///
    /// # Errors
    /// When the damage leaves nothing to open.
    fn salvage(
        &self,
        machine: &Arc<Machine>,
        environment: &Arc<dyn Environment>,
    ) -> Result<Self::Store, Failure> {
        self.open(machine, environment)
    }
}

/// An open store of numbered keys and values of four words. Sessions are numbered, too.
pub(crate) trait Store {
    /// Stores a value; whether the key is new.
    fn put(&mut self, session: usize, key: u64, value: &Value) -> Result<bool, Failure>;
    /// The value of a key.
    fn get(&mut self, session: usize, key: u64) -> Result<Option<Value>, Failure>;
    /// Removes a key; whether it was there.
    fn delete(&mut self, session: usize, key: u64) -> Result<bool, Failure>;
    /// Adds to one word of a value; what it was before.
    fn add(
        &mut self,
        session: usize,
        key: u64,
        word: usize,
        delta: u64,
    ) -> Result<Option<u64>, Failure>;
    /// Replaces a value by reading, changing and writing it as one step; whether it was there.
    fn replace(&mut self, session: usize, key: u64, value: &Value) -> Result<bool, Failure>;
    /// Makes writes of several keys as one, in their order: puts of values, and deletes.
    fn write(&mut self, session: usize, writes: &[(u64, Option<Value>)]) -> Result<(), Failure> {
        let _ = (session, writes);
        Err(Failure::Wrong("it makes no batches".to_owned()))
    }
    /// Ends a session; the next operation with its number begins a new one.
    fn end_session(&mut self, session: usize);
    /// Makes everything so far durable.
    fn sync(&mut self) -> Result<(), Failure>;
    /// Empties blocks of which so many percent are free, where it can.
    fn compact(&mut self, _percent: u32) -> Result<(), Failure> {
        Ok(())
    }
    /// Verifies the structure, of which so many records are known.
    fn check(&mut self, records: u64) -> Result<(), Failure>;
    /// Verifies every checksum.
    fn check_media(&mut self) -> Result<(), Failure> {
        Ok(())
    }
    /// Whether opening found that it had been closed in order, if it tells.
    fn was_clean(&mut self) -> Option<bool> {
        None
    }
    /// Closes in order.
    fn close(self) -> Result<(), Failure>;
}
