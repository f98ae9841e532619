//! [`Plan`]: what a batch changes, by what its keys have.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use chimera_pmem::Pmem;

use crate::engine::contract::client::Client;
use crate::engine::contract::engine::Engine;
use crate::engine::shared::writes::admit;
use crate::records::batch_record::{self, BYTES_MAX, CHANGE_BYTES};
use crate::types::batch::{Batch, Write};
use crate::types::durability::Durability;
use crate::types::error::{Error, Result};

/// A key that a batch changes.
#[derive(Debug)]
pub(super) struct Change<'b> {
    pub(super) key: &'b [u8],
    pub(super) old: Option<Vec<u8>>,
    pub(super) new: Option<Cow<'b, [u8]>>,
}

/// What a batch changes: new keys, then other values, then deletes.
#[derive(Debug)]
pub(super) struct Plan<'b> {
    pub(super) changes: Vec<Change<'b>>,
}

/// What a batch has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) inserted: u64,
    pub(crate) overwritten: u64,
    pub(crate) deleted: u64,
    pub(crate) value_bytes: u64,
}

/// What a key has, and what it is to have.
struct State<'b> {
    old: Option<Vec<u8>>,
    new: New<'b>,
}

/// What a key is to have.
enum New<'b> {
    /// What it has.
    Same,
    Value(Cow<'b, [u8]>),
    Nothing,
}

/// The keys of a batch, as far as they were read.
#[derive(Default)]
struct States<'b> {
    keys: BTreeMap<&'b [u8], State<'b>>,
    /// Bytes of what they have.
    bytes: u64,
}

impl<'b> States<'b> {
    /// The state of a key, which is read when it is met first.
    fn of<P: Pmem, E: Engine<P>>(
        &mut self,
        engine: &E,
        client: &mut E::Client,
        key: &'b [u8],
    ) -> Result<&mut State<'b>> {
        match self.keys.entry(key) {
            Entry::Occupied(found) => Ok(found.into_mut()),
            Entry::Vacant(place) => {
                let is_there = engine.read(client, engine.core().hash.of(key), key)?;
                let old = is_there.then(|| client.shared().value.clone());
                self.bytes += (CHANGE_BYTES + key.len() + old.as_ref().map_or(0, Vec::len)) as u64;
                check_bytes(self.bytes)?;
                Ok(place.insert(State { old, new: New::Same }))
            }
        }
    }
}

impl State<'_> {
    /// What the key has now.
    fn now(&self) -> Option<&[u8]> {
        match &self.new {
            New::Same => self.old.as_deref(),
            New::Value(value) => Some(value),
            New::Nothing => None,
        }
    }
}

impl<'b> Plan<'b> {
    /// Reads the keys of a batch, which the caller holds, and looks at its conditions. The number of one that does not hold.
    ///
    /// # Errors
    /// `BatchSize`; those of a get, and of a put.
    pub(super) fn of<P: Pmem, E: Engine<P>>(
        engine: &E,
        client: &mut E::Client,
        batch: &'b Batch,
    ) -> Result<Result<Self, usize>> {
        let mut states = States::default();
        for (number, (key, condition)) in batch.conditions.iter().enumerate() {
            let state = states.of(engine, client, key)?;
            if !condition.holds(state.old.as_deref()) {
                return Ok(Err(number));
            }
        }
        for (key, write) in &batch.writes {
            let state = states.of(engine, client, key)?;
            state.new = match write {
                Write::Put(value) => New::Value(Cow::Borrowed(value)),
                Write::Delete => New::Nothing,
                Write::Add { at, delta, absent } => {
                    let now = state.now().unwrap_or(absent);
                    New::Value(Cow::Owned(added(now, *at, *delta)?))
                }
            };
        }
        // What is as it is to be may not be durable yet, where a session writes in batches of its own.
        let is_batched = engine.durability(Durability::Immediate) == Durability::Batched;
        let states = states.keys.into_iter();
        let mut changes: Vec<Change<'b>> = states
            .filter_map(|(key, State { old, new })| match new {
                New::Same => None,
                New::Value(value) => Some(Change { key, old, new: Some(value) }),
                New::Nothing => Some(Change { key, old, new: None }),
            })
            .filter(|change| is_batched || change.old.as_deref() != change.new.as_deref())
            .filter(|change| change.old.is_some() || change.new.is_some())
            .collect();
        changes.sort_by_key(Change::turn);
        for change in changes.iter().filter(|change| change.old.is_none()) {
            admit(engine, client, change.key)?;
        }
        let plan = Self { changes };
        check_bytes(plan.bytes()).map(|()| Ok(plan))
    }

    /// The bytes of its record.
    pub(super) fn record(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for change in &self.changes {
            let (new, is_new) = (change.new.as_deref(), change.old.is_none());
            batch_record::push(&mut bytes, change.key, new, is_new);
        }
        bytes
    }

    /// Bytes of its record, if each key had the longer of its values before and after.
    pub(super) fn bytes(&self) -> u64 {
        let bytes = |change: &Change<'_>| {
            let longest = change.new.as_deref().map_or(0, <[u8]>::len);
            let longest = longest.max(change.old.as_ref().map_or(0, Vec::len));
            (CHANGE_BYTES + change.key.len() + longest) as u64
        };
        self.changes.iter().map(bytes).sum()
    }

    /// What its changes are.
    pub(super) fn done(&self) -> Done {
        let mut done = Done::default();
        for change in &self.changes {
            done.value_bytes += change.new.as_deref().map_or(0, <[u8]>::len) as u64;
            match change.turn() {
                INSERTS => done.inserted += 1,
                REPLACES => done.overwritten += 1,
                _ => done.deleted += 1,
            }
        }
        done
    }
}

/// The turn of changes, in a plan.
const INSERTS: u8 = 0;
const REPLACES: u8 = 1;
const DELETES: u8 = 2;

impl Change<'_> {
    fn turn(&self) -> u8 {
        match (&self.old, &self.new) {
            (_, None) => DELETES,
            (None, _) => INSERTS,
            _ => REPLACES,
        }
    }
}

fn check_bytes(bytes: u64) -> Result<()> {
    let is_possible = bytes <= BYTES_MAX;
    let too_many = || Error::BatchSize { found: bytes, most: BYTES_MAX };
    is_possible.then_some(()).ok_or_else(too_many)
}

/// A value with `delta` added to its number at `at`.
fn added(value: &[u8], at: usize, delta: u64) -> Result<Vec<u8>> {
    let mut value = value.to_vec();
    let value_bytes = value.len();
    let field = at.checked_add(8).and_then(|end| value.get_mut(at..end));
    let field = field.ok_or(Error::FieldOutOfRange { at, value_bytes })?;
    let before = u64::from_le_bytes((&*field).try_into().expect("8 bytes"));
    field.copy_from_slice(&before.wrapping_add(delta).to_le_bytes());
    Ok(value)
}
