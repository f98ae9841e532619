//! How many bytes a store on a plain file writes for each byte that is put, and how fast it puts: as it does, and with
//! everything through the journal. The two take turns, on a new store each time, and the other one begins in each repetition.
//!
//! `cargo run --release -p chimera-bench --example written_once -- DIRECTORY [MEGABYTES] [REPETITIONS] [ENGINE] [OVERWRITES]`
//!
//! Each store is filled, and then every record is overwritten five times or so many, with a sync every 50 ms. *Fill*, *first* overwrite and
//! the *last* three of them are thousands of puts a second: the median, the least and the most. Then follow bytes for each
//! byte of a value, of all passes: to their place alone, to the journal, and from the journal to the data files until the
//! end; and what the store takes on disk in the end, for each byte of the values that are live. DIRECTORY must be on a file
//! system on a device.
#![forbid(unsafe_code)]

use std::error::Error;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use chimera::{Db, Durability, EngineKind, Options, Session};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const VALUES: [usize; 6] = [100, 1000, 4000, 8000, 20_000, 100_000];
/// Fewest overwrites: the first one, and three more.
const OVERWRITES_MIN: u64 = 4;
/// An odd number: each record is overwritten once in each pass, in another order than it was put.
const STRIDE: u64 = 2_654_435_761;

/// What came of one store.
struct Pass {
    /// Thousands of puts a second: of the fill, of the first overwrite, of the last ones.
    rates: [f64; 3],
    /// For each byte of a value: to its place, to the journal, written back.
    bytes: [f64; 3],
    /// For each byte of the values that are live.
    disk: f64,
}

fn main() -> Outcome {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().ok_or("give a directory")?);
    let megabytes: usize = arguments.next().map_or(Ok(100), |text| text.parse())?;
    let repetitions: usize = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let only = arguments.next().filter(|name| name != "all");
    let overwrites: u64 = arguments.next().map_or(Ok(5), |text| text.parse())?;
    println!(
        "engine     values  through        fill (least, most)       first (least, most)        last (least, most)   place journal back  disk"
    );
    for engine in [EngineKind::Viper, EngineKind::Hikv, EngineKind::Chameleon] {
        if only.as_ref().is_some_and(|only| *only != engine.to_string()) {
            continue;
        }
        for bytes in VALUES {
            let sides = [("as usual", None), ("journal", Some(u64::MAX))];
            let mut passes = [Vec::new(), Vec::new()];
            for turn in 0..2 * repetitions {
                // What was removed before slows down whoever comes next.
                let side = (turn / 2 + turn) % 2;
                let path = directory.join(format!("written-once-{engine}"));
                let overwrites = overwrites.max(OVERWRITES_MIN);
                let pass = pass(&path, engine, sides[side].1, (bytes, megabytes), overwrites);
                // What is not there need not be removed.
                let _ = std::fs::remove_dir_all(&path);
                passes[side].push(pass?);
            }
            for ((name, _), passes) in sides.iter().zip(&passes) {
                let [fill, first, last] = [0, 1, 2].map(|of| spread(passes, |pass| pass.rates[of]));
                let Pass { bytes: [place, journal, back], disk, .. } = passes[0];
                println!(
                    "{engine:10} {bytes:6}  {name:8} {fill:>24} {first:>25} {last:>25}   {place:5.2} {journal:7.2} {back:4.2} {disk:5.1}",
                    engine = engine.to_string()
                );
            }
        }
    }
    Ok(())
}

/// The median, the least and the most of some passes.
fn spread(passes: &[Pass], of: impl Fn(&Pass) -> f64) -> String {
    let mut all: Vec<_> = passes.iter().map(of).collect();
    all.sort_by(f64::total_cmp);
    format!("{:.1} ({:.1}, {:.1})", all[all.len() / 2], all[0], all[all.len() - 1])
}

fn pass(
    path: &Path,
    engine: EngineKind,
    direct_bytes_min: Option<u64>,
    (bytes, megabytes): (usize, usize),
    overwrites: u64,
) -> Outcome<Pass> {
    let durability = Durability::Group { max_delay: Duration::from_millis(50) };
    let options = Options::new().engine(engine).durability(durability);
    let db = Db::open(path, &options.written_once(direct_bytes_min, true))?;
    let mut session = db.session();
    let records = (megabytes * 1_000_000 / bytes).max(1) as u64;
    // The fill, the first overwrite, those that are told of no rate, and the last three.
    let all_passes = [0..1, 1..2, 2..overwrites - 2, overwrites - 2..overwrites + 1];
    let mut rates = [0.0; 4];
    for (rate, passes) in rates.iter_mut().zip(all_passes) {
        *rate = put(&db, &mut session, records, bytes, passes)?;
    }
    let [fill, first, _, last] = rates;
    let stats = db.stats();
    let journal = stats.journal.ok_or("it has no journal: the directory is not on a device")?;
    let pages = stats.pages.ok_or("it has no journal")?;
    let mut on_disk = 0;
    for file in std::fs::read_dir(path)? {
        on_disk += file?.metadata()?.blocks() * 512;
    }
    drop(session);
    db.close()?;
    let live = records as f64 * bytes as f64;
    let all = live * (overwrites + 1) as f64;
    let bytes = [journal.direct_bytes, journal.appended_bytes, pages.written_back_bytes];
    let bytes = bytes.map(|bytes| bytes as f64 / all);
    Ok(Pass { rates: [fill, first, last], bytes, disk: on_disk as f64 / live })
}

/// Puts each record once in each pass, and syncs; thousands of puts a second.
fn put(
    db: &Db,
    session: &mut Session,
    records: u64,
    bytes: usize,
    passes: Range<u64>,
) -> Outcome<f64> {
    let count = records * (passes.end - passes.start);
    let mut value = vec![0x5a; bytes];
    let begun = Instant::now();
    for pass in passes {
        for number in 0..records {
            let record = if pass == 0 { number } else { number * STRIDE % records };
            value[..8].copy_from_slice(&(record ^ pass << 48).to_le_bytes());
            session.put(record.to_le_bytes(), &value)?;
        }
    }
    db.sync()?;
    Ok(count as f64 / begun.elapsed().as_secs_f64() / 1e3)
}
