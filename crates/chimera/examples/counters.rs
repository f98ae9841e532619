//! Counts events from several threads. Adding to an aligned field of a value writes one cache line in place;
//! the first time it writes the record anew.
//!
//! `cargo run -p chimera --example counters`

use std::error::Error;
use std::thread;

use chimera::{Db, Options};

const PAGES: [&[u8]; 3] = [b"/", b"/about", b"/contact"];
const THREADS: u64 = 4;
const VISITS: u64 = 1000;

/// Where in a page's value its counters are.
const VISITS_AT: usize = 0;
const SECONDS_AT: usize = 8;

fn visit_all(db: &Db, seconds: u64) -> Result<(), chimera::Error> {
    // A session for each thread.
    let mut session = db.session();
    for page in PAGES.iter().cycle().take(VISITS as usize) {
        session.fetch_add_u64(page, VISITS_AT, 1)?;
        session.fetch_add_u64(page, SECONDS_AT, seconds)?;
    }
    Ok(())
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let db = Db::open(directory.path().join("visits"), &Options::new())?;
    for page in PAGES {
        db.put(page, [0; 16])?;
    }
    thread::scope(|scope| {
        let db = &db;
        let spawn = |seconds| scope.spawn(move || visit_all(db, seconds));
        let threads: Vec<_> = (1..=THREADS).map(spawn).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
    })?;

    let mut visits = 0;
    for page in PAGES {
        // Adding nothing reads a counter.
        let of_page = db.fetch_add_u64(page, VISITS_AT, 0)?.ok_or("no such page")?;
        let seconds = db.fetch_add_u64(page, SECONDS_AT, 0)?.ok_or("no such page")?;
        println!("{}: {of_page} visits, {seconds} s", String::from_utf8_lossy(page));
        visits += of_page;
    }
    assert_eq!(visits, THREADS * VISITS);
    Ok(())
}
