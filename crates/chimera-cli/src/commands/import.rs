//! `chimera import`.

use std::io::BufReader;
use std::path::{Path, PathBuf};

use chimera::{
    Db, Error, ImportOptions, ImportReport, Losses, Options, StreamPosition, StreamReader,
};
use clap::{Args, ValueHint};
use serde_json::json;

use crate::arguments::WriteArguments;
use crate::commands::Context;
use crate::failure::Failure;
use crate::human::{self, count};
use crate::interrupt::{self, Input, Plan};
use crate::losses::{self, WithLosses};
use crate::progress::Bar;
use crate::store;

/// Bytes read at a time.
const BUFFER_BYTES: usize = 256 << 10;

const EXAMPLES: &str = "\
Examples:
  chimera import --path users users.stream
  chimera export --path users - | chimera import --path copy -

Keys that the store has already get the values of the stream. If the stream is damaged or ends too
soon, the records before that are kept, and the message says where to go on: give the whole stream
again with --resume POSITION. Without it everything is stored again, which does no harm. After
Ctrl-C it is the same; a second one ends the command at once.";

/// Store the records of a stream that `export` wrote; creates the store if there is none
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Import {
    #[command(flatten)]
    write: WriteArguments,
    /// File to read; `-` is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Pass over what an import stored before it stopped, given where it said to go on
    #[arg(long, value_name = "POSITION")]
    resume: Option<StreamPosition>,
    /// Size of each of the store's segments, when it is created, such as 64MiB [default: 1GiB; on a
    /// device, what fills it]
    #[arg(long, value_name = "SIZE", value_parser = human::parse_size)]
    segment_size: Option<u64>,
}

impl Import {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let _guard = interrupt::plan(Plan::Stop(
            "ended at once: what was stored so far is kept, and the same import can be given again",
        ));
        let outcome = self.import(context, Input::open(&self.file)?);
        match outcome {
            // Nothing was read yet.
            Err(Failure::Store(_)) if interrupt::is_asked() => {
                Err(Failure::Interrupted("nothing was stored".to_owned()))
            }
            outcome => outcome,
        }
    }

    fn import(&self, context: &mut Context, from: Input) -> Result<(), Failure> {
        let bytes = from.bytes;
        let mut reader = StreamReader::new(BufReader::with_capacity(BUFFER_BYTES, from))?;
        let created = store::is_absent(&context.path)?;
        let db = self.open(context, created.then(|| reader.kind().options()))?;
        let bar = Bar::new("importing", "bytes");
        let mut options = ImportOptions::new();
        if let Some(bar) = bar.as_ref().filter(|_| bytes > 0) {
            options = options.progress(bar.callback(), bytes);
        }
        if let Some(position) = self.resume {
            options = options.resume(position);
        }
        let outcome = db.import(&mut reader, &options);
        drop(bar);
        let losses = db.losses();
        // What was stored stays, whatever came then.
        db.close()?;
        match outcome {
            Ok(report) => {
                say(context, &report, created, &losses)?;
                losses::end(losses)
            }
            Err(error) => {
                if context.json {
                    context.output.json(&WithLosses::new(&stopped(&error), &losses))?;
                }
                if interrupt::is_asked() {
                    return Err(interrupted(&context.path, created, &error));
                }
                Err(error.into())
            }
        }
    }

    /// Opens the store, or makes it as the stream's kind wants it.
    fn open(&self, context: &Context, kind: Option<Options>) -> Result<Db, Failure> {
        let create = kind.is_some();
        let mut options = kind
            .unwrap_or_default()
            .create(create)
            .salvage(self.write.store.salvage)
            .durability(self.write.durability);
        if let Some(bytes) = self.segment_size {
            options = options.segment_bytes(bytes);
        }
        Ok(store::open(&context.path, options)?)
    }
}

/// Says what was imported.
fn say(
    context: &mut Context,
    report: &ImportReport,
    created: bool,
    losses: &Losses,
) -> Result<(), Failure> {
    if context.json {
        let mut all = json!(report);
        all["complete"] = true.into();
        all["created_store"] = created.into();
        all["losses"] = json!(losses);
        return context.output.json(&all);
    }
    if created {
        let text = format!("created store `{}`", context.path.display());
        context.output.line(text)?;
    }
    let part = |records: u64, before: &str, after: &str| match records {
        0 => String::new(),
        records => format!("{before}{}{after}", count(records)),
    };
    let replaced = part(report.replaced, ", ", " of which replaced others");
    let skipped = part(report.skipped, "; ", " were passed over");
    let records = count(report.records);
    context.output.line(format!("imported {records} records{replaced}{skipped}"))
}

/// How it stands after Ctrl-C. A store that was made for the import, and has nothing of it, is removed.
fn interrupted(path: &Path, created: bool, error: &Error) -> Failure {
    let text = match error {
        Error::ImportStopped { records: 0, .. } if created => match Db::destroy(path) {
            Ok(()) => "nothing was stored, and the new store was removed".to_owned(),
            Err(error) => format!("nothing was stored, but the new store is left: {error}"),
        },
        Error::ImportStopped { records, position, .. } => format!(
            "{} records were stored and are kept; to go on, give the whole stream again with --resume {position}",
            count(*records)
        ),
        error => error.to_string(),
    };
    Failure::Interrupted(text)
}

/// How far an import came, for programs.
fn stopped(error: &Error) -> serde_json::Value {
    match error {
        Error::ImportStopped { at, frame, records, position, why } => json!({
            "complete": false,
            "records": records,
            "at": at,
            "frame": frame,
            "position": position,
            "why": why.to_string(),
        }),
        _ => json!({ "complete": false, "records": 0 }),
    }
}
