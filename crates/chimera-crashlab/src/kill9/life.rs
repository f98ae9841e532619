//! [`Life`]: one store and its kills.

use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use chimera::{Db, Durability, Error};
use chimera_pmem::Medium;
use tempfile::TempDir;

use super::model::Model;
use super::operations::Work;
use super::pipe::Received;
use super::plan::{Chance, Outcome, Plan};
use super::writer::{command_line, options};
use crate::durability::End;
use crate::subject::EngineShape;

/// A writer that tells nothing for so long hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// Blocks of ten records that a store may have: some times what its keys need.
const BLOCKS_MAX: u64 = 1000;
/// Most operations before a kill.
const OPERATIONS_MAX: u64 = 20_000;

/// When a writer is killed.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// So long after its start, open or not.
    Opening(Duration),
    /// So long after so many acknowledgements.
    Working(u64, Duration),
    /// So long after it has begun to close the store.
    Closing(Duration),
}

/// One store and its kills.
pub(super) struct Life {
    directory: TempDir,
    sessions: u8,
    shape: EngineShape,
    model: Model,
    /// The store has been seen: it must not be missing any more.
    exists: bool,
    /// What it lies on, once that has been seen.
    medium: Option<Medium>,
    /// How long a writer takes from its start to an open store, roughly.
    opening: Duration,
}

impl Life {
    pub(super) fn new(directory: TempDir, shape: EngineShape, chance: &Chance) -> Self {
        Self {
            directory,
            sessions: 1 + chance.below(4) as u8,
            shape,
            model: Model::default(),
            exists: false,
            medium: None,
            opening: Duration::from_millis(2),
        }
    }

    fn store(&self) -> PathBuf {
        self.directory.path().join("store")
    }

    /// Leaves the store where it is.
    pub(super) fn keep(self) -> PathBuf {
        self.directory.keep()
    }

    /// What the next process works with: on plain files with a journal and without one, in turn.
    fn durability(&self, chance: &Chance) -> Durability {
        match chance.below(4) {
            0 | 1 => Durability::Auto,
            2 if self.medium == Some(Medium::File) => Durability::Immediate,
            _ => Durability::Process,
        }
    }

    /// Starts a writer, kills it, and verifies what it leaves.
    ///
    /// # Errors
    /// When a process cannot be had; inside, what is wrong about the store.
    pub(super) fn cycle(
        &mut self,
        plan: &Plan,
        cycle: u64,
        chance: &Chance,
        outcome: &mut Outcome,
    ) -> io::Result<Result<(), String>> {
        let micros = |limit: u64| Duration::from_micros(chance.below(limit.max(1)));
        let moment = match chance.below(8) {
            0 | 1 => Moment::Opening(micros(self.opening.as_micros() as u64 * 5 / 4)),
            2 => Moment::Closing(micros(2000)),
            // As often few as many.
            _ => Moment::Working(chance.below(OPERATIONS_MAX >> chance.below(12)), micros(300)),
        };
        let operations = match moment {
            Moment::Closing(_) => 1 + chance.below(500),
            _ => u64::MAX,
        };
        let work = Work {
            sessions: self.sessions,
            durability: self.durability(chance),
            shape: self.shape.clone(),
            cycle: cycle + 1,
            operations,
        };
        let received = Received::default();
        let status = self.run_writer(plan, &work, moment, &received)?;
        if let Err(text) = status {
            return Ok(Err(text));
        }
        outcome.acknowledged += received.acknowledged();
        outcome.kills_during_open += u64::from(!received.is_opened());
        outcome.kills_during_close += u64::from(received.is_closing());
        self.exists |= received.is_opened();
        Ok(self.verify(&work, &received, chance, outcome))
    }

    /// Runs a writer until its moment has come, and takes all that it told. Inside, what is wrong about
    /// its end.
    fn run_writer(
        &mut self,
        plan: &Plan,
        work: &Work,
        moment: Moment,
        received: &Received,
    ) -> io::Result<Result<(), String>> {
        let start = Instant::now();
        let mut writer = Command::new(&plan.program)
            .args(command_line(&self.store(), work))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let pipe = writer.stdout.take().expect("it is piped");
        let mut opening = None;
        let (status, taken) = std::thread::scope(|scope| {
            let reader = scope.spawn(|| received.take_all(pipe));
            let status = wait(&mut writer, moment, received, || {
                opening.get_or_insert_with(|| start.elapsed());
            });
            // Only now is the pipe closed at the other end, and all of it read.
            (status, reader.join().expect("the reader does not panic"))
        });
        taken?;
        if let Some(opening) = opening {
            self.opening = (self.opening * 3 + opening) / 4;
        }
        status
    }

