//! `chimera backup`.

use std::path::PathBuf;
use std::sync::Arc;

use chimera::{BackupOptions, BackupReport, Db};
use clap::{Args, ValueHint};

use crate::arguments::StoreArguments;
use crate::commands::Context;
use crate::failure::Failure;
use crate::human::{count, size};
use crate::interrupt::{self, Made, Plan};
use crate::losses;
use crate::paths;
use crate::progress::Bar;
use crate::store;

const EXAMPLES: &str = "\
Examples:
  chimera backup --path users /mnt/backups/users-monday

The backup is a store. Until it is durable, opening it is an error that says that it is not complete.
Ctrl-C removes a backup that is not complete; after anything else that interrupts it, remove it.
It is made anew then. A program makes a backup of a store that it has
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
        let db = store::open_to_read(&context.path, &self.store)?;
        let report = self.make(&db)?;
        if context.json {
            context.output.json(&report)?;
        } else {
            let (records, path) = (count(report.records), self.directory.display());
            let bytes = size(report.bytes);
            context.output.line(format!("{records} records in `{path}`, {bytes}"))?;
        }
        losses::end(report.losses)
    }

    fn make(&self, db: &Db) -> Result<BackupReport, Failure> {
        let _guard = interrupt::plan(Made::backup(&self.directory).map_or(
            Plan::Say("what is there of the backup cannot be opened; make it again"),
            Plan::Remove,
        ));
        let bar = Bar::new("copying", "records");
        let show = bar.as_ref().map(Bar::callback);
        let options = BackupOptions::new().progress(Arc::new(move |done, whole| {
            // Nothing is copied any more while the copy is removed.
            interrupt::pass();
            if let Some(show) = &show {
                show(done, whole);
            }
        }));
        Ok(db.backup(&self.directory, &options)?)
    }
}
