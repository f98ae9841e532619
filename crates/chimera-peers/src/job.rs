//! [`Job`]: which store is measured, where, with which records and at which durability.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Time between two syncs of [`Durability::Window`].
pub const WINDOW: Duration = Duration::from_millis(50);
/// Bytes of a key.
pub const KEY_BYTES: usize = 16;

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoreKind {
    /// Chimera with the engine `viper`.
    Viper,
    /// Chimera with the engine `hikv`.
    Hikv,
    /// Chimera with the engine `chameleon`.
    Chameleon,
    /// Chimera with the engine `viper` and an order of keys, which scans need.
    ViperOrdered,
    /// Chimera with the engine `hikv` and an order of keys.
    HikvOrdered,
    /// Chimera with the engine `chameleon` and an order of keys.
    ChameleonOrdered,
    /// RocksDB through its C interface.
    Rocksdb,
    /// LMDB through heed.
    Lmdb,
    /// redb.
    Redb,
    /// fjall.
    Fjall,
}

impl StoreKind {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Viper,
        Self::Hikv,
        Self::Chameleon,
        Self::ViperOrdered,
        Self::HikvOrdered,
        Self::ChameleonOrdered,
        Self::Rocksdb,
        Self::Lmdb,
        Self::Redb,
        Self::Fjall,
    ];

    /// As on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Viper => "viper",
            Self::Hikv => "hikv",
            Self::Chameleon => "chameleon",
            Self::ViperOrdered => "viper-ordered",
            Self::HikvOrdered => "hikv-ordered",
            Self::ChameleonOrdered => "chameleon-ordered",
            Self::Rocksdb => "rocksdb",
            Self::Lmdb => "lmdb",
            Self::Redb => "redb",
            Self::Fjall => "fjall",
        }
    }

    /// Whether it can be scanned.
    pub fn is_ordered(self) -> bool {
        !matches!(self, Self::Viper | Self::Hikv | Self::Chameleon)
    }
}

impl fmt::Display for StoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for StoreKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|store| store.name() == text);
        named.ok_or_else(|| {
            format!("unknown store `{text}`; {}", Self::ALL.map(Self::name).join(", "))
        })
    }
}

/// What an acknowledged write survives, the same for all stores.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// Each operation is synced before it returns
    Operation,
    /// Nothing waits; all is synced each 50 ms
    Window,
    /// Nothing is synced: what is written is safe from the end of the process only
    Process,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Operation => "operation",
            Self::Window => "window",
            Self::Process => "process",
        })
    }
}

/// Which store is measured, where, with which records and at which durability.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The store.
    pub store: StoreKind,
    /// Its directory.
    pub path: PathBuf,
    /// What an acknowledged write survives.
    pub durability: Durability,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// Records of the fill.
    pub records: u64,
    /// Threads of each phase.
    pub threads: usize,
    /// Memory for the caches of stores that have one.
    pub cache_bytes: u64,
    /// Keys, values and choices follow from it.
    pub seed: u64,
    /// The process limits itself to so much private memory, where no control group does.
    pub data_limit_bytes: Option<u64>,
}

/// Of the memory that a process may use, the part that caches get.
pub const CACHE_PART: u64 = 4;

impl Job {
    /// Whether the records are larger than the memory that the process may use.
    pub fn exceeds_memory(&self) -> bool {
        self.records * self.value_bytes as u64 > self.cache_bytes * CACHE_PART
    }
}
