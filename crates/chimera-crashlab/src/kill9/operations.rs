//! What a session does: follows from a seed, so both processes know.

use std::ops::Range;

use chimera::{Batch, Durability, Result, Session};

use super::plan::Chance;
use crate::subject::{Abilities, EngineShape, VALUE_BYTES};

/// Keys of each session: few, so that slots are used again and again.
pub(super) const KEYS: u64 = 400;
const KEY_BYTES: usize = 8;

/// What writes to a store, apart from its path.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Work {
    /// Sessions, each on a thread of its own
    #[arg(long)]
    pub(super) sessions: u8,
    /// What the store looks like, as kept cases have it
    #[arg(long, value_parser = parse_shape)]
    pub(super) shape: EngineShape,
    /// What a finished operation survives
    #[arg(long)]
    pub(super) durability: Durability,
    /// Which operations
    #[arg(long)]
    pub(super) cycle: u64,
    /// Operations of each session, after which the store is closed
    #[arg(long)]
    pub(super) operations: u64,
}

fn parse_shape(text: &str) -> std::result::Result<EngineShape, serde_json::Error> {
    serde_json::from_str(text)
}

/// What is stored under a key: a version, and what was added to a field in place since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    version: u64,
    added: u64,
}

impl Stored {
    /// The value: every byte follows from the key, the version and the sum.
    pub(super) fn bytes(self, number: u64) -> [u8; VALUE_BYTES] {
        let mixed = (number << 32 ^ self.version).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let words = [
            self.version,
            mixed.wrapping_add(self.added),
            mixed.rotate_left(29),
            mixed.rotate_left(43),
        ];
        let mut bytes = [0; VALUE_BYTES];
        for (chunk, word) in bytes.chunks_mut(8).zip(words) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

/// Key number `number`.
pub(super) fn key(number: u64) -> [u8; KEY_BYTES] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Put {
        version: u64,
    },
    Delete,
    Add {
        delta: u64,
    },
    Replace {
        version: u64,
    },
    Swap {
        version: u64,
    },
    /// Puts to some keys in a row, and of the last one a delete.
    Batch {
        version: u64,
    },
}

/// Keys of a batch.
const BATCH_KEYS: u64 = 5;

/// One operation on a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    number: u64,
    action: Action,
}

/// The operations of a session in one cycle, without end: such as can be asked of the store.
pub(super) fn operations(
    session: u64,
    cycle: u64,
    abilities: Abilities,
) -> impl Iterator<Item = Operation> {
    let chance = Chance::new(cycle.wrapping_mul(0x9e37_79b9) ^ session << 56);
    // The last numbers stand for what not every store can be asked.
    let kinds = if abilities.in_place { 14 } else { 12 };
    (1_u64..).map(move |step| {
        let version = cycle << 32 | step;
        let action = match chance.below(kinds) {
            0..5 => Action::Put { version },
            5..8 => Action::Delete,
            8 => Action::Replace { version },
            9 => Action::Swap { version },
            10 | 11 => Action::Batch { version },
            _ => Action::Add { delta: 1 + chance.below(1000) },
        };
        Operation { number: session * KEYS + chance.below(KEYS), action }
    })
}

impl Operation {
    /// Does it.
    ///
    /// # Errors
    /// What the store says.
    pub(super) fn carry_out(self, session: &mut Session) -> Result<()> {
        let key = key(self.number);
        let value = |version| Stored { version, added: 0 }.bytes(self.number);
        match self.action {
            Action::Put { version } => session.put(key, value(version)).map(drop),
            Action::Delete => session.delete(key).map(drop),
            Action::Add { delta } => session.fetch_add_u64(key, 8, delta).map(drop),
            Action::Replace { version } => {
                session.update(key, |old| old.copy_from_slice(&value(version))).map(drop)
            }
            Action::Swap { version } => match session.get(key)? {
                Some(old) => session.compare_and_swap(key, &old, value(version)).map(drop),
                None => Ok(()),
            },
            Action::Batch { version } => {
                let mut batch = Batch::new();
                for number in self.numbers() {
                    let stored = Stored { version, added: 0 }.bytes(number);
                    batch.put(super::operations::key(number), stored);
                }
                batch.delete(super::operations::key(self.numbers().end - 1));
                session.write(&batch)
            }
        }
    }

    /// The keys that it writes to, of the session's own.
    pub(super) fn numbers(self) -> Range<u64> {
        match self.action {
            Action::Batch { .. } => {
                let first = self.number - self.number % BATCH_KEYS;
                first..first + BATCH_KEYS
            }
            _ => self.number..self.number + 1,
        }
    }

    /// What is stored afterwards under one of its keys.
    pub(super) fn after(self, number: u64, before: Option<Stored>) -> Option<Stored> {
        match (self.action, before) {
            (Action::Put { version }, _)
            | (Action::Replace { version } | Action::Swap { version }, Some(_)) => {
                Some(Stored { version, added: 0 })
            }
            (Action::Batch { version }, _) => {
                let is_deleted = number == self.numbers().end - 1;
                (!is_deleted).then_some(Stored { version, added: 0 })
            }
            (Action::Delete, _) | (_, None) => None,
            (Action::Add { delta }, Some(old)) => {
                Some(Stored { added: old.added.wrapping_add(delta), ..old })
            }
        }
    }
}
