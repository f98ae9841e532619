//! `chimera scan`.

use clap::Args;

use crate::arguments::RangeArguments;
use crate::commands::Context;
use crate::commands::listing::{Listing, ListingArguments};
use crate::failure::Failure;
use crate::store;

const EXAMPLES: &str = "\
Examples:
  chimera scan --prefix user: --values
  chimera scan --from 2024-01 --to 2024-07 --limit 10
  chimera scan --reverse --limit 1           the last key

Keys come in the order of their bytes. The store is read once to sort them, so the first line
takes longer than the first one of `list-keys`. With --json each record is an object in a line of
its own, as of `list-keys`.";

/// Print the keys of a range in their order, one per line
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Scan {
    #[command(flatten)]
    range: RangeArguments,
    /// From the last key to the first
    #[arg(long)]
    reverse: bool,
    #[command(flatten)]
    listing: ListingArguments,
}

impl Scan {
    /// Whether values are printed, too.
    pub(crate) fn shows_values(&self) -> bool {
        self.listing.values
    }

    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let range = self.range.read(context.forms.key)?;
        let (db, bar) = store::open_to_scan(&context.path, &self.listing.store)?;
        let mut listing = Listing::begin(&self.listing, context);
        let mut scan = db.scan(range)?;
        drop(bar);
        while let Some(record) = if self.reverse { scan.next_back() } else { scan.next() } {
            let (key, value) = record?;
            if !listing.take(&key, &value) {
                break;
            }
        }
        listing.end(scan.losses())
    }
}