    /// Opens the store, for reading only now and then, and compares it with the model.
    fn verify(
        &mut self,
        work: &Work,
        received: &Received,
        chance: &Chance,
        outcome: &mut Outcome,
    ) -> Result<(), String> {
        let uncertain = self.model.apply(work, received, self.shape.loss(End::Kill));
        outcome.in_flight += uncertain.iter().filter(|session| session.in_flight).count() as u64;
        // Opened for reading, a store with a log shows a change as not made that the next opening makes.
        let settles = self.shape.abilities().settles_when_read;
        let mut read_only = chance.below(2) == 0 && settles;
        let options = options(&self.shape, self.durability(chance));
        let mut opened = Db::open(self.store(), &options.clone().read_only(read_only));
        if matches!(opened, Err(Error::BatchUnfinished)) && read_only {
            read_only = false;
            opened = Db::open(self.store(), &options);
        }
        let db = match opened {
            Ok(db) => db,
            Err(Error::NotFound { .. }) if !self.exists && self.model.is_empty() => return Ok(()),
            Err(error) => return Err(format!("the store does not open: {error}")),
        };
        self.exists |= !read_only;
        let stats = db.stats();
        outcome.recoveries += u64::from(!stats.recovery.clean);
        outcome.batches_cut_off += stats.recovery.batches_made;
        self.medium = Some(stats.medium);
        let medium = stats.medium.to_string();
        if !outcome.media.contains(&medium) {
            outcome.media.push(medium);
        }
        self.model.verify(&db, &uncertain, self.shape.abilities().knows_new, outcome)?;
        let abilities = self.shape.abilities();
        // A log that nothing is collected in only grows.
        if abilities.frees && stats.blocks_used > BLOCKS_MAX {
            return Err(format!("killed writers leave blocks behind: {}", stats.blocks_used));
        }
        db.close().map_err(|error| format!("the store does not close: {error}"))
    }
}

/// Waits for the moment and kills the writer. Calls `opened` once it has its store open. Inside, what
/// is wrong about its end.
fn wait(
    writer: &mut Child,
    moment: Moment,
    received: &Received,
    mut opened: impl FnMut(),
) -> io::Result<Result<(), String>> {
    let start = Instant::now();
    let mut told = (Instant::now(), 0);
    let ended = loop {
        if received.is_opened() {
            opened();
        }
        let (is_time, delay) = match moment {
            Moment::Opening(delay) => (start.elapsed() >= delay, Duration::ZERO),
            Moment::Working(operations, delay) => {
                (received.is_opened() && received.acknowledged() >= operations, delay)
            }
            Moment::Closing(delay) => (received.is_closing(), delay),
        };
        if is_time {
            std::thread::sleep(delay);
            break None;
        }
        if let Some(status) = writer.try_wait()? {
            break Some(status);
        }
        if told.1 != received.acknowledged() {
            told = (Instant::now(), received.acknowledged());
        }
        if told.0.elapsed() > PATIENCE {
            writer.kill()?;
            writer.wait()?;
            return Ok(Err(format!("the writer did nothing for {PATIENCE:?}: {moment:?}")));
        }
        std::thread::sleep(Duration::from_micros(50));
    };
    let status = if let Some(status) = ended {
        status
    } else {
        writer.kill()?;
        writer.wait()?
    };
    Ok(judge(status, moment))
}

/// A writer is killed, or closes its store in time; anything else is wrong.
fn judge(status: ExitStatus, moment: Moment) -> Result<(), String> {
    use std::os::unix::process::ExitStatusExt;
    const SIGKILL: i32 = 9;
    let is_right = status.signal() == Some(SIGKILL)
        || matches!(moment, Moment::Closing(_)) && status.success();
    if is_right { Ok(()) } else { Err(format!("the writer ended by itself: {status}")) }
}
