//! [`Case`]: a run, written down so that it can be made again.

use std::fs;
use std::path::Path;

use chimera::EngineKind;
use serde::{Deserialize, Serialize};

use crate::chance::Chance;
use crate::simulated::Mutation;
use crate::subject::{Shape, Subject, Value};

/// One operation of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Action {
    /// The value follows from its number.
    Put {
        session: u8,
        key: u8,
        value: u64,
    },
    Delete {
        session: u8,
        key: u8,
    },
    Get {
        session: u8,
        key: u8,
    },
    Add {
        session: u8,
        key: u8,
        word: u8,
        delta: u64,
    },
    Replace {
        session: u8,
        key: u8,
        value: u64,
    },
    /// Puts to some keys and deletes of others, as one. Key number `n` of them gets the value with the number after `value` by
    /// `n`, or is deleted where bit `n` of `deletes` is set.
    Batch {
        session: u8,
        keys: [u8; BATCH_KEYS],
        value: u64,
        deletes: u8,
    },
    EndSession {
        session: u8,
    },
    Sync,
    /// Empties blocks of which so many percent are free, and gives the last ones back.
    Compact {
        percent: u8,
    },
    Reopen,
    /// The process is killed during what comes next: the opening of the store, at the beginning of an epoch and
    /// behind another kill and the action that it hit; else the next action. It makes so many more steps that
    /// change something, or all of them. Then another process opens the store on the same machine.
    Kill {
        after: u8,
    },
}

/// Keys of a batch, of which some may be the same.
pub(crate) const BATCH_KEYS: usize = 3;

/// The writes of a [batch](Action::Batch).
pub(crate) fn batch(
    keys: [u8; BATCH_KEYS],
    number: u64,
    deletes: u8,
) -> [(u64, Option<Value>); BATCH_KEYS] {
    std::array::from_fn(|place| {
        let is_deleted = deletes >> place & 1 != 0;
        let number = number.wrapping_add(place as u64);
        (keys[place].into(), (!is_deleted).then(|| value(number)))
    })
}

/// The value with a number.
pub(crate) fn value(number: u64) -> Value {
    let mut chance = Chance::new(number);
    std::array::from_fn(|_| chance.next())
}

/// Sessions that a run uses at a time.
const SESSIONS: u64 = 3;

/// A process is killed within so many steps that change something, or twice as many, up to 128: most operations have
/// about ten, those that add a segment and openings several times as many, and a batch where there is little room a hundred.
const KILLED_WITHIN: u64 = 8;

impl Action {
    /// Any operation on one of the keys of `subject` that can be asked of it.
    pub(crate) fn random<S: Subject>(chance: &mut Chance, subject: &S) -> Self {
        let (keys, abilities) = (subject.keys(), subject.abilities());
        loop {
            let action = Self::any(chance, keys);
            let can_be_asked = match action {
                Self::Add { .. } => abilities.in_place,
                Self::Compact { .. } => abilities.reclaim,
                Self::Kill { .. } => abilities.survives_kills,
                Self::Batch { .. } => abilities.batches,
                _ => true,
            };
            if can_be_asked {
                return action;
            }
        }
    }

    /// A kill after any number of steps.
    pub(crate) fn kill(chance: &mut Chance) -> Self {
        let within = KILLED_WITHIN << chance.below(5);
        Self::Kill { after: chance.below(within) as u8 }
    }

    pub(crate) fn is_kill(self) -> bool {
        matches!(self, Self::Kill { .. })
    }

    fn any(chance: &mut Chance, keys: u64) -> Self {
        let session = chance.below(SESSIONS) as u8;
        let key = chance.below(keys) as u8;
        match chance.below(125) {
            0..45 => Self::Put { session, key, value: chance.next() },
            45..65 => Self::Delete { session, key },
            65..80 => {
                // Mostly the last word: a second update of the same word is in place.
                let word = if chance.below(4) > 0 { 3 } else { chance.below(4) };
                Self::Add { session, key, word: word as u8, delta: chance.next() | 1 }
            }
            80..88 => Self::Replace { session, key, value: chance.next() },
            88..92 => Self::Get { session, key },
            92..96 => Self::EndSession { session },
            96..98 => Self::Sync,
            98..100 => Self::Reopen,
            100..105 => Self::Compact { percent: [1, 25, 50][chance.below(3) as usize] },
            105..120 => {
                let keys = std::array::from_fn(|_| chance.below(keys) as u8);
                // One in three is deleted.
                let deletes = (chance.next() & chance.next()) as u8 & 7;
                Self::Batch { session, keys, value: chance.next(), deletes }
            }
            _ => Self::kill(chance),
        }
    }
}

/// Where a run was cut, and what survived: numbers that are taken modulo how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Crash {
    /// Before the store is open; else after.
    pub(crate) during_recovery: bool,
    /// The number of the crash point among those of the epoch.
    pub(crate) point: u32,
    /// The number of the state among those of the point.
    pub(crate) state: u32,
}

/// Opening, some operations, and a crash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Epoch {
    pub(crate) actions: Vec<Action>,
    pub(crate) crash: Crash,
}

/// A run: in its last epoch every crash is tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Case {
    /// A step that is made wrong, as `mutate` names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mutation: Option<Mutation>,
    pub(crate) shape: Shape,
    pub(crate) seed: u64,
    pub(crate) epochs: Vec<Epoch>,
}

impl Case {
    /// The cases in `cases/` that noticed a mutation once: that of this engine, and one that may be of another.
    pub(crate) fn kept(mutation: Mutation, engine: EngineKind) -> impl Iterator<Item = Self> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
        let names = Self::kept_names(mutation, engine).into_iter();
        let texts = names.filter_map(move |name| fs::read_to_string(directory.join(name)).ok());
        texts.filter_map(|text| serde_json::from_str(&text).ok())
    }

    /// What a case of a mutation may be called. Engines have sites in common.
    pub(crate) fn kept_names(mutation: Mutation, engine: EngineKind) -> [String; 2] {
        let name = mutation.to_string().replace(' ', "-");
        [format!("{name}-{engine}.json"), format!("{name}.json")]
    }
}
