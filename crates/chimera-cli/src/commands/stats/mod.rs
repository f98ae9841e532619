//! `chimera stats`.
//!
//! - `own`: the figures of a store that nobody has open, which the command opens itself.
//! - `published`: those that the process which has it open publishes.
//! - `watch`: the same again and again. `text`: tables and lines.

pub(crate) mod levels;
mod own;
mod published;
mod text;
mod watch;

use clap::Args;

use crate::arguments::StoreArguments;
use crate::commands::Context;
use crate::failure::Failure;
use crate::losses;
use crate::store;
use published::Publication;

/// Print what the store says of itself: records, sizes, medium, durability, recovery; what a process
/// that has it open publishes
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  chimera stats
  chimera stats --json
  chimera stats --watch                  operations per second and their latencies
  chimera stats --watch --json           one object per interval
  chimera stats --open-metrics           for collectors such as Prometheus

A store that another process has open is not opened. Its figures are those that the process publishes
in the store's directory, if it was told to by Options::publish_metrics or by `chimera bench
--publish-metrics`.")]
pub(crate) struct Stats {
    #[command(flatten)]
    store: StoreArguments,
    /// Show what the process that has the store open does, until interrupted. The store is not opened
    #[arg(long, conflicts_with = "salvage")]
    watch: bool,
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value = "1", requires = "watch")]
    #[arg(value_parser = watch::seconds)]
    every: f64,
    /// End after so many looks
    #[arg(long, value_name = "N", requires = "watch")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    rounds: Option<u64>,
    /// Print the metrics as OpenMetrics text
    #[arg(long, conflicts_with = "watch", conflicts_with = "json")]
    open_metrics: bool,
}

impl Stats {
    /// Whether it goes on until it is interrupted.
    pub(crate) fn watches(&self) -> bool {
        self.watch
    }

    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let path = &context.path.clone();
        if self.watch {
            return watch::run(context, path, self.every, self.rounds);
        }
        let db = match store::open_to_read(&context.path, &self.store) {
            Ok(db) => db,
            Err(Failure::Store(chimera::Error::Locked { holder })) => {
                return self.show_published(context, holder);
            }
            Err(failure) => return Err(failure),
        };
        if self.open_metrics {
            context.output.bytes(db.metrics_text().as_bytes())?;
        } else {
            own::show(context, path, db.stats())?;
        }
        losses::end(db.losses())
    }

    /// What the process that has the store open says.
    fn show_published(&self, context: &mut Context, holder: String) -> Result<(), Failure> {
        let path = &context.path.clone();
        // What a process has left behind that was killed is not that of the one that has the store now.
        let is_its = |publication: &Publication| {
            let mut numbers = holder.split(|letter: char| !letter.is_ascii_digit());
            !publication.is_stale() || numbers.any(|number| number == publication.fact("process"))
        };
        let Some(publication) = Publication::read(path)?.filter(is_its) else {
            return Err(Failure::Unpublished { path: path.clone(), holder: Some(holder) });
        };
        if self.open_metrics {
            return context.output.bytes(publication.text.as_bytes());
        }
        let interval = publication.since(None);
        if context.json {
            return context.output.json(&publication.report(path, &interval, true));
        }
        for line in text::table(path, &publication, &interval) {
            context.output.line(line)?;
        }
        Ok(())
    }
}
