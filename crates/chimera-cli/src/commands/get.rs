//! `chimera get`.

use std::ffi::OsString;

use clap::Args;

use crate::arguments::StoreArguments;
use crate::commands::Context;
use crate::failure::Failure;
use crate::losses::{self, WithLosses};
use crate::store::{self, Sizes};
use crate::text::{JsonRecord, fit};

const EXAMPLES: &str = "\
Examples:
  chimera get greeting
  chimera get --hex 6b6579
  chimera get --raw picture > picture.bin     all bytes as they are stored, and nothing else";

/// Print the value of a key
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Get {
    /// Key
    key: OsString,
    /// Print the bytes as they are stored, with the zeros at the end and without a line break
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    #[command(flatten)]
    store: StoreArguments,
}

impl Get {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let key = context.form.read_key(&self.key)?;
        let db = store::open_to_read(&self.store)?;
        let key = fit("key", key, Sizes::of(&db).key)?;
        let Some(value) = db.get(&key)? else {
            return Err(context.key_not_found(&key, db.losses()));
        };
        let losses = db.losses();
        if self.raw {
            context.output.bytes(&value)?;
        } else if context.json {
            let record = JsonRecord::new(context.form, &key, Some(&value));
            context.output.json(&WithLosses::new(&record, &losses))?;
        } else {
            context.output.bytes(&context.form.show(&value))?;
            context.output.bytes(b"\n")?;
        }
        losses::end(losses)
    }
}
