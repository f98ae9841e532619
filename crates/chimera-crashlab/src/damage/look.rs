//! Opening a store and reading all of it, in every way that there is.

use std::collections::BTreeSet;

use chimera::{Db, Error, ExportOptions, Options, StreamReader};

use super::history::Contents;
use super::machine::{Backend, Machine};

/// How a loss of its own begins that is beside others.
const SAYS_MORE: &str = "by more than the other places explain";

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
    /// A key that came more than once.
    pub(super) twice: Option<Vec<u8>>,
}

impl View {
    fn new(step: Step) -> Self {
        Self { step, found: Contents::new(), refused: BTreeSet::new(), twice: None }
    }

    fn add(&mut self, key: &[u8], value: &[u8]) {
        if self.found.insert(key.to_vec(), value.to_vec()).is_some() {
            self.twice = Some(key.to_vec());
        }
    }
}

/// What a store showed.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The first step that said something was wrong, and what it said.
    pub(super) noticed: Option<(Step, String)>,
    /// Of a salvaged store: whether its report says that something is left out.
    pub(super) has_losses: bool,
    /// And that more is missing than the other places explain.
    pub(super) says_more: Option<String>,
    pub(super) views: Vec<View>,
}

impl Seen {
    fn notice(&mut self, step: Step, what: &dyn ToString) {
        self.noticed.get_or_insert_with(|| (step, what.to_string()));
    }

    /// A step that tells of all records.
    fn view(&mut self, step: Step, tell: impl FnOnce(&mut View) -> Result<(), Error>) {
        let mut view = View::new(step);
        match tell(&mut view) {
            Ok(()) => self.views.push(view),
            Err(error) => self.notice(step, &error),
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
    let losses = db.stats().recovery.losses;
    seen.has_losses = !db.losses().is_empty();
    seen.says_more =
        losses.first.filter(|first| first.what.contains(SAYS_MORE)).map(|first| first.what);
    if way == Way::Used {
        match db.compact(1, None) {
            Ok(_) | Err(Error::PoolFull { .. }) => {}
            Err(error) => seen.notice(Step::Compact, &error),
        }
        get(&db, &mut seen, keys);
        if let Err(failed) = db.close() {
            seen.notice(Step::Close, &failed.error());
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
            seen.notice(Step::Open, &error);
            None
        }
    }
}

fn read<B: Backend>(db: &Db<B>, seen: &mut Seen, keys: &[Vec<u8>]) {
    if let Some(damage) = db.check(None).first_damage {
        seen.notice(Step::Check, &format!("{} at {}", damage.what, damage.at));
    }
    get(db, seen, keys);
    seen.view(Step::List, |view| {
        db.for_each(|key, value| {
            view.add(key, value);
            true
        })
    });
    if db.stats().order.is_some() {
        seen.view(Step::Scan, |view| {
            for record in db.scan(..)? {
                let (key, value) = record?;
                view.add(&key, &value);
            }
            Ok(())
        });
    }
    seen.view(Step::Export, |view| export(db, view));
}

/// Every key by itself.
fn get<B: Backend>(db: &Db<B>, seen: &mut Seen, keys: &[Vec<u8>]) {
    let mut view = View::new(Step::Get);
    let mut session = db.session();
    for key in keys {
        match session.get(key) {
            Ok(Some(value)) => view.add(key, &value),
            Ok(None) => {}
            Err(error) => {
                seen.notice(Step::Get, &error);
                view.refused.insert(key.clone());
            }
        }
    }
    seen.views.push(view);
}

/// The records of a stream, by docs/STREAM.md.
fn export<B: Backend>(db: &Db<B>, view: &mut View) -> Result<(), Error> {
    const HEADER_BYTES: usize = 64;
    const FRAME_BYTES: usize = 48;
    let mut stream = Vec::new();
    let report = db.export(&mut stream, &ExportOptions::new().frame_bytes(1000))?;
    let verified = StreamReader::new(&stream[..])?.verify()?;
    assert!(verified.is_complete(), "an export that succeeded: {:?}", verified.fault());
    let (mut at, mut records) = (HEADER_BYTES, 0);
    let length =
        |at: usize| u32::from_le_bytes(stream[at..at + 4].try_into().expect("4 bytes")) as usize;
    // Kind 2 is the end.
    while length(at) == 1 {
        let of_frame = length(at + 4);
        at += FRAME_BYTES;
        records += of_frame;
        for _ in 0..of_frame {
            let (key, value) = (length(at), length(at + 4));
            let (from, to) = (at + 8 + key, at + 8 + key + value);
            view.add(&stream[at + 8..from], &stream[from..to]);
            at = to;
        }
    }
    assert_eq!(records as u64, report.records, "records of an export");
    Ok(())
}
