//! A session for each thread; values that many threads change, as a whole, without a lock of their own.
//!
//! `cargo run -p chimera --example threads`

use std::error::Error;
use std::thread;

use chimera::{Db, Options, Session, Swap};

const THREADS: u8 = 4;
const JOBS: u8 = 20;

/// Takes job number `job`, if nobody has: of all that try it one is told `Swapped`.
fn take(session: &mut Session, job: u8, worker: u8) -> chimera::Result<bool> {
    let mine = format!("taken by {worker}");
    Ok(session.compare_and_swap([job], b"open", mine.as_bytes())? == Swap::Swapped)
}

fn work(db: &Db, worker: u8) -> chimera::Result<u32> {
    let mut session = db.session();
    let mut done = 0;
    for job in 0..JOBS {
        if take(&mut session, job, worker)? {
            // The closure gets the value as it is, and runs again if another session was faster.
            session.update(b"journal", |journal| {
                journal.extend_from_slice(format!("{worker} did {job}\n").as_bytes());
            })?;
            done += 1;
        }
    }
    Ok(done)
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let db = Db::open(directory.path().join("jobs"), &Options::new())?;
    for job in 0..JOBS {
        db.put([job], b"open")?;
    }
    db.put(b"journal", b"")?;

    let done: Vec<u32> = thread::scope(|scope| {
        let db = &db;
        let threads: Vec<_> = (0..THREADS).map(|it| scope.spawn(move || work(db, it))).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| thread.join().expect("no panics");
        threads.into_iter().map(join).collect::<chimera::Result<_>>()
    })?;

    println!("jobs done by each thread: {done:?}");
    assert_eq!(done.iter().sum::<u32>(), u32::from(JOBS));
    let journal = String::from_utf8(db.get(b"journal")?.ok_or("no journal")?)?;
    assert_eq!(journal.lines().count(), usize::from(JOBS));
    Ok(())
}
