//! What the store's own metrics cost: stores that differ in nothing but how many operations they time, side
//! by side. Prints the time of a get and of a put, and how much more it is than without timing. The time is
//! that of the processor in this thread, so that others who use the machine matter less.
//!
//! `cargo run --release -p chimera-bench --example metrics_cost -- DIRECTORY [RECORDS] [SETS]`
//!
//! A set is one store for each side, all open at once, that take turns of 50,000 operations. A store keeps
//! the memory it once got, so the same is repeated with new ones. One side is there twice: what it differs
//! from itself by is noise.
#![forbid(unsafe_code)]

use std::error::Error;
use std::hint::black_box;
use std::path::Path;

use chimera::{Db, Options, Session};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rustix::time::{ClockId, clock_gettime};

/// Names of sides, and one operation in how many they time.
const SIDES: [(&str, Option<u32>); 4] =
    [("off", Some(0)), ("off again", Some(0)), ("default", None), ("all", Some(1))];
/// Operations of a turn.
const TURN: u64 = 50_000;
/// Turns of each side with each operation in a set.
const TURNS: usize = 24;

struct Side {
    session: Session,
    db: Db,
    random: Xoshiro256PlusPlus,
    /// Nanoseconds per operation, of each turn: gets, then puts.
    times_ns: [Vec<f64>; 2],
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("give a directory")?;
    let records = arguments.next().map_or(Ok(200_000), |text| text.parse())?;
    let sets = arguments.next().map_or(Ok(7), |text| text.parse())?;
    // Of each set: the medians of every side.
    let mut medians: [Vec<[f64; SIDES.len()]>; 2] = Default::default();
    for set in 0..sets {
        let mut sides = open(Path::new(&directory), records, set)?;
        for turn in 0..2 * TURNS {
            for number in 0..SIDES.len() {
                // None always comes first.
                let side = &mut sides[(number + turn / 2) % SIDES.len()];
                measure(side, turn % 2, records)?;
            }
        }
        for (operation, medians) in medians.iter_mut().enumerate() {
            medians.push(std::array::from_fn(|side| median(&mut sides[side].times_ns[operation])));
        }
        for (number, side) in sides.into_iter().enumerate() {
            drop(side.session);
            side.db.close()?;
            std::fs::remove_dir_all(Path::new(&directory).join(number.to_string()))?;
        }
    }
    for (name, medians) in ["get", "put"].into_iter().zip(&medians) {
        for (number, (side, _)) in SIDES.iter().enumerate() {
            let mut times: Vec<f64> = medians.iter().map(|set| set[number]).collect();
            let mut more: Vec<f64> =
                medians.iter().map(|set| 100.0 * (set[number] / set[0] - 1.0)).collect();
            let (time, middle) = (median(&mut times), median(&mut more));
            let (least, most) = (more[0], more[more.len() - 1]);
            println!(
                "{name} {side:10} {time:6.1} ns {middle:+5.1} % ({least:+.1} to {most:+.1} %)"
            );
        }
    }
    Ok(())
}

/// A loaded store for each side.
fn open(directory: &Path, records: u64, set: usize) -> Result<Vec<Side>, Box<dyn Error>> {
    let mut sides = Vec::new();
    // Which gets its memory first changes from set to set.
    for turn in 0..SIDES.len() {
        let number = (turn + set) % SIDES.len();
        let options = Options::new().fixed_size(16, 200).capacity_bytes(records * 420);
        let options = options.populate_at_open(true);
        let options = match SIDES[number].1 {
            Some(every) => options.latency_sampling(every),
            None => options,
        };
        let db = Db::open(directory.join(number.to_string()), &options)?;
        let mut session = db.session();
        for record in 0..records {
            session.put(key(record), [1; 200])?;
        }
        let random = Xoshiro256PlusPlus::seed_from_u64(set as u64);
        sides.push((number, Side { session, db, random, times_ns: Default::default() }));
    }
    sides.sort_by_key(|(number, _)| *number);
    Ok(sides.into_iter().map(|(_, side)| side).collect())
}

/// One turn: gets, or puts of records that are there.
fn measure(side: &mut Side, operation: usize, records: u64) -> Result<(), chimera::Error> {
    let begun_ns = processor_ns();
    for number in 0..TURN {
        let key = key(side.random.next_u64() % records);
        if operation == 0 {
            black_box(side.session.get_with(key, |value| u64::from(value[0]))?);
        } else {
            black_box(side.session.put(key, [number as u8; 200])?);
        }
    }
    side.times_ns[operation].push((processor_ns() - begun_ns) as f64 / TURN as f64);
    Ok(())
}

/// Processor time of this thread.
fn processor_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn key(number: u64) -> [u8; 16] {
    let mut key = [0x5a; 16];
    key[..8].copy_from_slice(&number.to_le_bytes());
    key
}

/// The one in the middle; leaves them in order.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
