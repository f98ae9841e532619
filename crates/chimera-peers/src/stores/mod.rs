//! Each store behind the traits of `chimera-bench`, configured as its own documentation recommends; the reasons stand
//! beside the calls.

mod chimera;
mod fjall;
mod lmdb;
mod redb;
mod rocksdb;

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::job::{Durability, Job};
use chimera_bench::measure::Store;
use chimera_bench::report::Facts;

pub use self::chimera::Chimera;
pub use self::fjall::Fjall;
pub use self::lmdb::Lmdb;
pub use self::redb::Redb;
pub use self::rocksdb::RocksDb;

/// Values from this size on are stored apart from the keys by stores that can: RocksDB's and fjall's documentation
/// recommend it for large values, and name about a kilobyte as where it begins to pay.
const SEPARATE_BYTES: usize = 1024;

/// What an acknowledged write survives in a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guarantee {
    /// After `kill -9` of the process.
    pub after_kill: String,
    /// After a power loss.
    pub after_power_loss: String,
}

impl Guarantee {
    fn new(after_kill: &str, after_power_loss: &str) -> Self {
        Self { after_kill: after_kill.to_owned(), after_power_loss: after_power_loss.to_owned() }
    }
}

/// All that was acknowledged is there.
const ALL: &str = "all";
/// All but what was written since the last sync began.
const ALL_BUT_WINDOW: &str = "all but the writes since the last sync began";

/// A store that takes part.
pub trait Peer: Store {
    /// Whether its puts say if their key was new.
    const PUTS_KNOW: bool;
    /// How it takes a batch of puts.
    const BATCH: &str;

    /// Opens the store of a job; makes it where there is none.
    ///
    /// # Errors
    /// What the store says.
    fn open(job: &Job) -> Result<Self>;

    /// Gives back space that no record needs, as the store does that when it is asked for. Nobody has a session.
    ///
    /// # Errors
    /// What the store says.
    fn compact(self, job: &Job) -> Result<Self>;

    /// Its version.
    fn version() -> String;

    /// What was chosen, a line each.
    fn configuration(job: &Job) -> Vec<String>;

    /// What an acknowledged write survives.
    fn guarantee(durability: Durability) -> Guarantee;
}

/// Facts of a store that says nothing of itself.
fn facts(job: &Job) -> Facts {
    Facts {
        engine: job.store.to_string(),
        medium: String::new(),
        durability: job.durability.to_string(),
        flush_instruction: "none".to_owned(),
        huge_pages: false,
    }
}
