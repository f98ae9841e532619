//! Arguments that commands share.

use std::ffi::OsString;
use std::ops::Bound;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use chimera::Durability;
use clap::{Args, ValueHint};

use crate::failure::Failure;
use crate::text::Form;

/// Arguments of every command, which may stand before its name or after it.
#[derive(Args, Debug)]
pub(crate) struct Global {
    /// Directory of the store, or a DAX device such as /dev/dax0.0
    #[arg(long, value_name = "DIR", env = "CHIMERA_PATH", default_value = "chimera-data")]
    #[arg(global = true, help_heading = "For every command", value_hint = ValueHint::DirPath)]
    pub(crate) path: PathBuf,
    /// Print JSON instead of text, one object a line; errors, too
    #[arg(long, global = true, help_heading = "For every command")]
    pub(crate) json: bool,
    /// Keys and values are given, and shown with all their bytes, in hexadecimal. Refused by commands without any
    #[arg(long, global = true, help_heading = "For every command")]
    pub(crate) hex: bool,
    /// As --hex, for keys alone
    #[arg(long, global = true, help_heading = "For every command")]
    pub(crate) hex_key: bool,
    /// As --hex, for values alone
    #[arg(long, global = true, help_heading = "For every command")]
    pub(crate) hex_value: bool,
    /// Say more on standard error; twice for even more
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    #[arg(help_heading = "For every command")]
    pub(crate) verbose: u8,
}

/// How to open the store.
#[derive(Args, Clone, Debug)]
pub(crate) struct StoreArguments {
    /// Open in spite of damage, or after a power loss; what is damaged is left out, and exit code 4 says so
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

/// The bounds of a range of keys.
pub(crate) type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// A range of keys.
#[derive(Args, Clone, Debug)]
pub(crate) struct RangeArguments {
    /// From this key on
    #[arg(long, value_name = "KEY")]
    pub(crate) from: Option<OsString>,
    /// Up to this key, without it
    #[arg(long, value_name = "KEY")]
    pub(crate) to: Option<OsString>,
    /// Keys that begin so
    #[arg(long, conflicts_with_all = ["from", "to"])]
    pub(crate) prefix: Option<OsString>,
}

impl RangeArguments {
    /// The range that they stand for.
    ///
    /// # Errors
    /// `Usage` for what is not hexadecimal and should be.
    pub(crate) fn read(&self, form: Form) -> Result<Bounds, Failure> {
        if let Some(prefix) = &self.prefix {
            return Ok(chimera::prefix_range(&form.read("prefix", prefix.as_bytes())?));
        }
        let read = |what, key: &Option<OsString>| {
            key.as_ref().map(|key| form.read(what, key.as_bytes())).transpose()
        };
        let from = read("first key", &self.from)?.map_or(Bound::Unbounded, Bound::Included);
        let to = read("last key", &self.to)?.map_or(Bound::Unbounded, Bound::Excluded);
        Ok((from, to))
    }
}
