//! What the writer process does, and what must be left of it. Both follow from a seed, so an
//! acknowledgement is no more than a count.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Child;

use chimera::{Db, Durability, Options, RecordLayout, Session};

use crate::tools::{Chance, key, mix, open, small, value};

const STORE: &str = "CHIMERA_TEST_WRITER_STORE";
const ACKNOWLEDGEMENTS: &str = "CHIMERA_TEST_WRITER_ACKNOWLEDGEMENTS";
const SESSIONS: &str = "CHIMERA_TEST_WRITER_SESSIONS";
const CYCLE: &str = "CHIMERA_TEST_WRITER_CYCLE";
const DURABILITY: &str = "CHIMERA_TEST_WRITER_DURABILITY";
const LAYOUT: &str = "CHIMERA_TEST_WRITER_LAYOUT";

/// Keys of each session.
const RANGE: u64 = 400;

/// A store that grows often, with a journal that is full often.
pub(crate) fn options() -> Options {
    small().populate_ahead_bytes(4096).journal_bytes(64 << 10)
}

/// Where a session says how many operations are done: a byte for each.
fn file_of(acknowledgements: &Path, session: u64) -> PathBuf {
    acknowledgements.join(format!("acknowledged-{session}"))
}

/// How many operations of a session are done.
pub(crate) fn acknowledged(acknowledgements: &Path, session: u64) -> u64 {
    std::fs::metadata(file_of(acknowledgements, session)).map_or(0, |file| file.len())
}

/// Starts a writer process.
pub(crate) fn start(
    store: &Path,
    acknowledgements: &Path,
    sessions: u64,
    cycle: u64,
    layout: RecordLayout,
    durability: Durability,
) -> Child {
    for session in 0..sessions {
        File::create(file_of(acknowledgements, session)).expect("an empty file");
    }
    let layout = if layout == RecordLayout::Checked { "checked" } else { "published" };
    let durability = match durability {
        Durability::Group { max_delay } => format!("group:{}", max_delay.as_millis()),
        other => other.to_string(),
    };
    let variables = [
        (STORE, store.display().to_string()),
        (ACKNOWLEDGEMENTS, acknowledgements.display().to_string()),
        (SESSIONS, sessions.to_string()),
        (CYCLE, cycle.to_string()),
        (LAYOUT, layout.to_owned()),
        (DURABILITY, durability),
    ];
    crate::child("writer::as_another_process", &variables)
}

/// The writer. Does nothing when run as a test.
#[test]
fn as_another_process() {
    let Ok(store) = std::env::var(STORE) else { return };
    let text = |name| std::env::var(name).expect("the parent says");
    let number = |name| text(name).parse::<u64>().expect("a number");
    let acknowledgements = PathBuf::from(text(ACKNOWLEDGEMENTS));
    let (sessions, cycle) = (number(SESSIONS), number(CYCLE));
    let layout = text(LAYOUT).parse().expect("a layout");
    let durability = text(DURABILITY).parse().expect("a durability");
    let db = open(Path::new(&store), &options().layout(layout).durability(durability));
    std::thread::scope(|scope| {
        for session in 0..sessions {
            let acknowledgements = file_of(&acknowledgements, session);
            let db = &db;
            scope.spawn(move || {
                let mut file = File::options().append(true).open(acknowledgements).expect("there");
                let mut operations = operations(session, cycle);
                let mut session = db.session();
                loop {
                    operations.next().expect("without end").carry_out(&mut session);
                    file.write_all(b".").expect("written");
                }
            });
        }
    });
}

/// What is stored under a key: a version, and what was added in place since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stored {
    version: u64,
    added: u64,
}

impl Stored {
    fn bytes(self, number: u64) -> Vec<u8> {
        let mut bytes = value(number, self.version);
        let field = u64::from_le_bytes(bytes[8..16].try_into().expect("8 bytes"));
        bytes[8..16].copy_from_slice(&field.wrapping_add(self.added).to_le_bytes());
        bytes
    }
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
    /// By a read and a write of the whole value.
    Replace {
        version: u64,
    },
}

#[derive(Clone, Copy, Debug)]
struct Operation {
    number: u64,
    action: Action,
}

/// The operations of a session, without end.
fn operations(session: u64, cycle: u64) -> impl Iterator<Item = Operation> {
    let mut chance = Chance::new(mix(session + 1) ^ cycle);
    (1_u64..).map(move |step| {
        let version = cycle << 32 | step;
        let action = match chance.below(10) {
            0..5 => Action::Put { version },
            5 | 6 => Action::Delete,
            7 | 8 => Action::Add { delta: chance.below(1000) },
            _ => Action::Replace { version },
        };
        Operation { number: session * RANGE + chance.below(RANGE), action }
    })
}

impl Operation {
    fn carry_out(self, session: &mut Session) {
        let key = key(self.number);
        match self.action {
            Action::Put { version } => {
                session.put(&key, &value(self.number, version)).expect("put");
            }
            Action::Delete => {
                session.delete(&key).expect("delete");
            }
            Action::Add { delta } => {
                session.fetch_add_u64(&key, 8, delta).expect("in place");
            }
            Action::Replace { version } => {
                let new = value(self.number, version);
                session.update(&key, |old| old.copy_from_slice(&new)).expect("update");
            }
        }
    }

    /// What is stored under the key afterwards.
    fn after(self, before: Option<Stored>) -> Option<Stored> {
        match (self.action, before) {
            (Action::Put { version }, _) | (Action::Replace { version }, Some(_)) => {
                Some(Stored { version, added: 0 })
            }
            (Action::Delete, _) | (_, None) => None,
            (Action::Add { delta }, Some(old)) => {
                Some(Stored { added: old.added.wrapping_add(delta), ..old })
            }
        }
    }
}

/// What must be in the store.
#[derive(Debug, Default)]
pub(crate) struct Model(BTreeMap<u64, Stored>);

impl Model {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn set(&mut self, number: u64, stored: Option<Stored>) {
        match stored {
            Some(stored) => drop(self.0.insert(number, stored)),
            None => drop(self.0.remove(&number)),
        }
    }

    /// Compares a store with what a killed writer has acknowledged. Its last operation of each session
    /// may be done or not.
    pub(crate) fn verify(&mut self, db: &Db, acknowledgements: &Path, sessions: u64, cycle: u64) {
        let mut reader = db.session();
        let mut get = |number| reader.get(&key(number)).expect("nothing is damaged");
        for session in 0..sessions {
            let done = acknowledged(acknowledgements, session);
            let mut operations = operations(session, cycle);
            for operation in operations.by_ref().take(done as usize) {
                let before = self.0.get(&operation.number).copied();
                self.set(operation.number, operation.after(before));
            }
            let last = operations.next().expect("without end");
            let before = self.0.get(&last.number).copied();
            let after = last.after(before);
            let found = get(last.number);
            let bytes = |stored: Option<Stored>| stored.map(|stored| stored.bytes(last.number));
            if found != bytes(before) {
                assert_eq!(found, bytes(after), "cycle {cycle}: neither before nor after {last:?}");
                self.set(last.number, after);
            }
            for number in session * RANGE..(session + 1) * RANGE {
                let expected = self.0.get(&number).map(|stored| stored.bytes(number));
                assert_eq!(get(number), expected, "cycle {cycle}: key {number}");
            }
        }
        assert_eq!(db.stats().records, self.0.len() as u64);
    }
}
