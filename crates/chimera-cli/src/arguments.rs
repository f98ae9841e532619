//! Arguments that commands share.

use std::path::PathBuf;

use chimera::Durability;
use clap::{Args, ValueHint};

/// Arguments of every command.
#[derive(Args, Debug)]
pub(crate) struct Global {
    /// Print one JSON object instead of text; errors, too
    #[arg(long, global = true, help_heading = "For every command")]
    pub(crate) json: bool,
    /// Keys and values are given, and shown with all their bytes, in hexadecimal
    #[arg(long, global = true, help_heading = "For every command")]
    pub(crate) hex: bool,
    /// Say more on standard error; twice for even more
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    #[arg(help_heading = "For every command")]
    pub(crate) verbose: u8,
}

/// Where the store is.
#[derive(Args, Clone, Debug)]
pub(crate) struct StorePath {
    /// Directory of the store, or a DAX device such as /dev/dax0.0
    #[arg(long, value_name = "DIR", env = "CHIMERA_PATH", default_value = "chimera-data")]
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) path: PathBuf,
}

/// How to open the store.
#[derive(Args, Clone, Debug)]
pub(crate) struct StoreArguments {
    #[command(flatten)]
    pub(crate) place: StorePath,
    /// Open in spite of damage, or after a power loss; damaged records are left out
    #[arg(long)]
    pub(crate) salvage: bool,
}

/// How to open the store for writing.
#[derive(Args, Clone, Debug)]
pub(crate) struct WriteArguments {
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// What a write survives: auto, immediate, group:MILLISECONDS or process
    ///
    /// `auto` is the strongest that the medium has at full speed: `immediate` on persistent memory,
    /// `group (50 ms)` on plain files, `process` in memory (tmpfs).
    ///
    /// An `immediate` write survives a power loss once it is acknowledged. A `group` write survives a
    /// power loss once a sync that starts within so many milliseconds has ended. A `process` write
    /// survives the end of the process. Whatever it is, the command ends only when the store is closed,
    /// which on a plain file writes everything to the disk.
    #[arg(long, value_name = "MODE", default_value = "auto")]
    pub(crate) durability: Durability,
}
