//! What `list-keys` and `scan` have in common: how many records, and how they are printed.

use chimera::Losses;
use clap::Args;

use crate::arguments::StoreArguments;
use crate::commands::Context;
use crate::failure::Failure;
use crate::losses;
use crate::text::JsonRecord;

/// Which of the records that come are printed, and how.
#[derive(Args, Debug)]
pub(crate) struct ListingArguments {
    /// Stop after so many keys
    #[arg(long, value_name = "COUNT")]
    limit: Option<u64>,
    /// Print values, too, after a tab
    #[arg(long)]
    pub(crate) values: bool,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
}

/// Records that are being printed, one per line.
pub(crate) struct Listing<'a> {
    arguments: &'a ListingArguments,
    context: &'a mut Context,
    count: u64,
    failure: Option<Failure>,
}

impl<'a> Listing<'a> {
    /// Begins to print.
    pub(crate) fn begin(arguments: &'a ListingArguments, context: &'a mut Context) -> Self {
        Self { arguments, context, count: 0, failure: None }
    }

    /// Prints a record; `false` when no more are wanted.
    pub(crate) fn take(&mut self, key: &[u8], value: &[u8]) -> bool {
        if self.count == self.arguments.limit.unwrap_or(u64::MAX) {
            return false;
        }
        self.failure = self.print(key, value).err();
        self.count += 1;
        self.failure.is_none()
    }

    fn print(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let value = self.arguments.values.then_some(value);
        let context = &mut *self.context;
        if context.json {
            return context.output.json(&JsonRecord::new(context.forms, key, value));
        }
        let key = context.forms.key.show_in_line(key);
        match value {
            Some(value) => {
                let value = context.forms.value.show_in_line(value);
                context.output.line(format!("{key}\t{value}"))
            }
            None => context.output.line(key),
        }
    }

    /// Ends the output of a listing of a store with these losses.
    ///
    /// # Errors
    /// When something could not be printed; `Losses` when damage has kept something out.
    pub(crate) fn end(self, losses: Losses) -> Result<(), Failure> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        losses::end(losses)
    }
}
