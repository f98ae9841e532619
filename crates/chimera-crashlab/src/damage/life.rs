//! [`Subject`]: a store made by random operations over several lives, with all that is known of it.

use chimera::{Db, EngineKind, Error, Options, Session};
use chimera_pmem::Hardware;

use super::history::{Contents, History, Write};
use super::image::Image;
use super::machine::{Backend, Machine, Place};
use crate::chance::Chance;
use crate::durability::End;
use crate::file_memory::FileMemory;
use crate::subject::{EngineShape, VALUE_WORDS, Value};

/// Most lives of a store before it is damaged.
const LIVES_MAX: u64 = 4;
/// Viper's pages have 256 bytes: the longest record of one, without header and lengths, and the most records.
const VIPER_RECORD_BYTES_MAX: usize = 256 - 8 - 24;
const VIPER_RECORDS_MAX: usize = 3;
/// Sessions at a time.
const SESSIONS: usize = 3;

/// A store, and what is known of it.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) shape: EngineShape,
    pub(super) place: Place,
    pub(super) options: Options,
    /// What is to be damaged.
    pub(super) image: Image,
    /// The files of an earlier moment.
    pub(super) older: Image,
    /// It was closed in order; else its process was killed.
    pub(super) is_closed: bool,
    pub(super) history: History,
}

impl Subject {
    /// A store that follows from a seed.
    ///
    /// # Errors
    /// What the store did that it must not, before anything was damaged.
    pub(super) fn new(engine: EngineKind, seed: u64) -> Result<Self, String> {
        let mut chance = Chance::new(seed);
        let shape = EngineShape::random(engine, &mut chance);
        let place = match Place::random(&mut chance) {
            // What a batch loses is not the end of the journal.
            place if place.has_journal() && may_lose(&shape) => Place::Memory,
            place => place,
        };
        let options = place.options(shape.options());
        let mut maker = Maker {
            subject: Self {
                shape,
                place,
                options,
                image: Image::default(),
                older: Image::default(),
                is_closed: false,
                history: History::default(),
            },
            chance,
            next_session: 0,
        };
        if place.has_journal() {
            maker.make::<Hardware>()?;
        } else {
            maker.make::<FileMemory>()?;
        }
        let mut subject = maker.subject;
        if !subject.is_closed && may_lose(&subject.shape) {
            let machine = place.machine(&subject.image, LIVES_MAX);
            let db = machine.open::<FileMemory>(&subject.options);
            let left = db.and_then(|db| contents(&db)).map_err(|error| error.to_string())?;
            subject.history.lose(left);
        }
        Ok(subject)
    }

    /// Whether a record is one that does not lie among the others of its session.
    pub(super) fn is_large(&self, write: &Write) -> bool {
        let bytes = write.key.len() + write.new.as_ref().map_or(0, Vec::len);
        self.shape.kind() == EngineKind::Viper && bytes > VIPER_RECORD_BYTES_MAX
    }

    /// Whether the end of its session sealed the page of a write.
    pub(super) fn is_sealed(&self, write: &Write) -> bool {
        self.shape.kind() == EngineKind::Viper && self.history.ended.contains(&write.session)
    }

    /// Whether a write certainly made a record. In Viper a delete makes none, and a word may be updated in place.
    pub(super) fn is_record(&self, write: &Write) -> bool {
        self.shape.kind() != EngineKind::Viper || write.new.is_some() && !write.is_of_word
    }

    /// Whether a record may lie where one of the same key lay before. The runs of a log are numbered anew at each use.
    pub(super) fn overwrites_places(&self) -> bool {
        !matches!(self.shape.kind(), EngineKind::Chameleon | EngineKind::DramHash)
    }

    /// How many of a session's last writes, of those that are large or of the others, lie where a crash may have cut a
    /// record off.
    pub(super) fn tail(&self, is_large: bool) -> usize {
        match self.shape.kind() {
            EngineKind::Viper if self.options.key_bytes().is_some() => 0,
            EngineKind::Viper if is_large => 1,
            EngineKind::Viper => VIPER_RECORDS_MAX,
            _ => self.shape.unchecked_tail(),
        }
    }

    /// All keys that it may have.
    pub(super) fn keys(&self) -> impl Iterator<Item = Vec<u8>> {
        (0..self.shape.keys()).map(|number| self.shape.key(number))
    }
}

/// Makes a [`Subject`].
struct Maker {
    subject: Subject,
    chance: Chance,
    next_session: u64,
}

impl Maker {
    fn make<B: Backend>(&mut self) -> Result<(), String> {
        let lives = 1 + self.chance.below(LIVES_MAX);
        for life in 0..lives {
            let before = self.subject.image.clone();
            let older = self.live::<B>(life)?;
            // Of the last life mostly, so that most of the files are as they are in the end.
            let is_kept = life + 1 == lives || self.chance.below(2) == 0;
            if is_kept && !older.files.is_empty() {
                self.subject.older = older;
            } else if life > 0 {
                self.subject.older = before;
            }
        }
        Ok(())
    }

