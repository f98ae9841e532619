//! The process that is killed.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use chimera::{Db, Durability, Geometry, Options, RecordLayout};

use super::operations::{KEY_BYTES, VALUE_BYTES, Work, operations};
use super::pipe::Message;

/// What the writer is told.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    /// Directory of the store
    #[arg(long)]
    store: PathBuf,
    #[command(flatten)]
    work: Work,
}

/// How the stores are made: small blocks and segments, so that they grow often, with the background
/// task at work.
pub(super) fn options(layout: RecordLayout, durability: Durability) -> Options {
    let geometry = Geometry {
        page_bytes: 256,
        pages_per_block: 2,
        block_shift_bytes: 0,
        segment_bytes: 16 << 10,
    };
    Options::new()
        .geometry(geometry)
        .fixed_size(KEY_BYTES as u32, VALUE_BYTES as u32)
        .layout(layout)
        .durability(durability)
        .populate_ahead_bytes(4096)
        .huge_pages(false)
        .index_segment_slots(64)
}

/// The command line, behind the name of the program, that makes it a writer.
pub(super) fn command_line(store: &Path, work: &Work) -> Vec<String> {
    let layout = if work.layout == RecordLayout::Checked { "checked" } else { "published" };
    let words = format!(
        "kill9 writer --sessions {} --layout {layout} --durability {} --cycle {} --operations {} --store",
        work.sessions, work.durability, work.cycle, work.operations
    );
    let words = words.split(' ').map(str::to_owned);
    words.chain([store.display().to_string()]).collect()
}

/// Writes until it is killed, or until the operations are done.
///
/// # Errors
/// What the store or the pipe says.
pub fn run(arguments: &Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let work = &arguments.work;
    let db = Db::open(&arguments.store, &options(work.layout, work.durability))?;
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
    for (step, operation) in (1..=work.operations).zip(operations(session.into(), work.cycle)) {
        Message::Begin { session, step }.send(&mut pipe)?;
        operation.carry_out(&mut with).map_err(io::Error::other)?;
        Message::End { session, step }.send(&mut pipe)?;
    }
    Ok(())
}
