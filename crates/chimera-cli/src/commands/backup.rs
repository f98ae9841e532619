//! `chimera backup`.

use std::path::PathBuf;

use chimera::BackupOptions;
use clap::{Args, ValueHint};

use crate::arguments::StoreArguments;
use crate::commands::Context;
use crate::failure::Failure;
use crate::human::{count, size};
use crate::losses;
use crate::paths;
use crate::progress::Bar;
use crate::store;

const EXAMPLES: &str = "\
Examples:
  chimera backup --path users /mnt/backups/users-monday

The backup is a store. Until it is durable, opening it is an error that says that it is not complete.
An interrupted backup is removed and made again. A program makes a backup of a store that it has
open, beside its writers, with `Db::backup`.";

/// Make a new store with the records, layout and sizes of this one
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Backup {
    #[command(flatten)]
    store: StoreArguments,
    /// Where the new store goes: nothing, or an empty directory, is there yet
    #[arg(value_hint = ValueHint::DirPath)]
    directory: PathBuf,
}

impl Backup {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        paths::refuse_dangling(&self.directory)?;
        let db = store::open_to_read(context, &self.store)?;
        let bar = Bar::new("copying", "records");
        let mut options = BackupOptions::new();
        if let Some(bar) = &bar {
            options = options.progress(bar.callback());
        }
        let report = db.backup(&self.directory, &options)?;
        drop(bar);
        if context.json {
            context.output.json(&report)?;
        } else {
            let (records, path) = (count(report.records), self.directory.display());
            let bytes = size(report.bytes);
            context.output.line(format!("{records} records in `{path}`, {bytes}"))?;
        }
        losses::end(report.losses)
    }
}