    /// Opens the store, works with it and ends it; the files of a moment in between.
    fn live<B: Backend>(&mut self, life: u64) -> Result<Image, String> {
        let options = self.subject.options.clone();
        let machine = self.subject.place.machine(&self.subject.image, life);
        let db =
            machine.open::<B>(&options).map_err(|error| format!("cannot be opened: {error}"))?;
        let now = contents(&db).map_err(|error| format!("cannot be listed: {error}"))?;
        let is_kept = life == 0 || self.subject.is_closed || !may_lose(&self.subject.shape);
        if is_kept && now != self.subject.history.now {
            return Err("opened again, it does not hold what it held".to_owned());
        }
        self.subject.history.settle(now);
        let operations = 10 + self.chance.below(60) + self.subject.shape.keys();
        let moment = self.chance.below(operations);
        let mut older = Image::default();
        let mut sessions: Vec<Option<(u64, Session<B>)>> = (0..SESSIONS).map(|_| None).collect();
        for number in 0..operations {
            if number == moment {
                older = machine.killed(&db);
            }
            self.step(&machine, &db, &mut sessions).map_err(|error| error.to_string())?;
        }
        self.end(&machine, db, sessions)?;
        Ok(older)
    }

    fn end<B: Backend>(
        &mut self,
        machine: &Machine,
        db: Db<B>,
        sessions: Vec<Option<(u64, Session<B>)>>,
    ) -> Result<(), String> {
        self.subject.is_closed = self.chance.below(2) == 0;
        if self.subject.is_closed {
            drop(sessions);
            db.close().map_err(|failed| format!("cannot be closed: {}", failed.error()))?;
            self.subject.image = machine.image();
            let now = self.subject.history.now.clone();
            self.subject.history.settle(now);
        } else {
            self.subject.image = machine.killed(&db);
        }
        Ok(())
    }

    /// One operation, or something else that happens to a store.
    fn step<B: Backend>(
        &mut self,
        machine: &Machine,
        db: &Db<B>,
        sessions: &mut [Option<(u64, Session<B>)>],
    ) -> Result<(), Error> {
        let abilities = self.subject.shape.abilities();
        let which = self.chance.below(SESSIONS as u64) as usize;
        match self.chance.below(40) {
            0 => {
                db.sync()?;
                self.subject.history.synced = self.subject.history.writes.len();
            }
            1 if abilities.reclaim => match db.compact(1 + self.chance.below(60) as u32, None) {
                Ok(_) | Err(Error::PoolFull { .. }) => {}
                Err(error) => return Err(error),
            },
            2 | 3 => {
                if let Some((number, _)) = sessions[which].take() {
                    self.subject.history.ended.insert(number);
                }
            }
            4..8 => {
                machine.environment.advance(self.chance.below(30_000_000));
                machine.environment.step_tasks();
            }
            _ => {
                let next = &mut self.next_session;
                let (number, session) = sessions[which].get_or_insert_with(|| {
                    *next += 1;
                    (*next, db.session())
                });
                match self.operate(*number, session) {
                    // Nothing was changed.
                    Err(Error::PoolFull { .. }) => {}
                    other => other?,
                }
            }
        }
        Ok(())
    }

    fn operate<B: Backend>(&mut self, number: u64, session: &mut Session<B>) -> Result<(), Error> {
        let (shape, history) = (&self.subject.shape, &mut self.subject.history);
        let key = shape.key(self.chance.below(shape.keys()));
        let words: Value = std::array::from_fn(|_| self.chance.next());
        let value = shape.value(&words);
        match self.chance.below(12) {
            0 | 1 => {
                if session.delete(&key)? {
                    history.write(number, &key, None, None);
                }
            }
            2 | 3 if shape.abilities().in_place => {
                let word = self.chance.below(VALUE_WORDS as u64) as usize;
                if session.fetch_add_u64(&key, 8 * word, words[0])?.is_some() {
                    let mut value = history.now[&key].clone();
                    let field = &mut value[8 * word..8 * word + 8];
                    let old = u64::from_le_bytes((&*field).try_into().expect("8 bytes"));
                    field.copy_from_slice(&old.wrapping_add(words[0]).to_le_bytes());
                    history.write(number, &key, Some(value), Some(word));
                }
            }
            4 => {
                if session.update(&key, |old| old.clone_from(&value))? {
                    history.write(number, &key, Some(value), None);
                }
            }
            _ => {
                session.put(&key, &value)?;
                history.write(number, &key, Some(value), None);
            }
        }
        Ok(())
    }
}

/// Whether the end of a process may take acknowledged writes.
fn may_lose(shape: &EngineShape) -> bool {
    shape.loss(End::Kill).operations_max() > 0
}

/// Everything that a store lists.
pub(super) fn contents<B: Backend>(db: &Db<B>) -> Result<Contents, Error> {
    let mut all = Contents::new();
    db.for_each(|key, value| {
        all.insert(key.to_vec(), value.to_vec());
        true
    })?;
    Ok(all)
}
