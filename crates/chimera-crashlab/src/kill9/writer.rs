//! The process that is killed.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use chimera::{Db, Durability, Options};

use super::operations::{Work, operations};
use super::pipe::Message;
use crate::subject::EngineShape;

/// What the writer is told.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    /// Directory of the store
    #[arg(long)]
    store: PathBuf,
    #[command(flatten)]
    work: Work,
}

/// How the stores are opened: with the background task at work.
pub(super) fn options(shape: &EngineShape, durability: Durability) -> Options {
    shape.options().durability(durability).populate_ahead_bytes(4096)
}

/// The command line, behind the name of the program, that makes it a writer.
pub(super) fn command_line(store: &Path, work: &Work) -> Vec<String> {
    let words = format!(
        "kill9 writer --sessions {} --durability {} --cycle {} --operations {}",
        work.sessions, work.durability, work.cycle, work.operations
    );
    let shape = serde_json::to_string(&work.shape).expect("a shape is plain data");
    let rest = ["--shape".to_owned(), shape, "--store".to_owned(), store.display().to_string()];
    words.split(' ').map(str::to_owned).chain(rest).collect()
}

/// Writes until it is killed, or until the operations are done.
///
/// # Errors
/// What the store or the pipe says.
pub fn run(arguments: &Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let work = &arguments.work;
    let db = Db::open(&arguments.store, &options(&work.shape, work.durability))?;
    // Not the locked and buffered standard output: an acknowledgement goes out at once.
    let pipe = std::fs::File::options().write(true).open("/proc/self/fd/1")?;
    Message::Opened.send(&pipe)?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..work.sessions)
            .map(|session| {
                scope.spawn({
                    let (db, pipe) = (&db, &pipe);
                    move || work_alone(db, pipe, session, work)
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    Message::Closing.send(&pipe)?;
    db.close()?;
    Ok(())
}

/// What one session does.
fn work_alone(db: &Db, pipe: impl Write, session: u8, work: &Work) -> io::Result<()> {
    let mut pipe = pipe;
    let mut with = db.session();
    for (step, operation) in
        (1..=work.operations).zip(operations(session.into(), work.cycle, work.shape.abilities()))
    {
        Message::Begin { session, step }.send(&mut pipe)?;
        operation.carry_out(&mut with).map_err(io::Error::other)?;
        Message::End { session, step }.send(&mut pipe)?;
    }
    Ok(())
}
