//! A store behind a channel: threads with a session each do what async tasks ask for.
//!
//! `cargo run -p chimera --example workers`

use std::error::Error;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use chimera::{Db, Options, Session};

/// What a worker is asked to do. The job sends its answer to whoever waits for it.
type Job = Box<dyn FnOnce(&mut Session) + Send>;

/// Threads that own a session each.
struct Workers {
    jobs: Sender<Job>,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    fn new(db: &Db, threads: usize) -> Self {
        let (jobs, queue) = mpsc::channel();
        let queue = Arc::new(Mutex::new(queue));
        let start = |_| {
            let (mut session, queue) = (db.session(), queue.clone());
            thread::spawn(move || {
                while let Some(job) = next(&queue) {
                    job(&mut session);
                }
            })
        };
        Self { jobs, threads: (0..threads).map(start).collect() }
    }

    /// Hands over a job. It never waits, so an async task may call it.
    fn submit(&self, job: impl FnOnce(&mut Session) + Send + 'static) {
        // Fails only where every worker has panicked: the job is dropped, and whoever waits for its answer learns of it.
        let _ = self.jobs.send(Box::new(job));
    }

    /// Ends the workers, once all jobs are done.
    fn stop(self) {
        drop(self.jobs);
        for thread in self.threads {
            thread.join().expect("no job panics");
        }
    }
}

fn next(queue: &Mutex<Receiver<Job>>) -> Option<Job> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let db = Db::open(directory.path().join("data"), &Options::new())?;
    let workers = Workers::new(&db, 2);

    // A runtime has a channel for one answer whose receiver is a future. Here a thread waits for it.
    let (answer, answered) = mpsc::channel();
    for number in 0..100_u32 {
        let answer = answer.clone();
        workers.submit(move |session| {
            let outcome = session.put(number.to_be_bytes(), b"value");
            // Nobody waits any more where this fails. The record is stored all the same.
            let _ = answer.send(outcome);
        });
    }
    drop(answer);
    let new = answered.iter().collect::<chimera::Result<Vec<bool>>>()?;
    assert_eq!((new.len(), db.len()), (100, 100));

    workers.stop();
    db.close()?;
    Ok(())
}
