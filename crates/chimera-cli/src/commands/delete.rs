//! `chimera delete`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use clap::Args;
use serde_json::json;

use crate::arguments::{RangeArguments, WriteArguments};
use crate::commands::Context;
use crate::failure::Failure;
use crate::losses;
use crate::store::{self, Sizes};
use crate::text::{JsonRecord, fit};

const EXAMPLES: &str = "\
Examples:
  chimera delete greeting
  chimera delete --prefix user:
  chimera delete --from 2023 --to 2024

Keys of a range are removed one after the other: after an interruption the first of them are gone.";

/// Remove a key and its value, or all keys of a range
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Delete {
    /// Key
    #[arg(required_unless_present_any = ["from", "to", "prefix"])]
    #[arg(conflicts_with_all = ["from", "to", "prefix"])]
    key: Option<OsString>,
    #[command(flatten)]
    range: RangeArguments,
    #[command(flatten)]
    write: WriteArguments,
}

impl Delete {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        match &self.key {
            Some(key) => self.one(context, key),
            None => self.all(context),
        }
    }

    fn one(&self, context: &mut Context, key: &OsString) -> Result<(), Failure> {
        let key = context.forms.key.read_key(key.as_bytes())?;
        let db = store::open_to_write(&context.path, &self.write)?;
        let key = fit("key", key, Sizes::of(&db).key)?;
        let was_there = db.delete(&key)?;
        let losses = db.losses();
        db.close()?;
        if !was_there {
            return Err(context.key_not_found(&key, losses));
        }
        if context.json {
            let outcome = json!({ "deleted": true, "losses": losses });
            context.output.json(&JsonRecord::done(context.forms, &key, outcome))?;
        } else {
            context.output.line("deleted")?;
        }
        losses::end(losses)
    }

    fn all(&self, context: &mut Context) -> Result<(), Failure> {
        let range = self.range.read(context.forms.key)?;
        let options = store::options_to_write(&self.write);
        let (db, bar) = store::open_ordered(&context.path, options)?;
        let (mut count, mut session) = (0_u64, db.session());
        let scan = db.scan(range)?;
        drop(bar);
        for record in scan {
            count += u64::from(session.delete(&record?.0)?);
        }
        drop(session);
        let losses = db.losses();
        db.close()?;
        if context.json {
            context.output.json(&json!({ "deleted": count, "losses": losses }))?;
        } else {
            context.output.line(format!("{count} deleted"))?;
        }
        losses::end(losses)
    }
}
