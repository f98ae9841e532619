//! `chimera list-keys`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use clap::Args;

use crate::arguments::StoreArguments;
use crate::commands::Context;
use crate::failure::Failure;
use crate::store;
use crate::text::JsonRecord;

const EXAMPLES: &str = "\
Examples:
  chimera list-keys | sort
  chimera list-keys --prefix user: --values
  chimera list-keys --limit 10 --json

Keys come in no order. As text, control characters are shown as \\x and two digits; --hex shows
every byte.";

/// Print the keys, one per line
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ListKeys {
    /// Stop after so many keys
    #[arg(long, value_name = "COUNT")]
    limit: Option<u64>,
    /// Only keys that begin so
    #[arg(long)]
    prefix: Option<OsString>,
    /// Print values, too, after a tab
    #[arg(long)]
    values: bool,
    #[command(flatten)]
    store: StoreArguments,
}

impl ListKeys {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let prefix = match &self.prefix {
            Some(prefix) => context.form.read("prefix", prefix.as_bytes())?,
            None => Vec::new(),
        };
        let db = store::open_to_read(&self.store)?;
        if context.json {
            context.output.bytes(b"{\"records\":[")?;
        }
        let limit = self.limit.unwrap_or(u64::MAX);
        let mut count = 0;
        let mut more = false;
        let mut failure = None;
        db.for_each(|key, value| {
            if !key.starts_with(&prefix) {
                return true;
            }
            more = count == limit;
            if more {
                return false;
            }
            failure = self.print(context, count, key, value).err();
            count += 1;
            failure.is_none()
        })?;
        if let Some(failure) = failure {
            return Err(failure);
        }
        if context.json {
            return context.output.line(format!("],\"count\":{count},\"more\":{more}}}"));
        }
        Ok(())
    }

    fn print(
        &self,
        context: &mut Context,
        number: u64,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), Failure> {
        let value = self.values.then_some(value);
        if context.json {
            if number > 0 {
                context.output.bytes(b",")?;
            }
            return context.output.json_part(&JsonRecord::new(context.form, key, value));
        }
        let key = context.form.show_in_line(key);
        match value {
            Some(value) => {
                context.output.line(format!("{key}\t{}", context.form.show_in_line(value)))
            }
            None => context.output.line(key),
        }
    }
}
