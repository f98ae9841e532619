//! `chimera get`.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::unix::ffi::OsStrExt;

use clap::Args;

use crate::arguments::StoreArguments;
use crate::commands::Context;
use crate::failure::Failure;
use crate::losses::{self, WithLosses};
use crate::store::{self, Sizes};
use crate::text::{Form, JsonRecord, fit, for_terminal, trimmed};

const EXAMPLES: &str = "\
Examples:
  chimera get greeting
  chimera get --hex 6b6579
  chimera get --raw picture > picture.bin     all bytes as they are stored, and nothing else

On a terminal control bytes of a value, and bytes that are not UTF-8, are shown as \\x and two
digits, but for line breaks and tabs: a value cannot steer the terminal. Into a file or a pipe the
bytes go as they are, and with --raw they always do.";

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
        let key = context.forms.key.read_key(self.key.as_bytes())?;
        let db = store::open_to_read(&context.path, &self.store)?;
        let key = fit("key", key, Sizes::of(&db).key)?;
        let Some(value) = db.get(&key)? else {
            return Err(context.key_not_found(&key, db.losses()));
        };
        let losses = db.losses();
        if self.raw {
            context.output.bytes(&value)?;
        } else if context.json {
            let record = JsonRecord::new(context.forms, &key, Some(&value));
            context.output.json(&WithLosses::new(&record, &losses))?;
        } else {
            context.output.bytes(&shown(context.forms.value, &value))?;
            context.output.bytes(b"\n")?;
        }
        losses::end(losses)
    }
}

/// A value for standard output, which may be a terminal.
fn shown(form: Form, value: &[u8]) -> Vec<u8> {
    if form == Form::Text && io::stdout().is_terminal() {
        return for_terminal(trimmed(value)).into_bytes();
    }
    form.show(value)
}
