//! [`open_and_get`]: a store from its opening on, until its index is complete, and gets meanwhile.

use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use chimera::Db;

use super::backend::Backend;
use super::setup::Setup;
use super::store::Reopen;
use super::worker::{Data, Worker};
use crate::error::Result;
use crate::results::measured::Measured;

/// From one look at the store to the next.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// An index that is not complete by then never will be.
const COMPLETE_MAX: Duration = Duration::from_secs(600);
/// Gets between two looks at what the reader is to do.
const GETS: u64 = 64;

const UNTIL_COMPLETE: u8 = 0;
const AFTERWARDS: u8 = 1;
const OVER: u8 = 2;

/// What was seen of a store from its opening on.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    /// From the call to the answer of the first get.
    pub(crate) first_answer: Duration,
    /// From the call to the complete index, if it was complete ever.
    pub(crate) complete: Option<Duration>,
    /// Gets from the first answer until then; none where the index was complete at once.
    pub(crate) between: Option<Measured>,
    /// Gets after that.
    pub(crate) after: Measured,
}

/// Ends the reader, also when what it is waited for panics.
struct Over<'a>(&'a AtomicU8);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(OVER, Ordering::Release);
    }
}

/// Opens a store that has the records `0..records`, and gets any of them on one thread until its index is complete, and
/// `after` that.
///
/// # Errors
/// When opening or a get fails.
pub(crate) fn open_and_get<B: Backend>(
    (setup, path): (&Setup, &Path),
    data: &Data,
    records: u64,
    after: Duration,
    stream: u64,
) -> Result<(Db<B>, Opening)> {
    let called = Instant::now();
    let db: Db<B> = Reopen::reopen(setup, path)?;
    let mut reader = Worker::new(&db, data, 0..0, stream);
    let number = reader.random.below(records);
    reader.get(number)?;
    let first_answer = called.elapsed();
    let at_once = is_complete(&db);
    let stage = AtomicU8::new(if at_once { AFTERWARDS } else { UNTIL_COMPLETE });
    let (complete, reading) = thread::scope(|scope| {
        let reading = scope.spawn(|| -> Result<(Option<Measured>, Measured)> {
            let mut get = |during| get_while(&mut reader, records, &stage, during);
            let between = if at_once { None } else { Some(get(UNTIL_COMPLETE)?) };
            Ok((between, get(AFTERWARDS)?))
        });
        let over = Over(&stage);
        let complete = if at_once { Some(first_answer) } else { wait(&db, called) };
        stage.store(AFTERWARDS, Ordering::Release);
        thread::sleep(after);
        drop(over);
        let reading = reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (complete, reading)
    });
    drop(reader);
    let (between, after) = reading?;
    Ok((db, Opening { first_answer, complete, between, after }))
}

/// Waits until the index is complete; how long that took since the call.
fn wait<B: Backend>(db: &Db<B>, called: Instant) -> Option<Duration> {
    while called.elapsed() < COMPLETE_MAX {
        if is_complete(db) {
            return Some(called.elapsed());
        }
        thread::sleep(LOOK_EVERY);
    }
    None
}

/// Whether bypass indexes have all that they are to have, in a store that has any.
fn is_complete<B: Backend>(db: &Db<B>) -> bool {
    db.stats().chameleon().is_none_or(|chameleon| chameleon.shards_bypassed == chameleon.shards)
}

/// Gets any records for as long as that is to be done, and some at least.
fn get_while<B: Backend>(
    reader: &mut Worker<'_, Db<B>>,
    records: u64,
    stage: &AtomicU8,
    during: u8,
) -> Result<Measured> {
    let (begun, mut operations) = (Instant::now(), 0);
    while operations == 0 || stage.load(Ordering::Acquire) == during {
        for _ in 0..GETS {
            let number = reader.random.below(records);
            reader.get(number)?;
        }
        operations += GETS;
    }
    Ok(Measured { operations, elapsed: begun.elapsed(), histogram: None })
}
