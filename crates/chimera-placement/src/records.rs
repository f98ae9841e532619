//! `fill` and `verify`: numbered records, written and checked with a placement.

use std::io::Write;
use std::sync::Arc;

use chimera_placement::arena::Arena;
use chimera_placement::database::{CacheKind, Database};
use chimera_placement::placement::{Components, Sizes};
use chimera_placement::region::RegionOptions;
use chimera_placement::workload::key;
use chimera_placement::{Error, Result};

use crate::command_line::RecordArguments;

/// Bytes of a key.
const KEY_BYTES: usize = 16;
/// Records after which `fill` says how many there are.
const SAID_EVERY: u64 = 1000;

/// The value of a record, which says whose it is.
fn value(record: u64) -> Vec<u8> {
    let length = 200 + (record % 1600 * 37 % 1600) as usize;
    let mut value = record.to_le_bytes().to_vec();
    value.extend((value.len()..length).map(|at| (at as u64 ^ record) as u8));
    value
}

/// The database that the arguments ask for, and what it is made of.
fn open(arguments: &RecordArguments) -> Result<(Database, Components)> {
    let sizes = Sizes {
        cache_bytes: arguments.cache_bytes,
        write_buffer_bytes: arguments.write_buffer_bytes,
        cache_kind: CacheKind::Lru,
    };
    let arena = if arguments.placement.uses_pmem() {
        let missing = || {
            let text = format!("the placement {} needs --pmem DIR", arguments.placement);
            Error::Option(text)
        };
        let directory = arguments.pmem.pmem.clone().ok_or_else(missing)?;
        let require_dax = arguments.pmem.require_dax;
        let options = RegionOptions { directory, bytes: sizes.pmem_bytes()?, require_dax };
        Some(Arc::new(Arena::open(&options)?))
    } else if arguments.pmem.pmem.is_some() || arguments.pmem.require_dax {
        let text = "the placement dram has nothing in persistent memory: --pmem and --require-dax have no effect";
        return Err(Error::Option(text.to_owned()));
    } else {
        None
    };
    let components = Components::new(arguments.placement, sizes, arena.as_ref(), None)?;
    Ok((components.open(&arguments.database)?, components))
}

fn say(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let written = writeln!(out, "{text}").and_then(|()| out.flush());
    let failed = |source| Error::System { what: "writing", path: "standard output".into(), source };
    written.map_err(failed)
}

/// Writes records 0 to `records` - 1.
pub(crate) fn fill(arguments: &RecordArguments) -> Result<()> {
    let (database, _components) = open(arguments)?;
    let mut bytes = Vec::new();
    for record in 0..arguments.records {
        key(record, KEY_BYTES, &mut bytes);
        database.put(&bytes, &value(record))?;
        if (record + 1) % SAID_EVERY == 0 {
            say(&(record + 1).to_string())?;
        }
    }
    say(&format!("{} records", arguments.records))
}

/// Checks records 0 to `records` - 1; twice, so that the block cache is read, too.
pub(crate) fn verify(arguments: &RecordArguments) -> Result<()> {
    let (database, _components) = open(arguments)?;
    let (mut bytes, mut found) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        for record in 0..arguments.records {
            key(record, KEY_BYTES, &mut bytes);
            if !database.get(&bytes, &mut found)? {
                return Err(Error::Wrong { record, what: "it is missing".to_owned() });
            }
            if found != value(record) {
                let what = format!("its value has {} bytes, and is another one", found.len());
                return Err(Error::Wrong { record, what });
            }
        }
    }
    let counts = database.counts()?;
    say(&format!(
        "{} records as written; {} block lookups hit, {} missed",
        arguments.records, counts.block_cache_hits, counts.block_cache_misses
    ))
}
