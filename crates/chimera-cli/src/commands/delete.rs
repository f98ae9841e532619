//! `chimera delete`.

use std::ffi::OsString;

use clap::Args;
use serde_json::json;

use crate::arguments::WriteArguments;
use crate::commands::Context;
use crate::failure::Failure;
use crate::store::{self, Sizes};
use crate::text::{JsonRecord, fit};

/// Remove a key and its value
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  chimera delete greeting")]
pub(crate) struct Delete {
    /// Key
    key: OsString,
    #[command(flatten)]
    write: WriteArguments,
}

impl Delete {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let key = context.form.read_key(&self.key)?;
        let db = store::open_to_write(&self.write)?;
        let key = fit("key", key, Sizes::of(&db).key)?;
        let was_there = db.delete(&key)?;
        db.close()?;
        if !was_there {
            return Err(context.key_not_found(&key));
        }
        if context.json {
            let outcome = json!({ "deleted": true });
            return context.output.json(&JsonRecord::done(context.form, &key, outcome));
        }
        context.output.line("deleted")
    }
}
