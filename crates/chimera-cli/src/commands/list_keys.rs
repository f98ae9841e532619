//! `chimera list-keys`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use clap::Args;

use crate::commands::Context;
use crate::commands::listing::{Listing, ListingArguments};
use crate::failure::Failure;
use crate::store;

const EXAMPLES: &str = "\
Examples:
  chimera list-keys | sort
  chimera list-keys --prefix user: --values
  chimera list-keys --limit 10 --json

Keys come in no order; `chimera scan` gives them in order. As text, control characters are shown
as \\x and two digits; --hex shows every byte. With --json each record is an object in a line of
its own, with `key`, `encoding` (text or hex) and, with --values, `value`.";

/// Print the keys, one per line
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ListKeys {
    /// Only keys that begin so
    #[arg(long)]
    prefix: Option<OsString>,
    #[command(flatten)]
    listing: ListingArguments,
}

impl ListKeys {
    /// Whether values are printed, too.
    pub(crate) fn shows_values(&self) -> bool {
        self.listing.values
    }

    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let prefix = match &self.prefix {
            Some(prefix) => context.forms.key.read("prefix", prefix.as_bytes())?,
            None => Vec::new(),
        };
        let db = store::open_to_read(&context.path, &self.listing.store)?;
        let mut listing = Listing::begin(&self.listing, context);
        db.for_each(|key, value| !key.starts_with(&prefix) || listing.take(key, value))?;
        listing.end(db.losses())
    }
}
