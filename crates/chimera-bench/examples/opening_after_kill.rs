//! How long it takes to open a store whose writer was killed, by how often the journal is written back to the data files.
//! Prints milliseconds: the median, the least and the most of some kills, and the same after a close, which is what the
//! engine needs.
//!
//! `cargo run --release -p chimera-bench --example opening_after_kill -- DIRECTORY [MEGABYTES] [KILLS] [ENGINE]`
//!
//! Records have keys of 16 bytes and values of 1,000. A child process fills the store, and then overwrites random records as
//! fast as it can, with a sync every 50 ms, until it is killed some seconds later. DIRECTORY must be on a file system on a
//! device.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use chimera::{Db, Durability, EngineKind, Options};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Milliseconds between checkpoints; the last is for as long as there is room.
const INTERVALS_MS: [u64; 4] = [100, 250, 1000, u64::MAX];
const VALUE: [u8; 1000] = [7; 1000];

fn main() -> Outcome {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if let [role, path, engine, interval, records] = arguments.as_slice()
        && role == "write"
    {
        return write(Path::new(path), &options(engine, interval.parse()?)?, records.parse()?);
    }
    let mut arguments = arguments.into_iter();
    let directory = PathBuf::from(arguments.next().ok_or("give a directory")?);
    let megabytes: u64 = arguments.next().map_or(Ok(100), |text| text.parse())?;
    let kills: u64 = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let only = arguments.next();
    let engines = ["viper", "hikv", "chameleon"];
    println!("engine     interval   after a kill (least, most)   after a close (least, most), ms");
    for engine in engines.iter().filter(|engine| only.as_ref().is_none_or(|it| it == *engine)) {
        for interval_ms in INTERVALS_MS {
            let path = directory.join(engine);
            let row = row(&path, engine, interval_ms, megabytes * 1000, kills);
            // What is not there need not be removed.
            let _ = std::fs::remove_dir_all(&path);
            let [killed, closed] = row?;
            let interval = Some(interval_ms).filter(|ms| *ms < u64::MAX);
            let interval = interval.map_or_else(|| "none".to_owned(), |ms| format!("{ms} ms"));
            println!("{engine:10} {interval:>8}   {killed:>26}   {closed:>27}");
        }
    }
    Ok(())
}

/// Times of opening after kills, and after closes, as text.
fn row(
    path: &Path,
    engine: &str,
    interval_ms: u64,
    records: u64,
    kills: u64,
) -> Outcome<[String; 2]> {
    let options = options(engine, interval_ms)?;
    let (mut killed, mut closed) = (Vec::new(), Vec::new());
    for kill in 0..kills {
        let arguments =
            [&*path.to_string_lossy(), engine, &interval_ms.to_string(), &records.to_string()]
                .map(str::to_owned);
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = command.arg("write").args(arguments).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().ok_or("no output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        // Anywhere between two checkpoints.
        thread::sleep(Duration::from_millis(2000 + 370 * kill));
        child.kill()?;
        child.wait()?;
        if line.trim() != "filled" {
            return Err("the writer failed".into());
        }
        for times in [&mut killed, &mut closed] {
            let begun = Instant::now();
            let db = Db::open(path, &options)?;
            times.push(begun.elapsed().as_secs_f64() * 1e3);
            db.close()?;
        }
    }
    Ok([killed, closed].map(|mut times| {
        times.sort_by(f64::total_cmp);
        let (least, most) = (times[0], times[times.len() - 1]);
        format!("{:.1} ({least:.1}, {most:.1})", times[times.len() / 2])
    }))
}

fn options(engine: &str, interval_ms: u64) -> Outcome<Options> {
    let kinds = [EngineKind::Viper, EngineKind::Hikv, EngineKind::Chameleon];
    let kind = kinds.into_iter().find(|kind| kind.to_string() == engine).ok_or("no such engine")?;
    let interval = match interval_ms {
        u64::MAX => Duration::MAX,
        interval_ms => Duration::from_millis(interval_ms),
    };
    let durability = Durability::Group { max_delay: Duration::from_millis(50) };
    Ok(Options::new().engine(kind).durability(durability).checkpoint_interval(interval))
}

/// Fills the store, says so, and overwrites until it is killed.
fn write(path: &Path, options: &Options, records: u64) -> Outcome {
    let db = Db::open(path, options)?;
    let mut session = db.session();
    for record in 0..records {
        session.put(key(record), VALUE)?;
    }
    println!("filled");
    let mut random = Xoshiro256PlusPlus::seed_from_u64(42);
    loop {
        session.put(key(random.next_u64() % records), VALUE)?;
    }
}

fn key(number: u64) -> [u8; 16] {
    let mut key = [0x5a; 16];
    key[..8].copy_from_slice(&number.to_le_bytes());
    key
}
