//! Opening a store and reading all of it, in every way that there is.

use std::collections::BTreeSet;

use chimera::{Db, Error, ExportOptions, Options, StreamReader};

use super::history::Contents;
use super::life::contents;
use super::machine::{Backend, Machine};

/// A way of reading a store, or of using it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Open,
    Check,
    Get,
    List,
    Scan,
    Export,
    Compact,
    Close,
}


/// What a step that found nothing wrong showed.
#[derive(Debug)]
pub(super) struct View {
    pub(super) step: Step,
    pub(super) found: Contents,
    /// Keys of which nothing was said, because they are damaged.
    pub(super) refused: BTreeSet<Vec<u8>>,
}

/// What a store showed.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The first step that said something was wrong, and what it said.
    pub(super) noticed: Option<(Step, String)>,
    pub(super) views: Vec<View>,
}

impl Seen {
    fn notice(&mut self, step: Step, what: impl ToString) {
        self.noticed.get_or_insert_with(|| (step, what.to_string()));
    }

    fn view(&mut self, step: Step, found: Result<Contents, Error>) {
        match found {
            Ok(found) => self.views.push(View { step, found, refused: BTreeSet::new() }),
            Err(error) => self.notice(step, error),
        }
    }
}

/// How a store is opened and used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    ReadOnly,
    Writing,
    /// For writing; space is reclaimed, the store closed and opened again.
    Used,
    Salvage,
}

/// Opens the store on these files, and reads it.
pub(super) fn look<B: Backend>(
    machine: &Machine,
    options: &Options,
    way: Way,
    keys: &[Vec<u8>],
) -> Seen {
    let mut seen = Seen::default();
    let options = options.clone();
    let reading = options.clone().read_only(true);
    let options = match way {
        Way::ReadOnly => reading.clone(),
        Way::Writing | Way::Used => options,
        Way::Salvage => options.salvage(true),
    };
    let Some(db) = opened::<B>(machine, &options, &mut seen) else { return seen };
    read(&db, &mut seen, keys);
    if way == Way::Used {
        match db.compact(1, None) {
            Ok(_) | Err(Error::PoolFull { .. }) => {}
            Err(error) => seen.notice(Step::Compact, error),
        }
        get(&db, &mut seen, keys);
        if let Err(failed) = db.close() {
            seen.notice(Step::Close, failed.error());
        }
        if let Some(db) = opened::<B>(machine, &reading, &mut seen) {
            read(&db, &mut seen, keys);
        }
    }
    seen
}

fn opened<B: Backend>(machine: &Machine, options: &Options, seen: &mut Seen) -> Option<Db<B>> {
    match machine.open::<B>(options) {
        Ok(db) => Some(db),
        Err(error) => {
            seen.notice(Step::Open, error);
            None
        }
    }
}

fn read<B: Backend>(db: &Db<B>, seen: &mut Seen, keys: &[Vec<u8>]) {
    if let Some(damage) = db.check(None).first_damage {
        seen.notice(Step::Check, format!("{} at {}", damage.what, damage.at));
    }
    get(db, seen, keys);
    seen.view(Step::List, contents(db));
    if db.stats().order.is_some() {
        seen.view(Step::Scan, db.scan(..).and_then(Iterator::collect));
    }
    seen.view(Step::Export, exported(db));
}

/// Every key by itself.
fn get<B: Backend>(db: &Db<B>, seen: &mut Seen, keys: &[Vec<u8>]) {
    let mut view = View { step: Step::Get, found: Contents::new(), refused: BTreeSet::new() };
    let mut session = db.session();
    for key in keys {
        match session.get(key) {
            Ok(Some(value)) => drop(view.found.insert(key.clone(), value)),
            Ok(None) => {}
            Err(error) => {
                seen.notice(Step::Get, error);
                view.refused.insert(key.clone());
            }
        }
    }
    seen.views.push(view);
}

/// The records of a stream, by docs/STREAM.md.
fn exported<B: Backend>(db: &Db<B>) -> Result<Contents, Error> {
    const HEADER_BYTES: usize = 64;
    const FRAME_BYTES: usize = 48;
    let mut stream = Vec::new();
    let report = db.export(&mut stream, &ExportOptions::new().frame_bytes(1000))?;
    let verified = StreamReader::new(&stream[..])?.verify()?;
    assert!(verified.is_complete(), "an export that succeeded: {:?}", verified.fault());
    let mut all = Contents::new();
    let length =
        |at: usize| u32::from_le_bytes(stream[at..at + 4].try_into().expect("4 bytes")) as usize;
    let mut at = HEADER_BYTES;
    // Kind 2 is the end.
    while length(at) == 1 {
        let records = length(at + 4);
        at += FRAME_BYTES;
        for _ in 0..records {
            let (key, value) = (length(at), length(at + 4));
            let (from, to) = (at + 8 + key, at + 8 + key + value);
            all.insert(stream[at + 8..from].to_vec(), stream[from..to].to_vec());
            at = to;
        }
    }
    assert_eq!(all.len() as u64, report.records, "records of an export");
    Ok(all)
}
