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
    values: bool,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
}

/// Records that are being printed, one per line or as one JSON object.
pub(crate) struct Listing<'a> {
    arguments: &'a ListingArguments,
    context: &'a mut Context,
    count: u64,
    /// There are more records than were to be printed.
    more: bool,
    failure: Option<Failure>,
}

impl<'a> Listing<'a> {
    /// Begins to print.
    ///
    /// # Errors
    /// When there is nobody to print to.
    pub(crate) fn begin(
        arguments: &'a ListingArguments,
        context: &'a mut Context,
    ) -> Result<Self, Failure> {
        if context.json {
            context.output.bytes(b"{\"records\":[")?;
        }
        Ok(Self { arguments, context, count: 0, more: false, failure: None })
    }

    /// Prints a record; `false` when no more are wanted.
    pub(crate) fn take(&mut self, key: &[u8], value: &[u8]) -> bool {
        self.more = self.count == self.arguments.limit.unwrap_or(u64::MAX);
        if self.more {
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
            if self.count > 0 {
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

    /// Ends the output of a listing of a store with these losses.
    ///
    /// # Errors
    /// When something could not be printed; `Losses` when damage has kept something out.
    pub(crate) fn end(self, losses: Losses) -> Result<(), Failure> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let Self { context, count, more, .. } = self;
        if context.json {
            context
                .output
                .bytes(format!("],\"count\":{count},\"more\":{more},\"losses\":").as_bytes())?;
            context.output.json_part(&losses)?;
            context.output.line("}")?;
        }
        losses::end(losses)
    }
}
