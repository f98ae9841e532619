//! `chimera export`.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, IsTerminal, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use chimera::{Db, Error, ExportOptions, ExportReport, StreamReader};
use clap::{Args, ValueHint};
use rustix::fs::OFlags;

use crate::arguments::StoreArguments;
use crate::commands::Context;
use crate::failure::Failure;
use crate::human::{count, size};
use crate::interrupt::{self, Made, Plan};
use crate::losses;
use crate::paths;
use crate::progress::Bar;
use crate::store;

const EXAMPLES: &str = "\
Examples:
  chimera export --path users users.stream
  chimera export --path users users.stream --resume   goes on where an interrupted export ended
  chimera export --path users - | ssh other chimera import --path users -

Ctrl-C removes the file of an export that is not complete. With --resume, also the first time, the
file stays, and the same command goes on with it.

The stream has checksums, and says when it is complete: `chimera import` keeps what is right of
one that is not. Its format is described in docs/STREAM.md.";

/// Write all records as a stream of bytes that `import` reads
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Export {
    #[command(flatten)]
    store: StoreArguments,
    /// File to write, which is not there yet; `-` is standard output
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Verify what the file has of an interrupted export, cut off what is not whole, and go on
    #[arg(long)]
    resume: bool,
}

impl Export {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        if self.file.as_os_str() == paths::STANDARD_STREAM {
            self.refuse_standard_output()?;
            let db = store::open_to_read(&context.path, &self.store)?;
            let _guard = interrupt::plan(Plan::Say(
                "the stream is not complete: `chimera import` keeps what is right of it, and says so",
            ));
            let out = &mut BufWriter::new(io::stdout().lock());
            let report = write(&db, out, ExportOptions::new())?;
            // Standard output is the stream.
            let text =
                if context.json { serde_json::json!(report).to_string() } else { line(&report) };
            writeln!(io::stderr(), "{text}")
                .map_err(|source| Failure::Io { action: "write to standard error", source })?;
            return losses::end(report.losses);
        }
        let report = self.to_file(context, &self.file)?;
        if context.json {
            context.output.json(&report)?;
        } else {
            context.output.line(line(&report))?;
        }
        losses::end(report.losses)
    }

    fn refuse_standard_output(&self) -> Result<(), Failure> {
        let what = if self.resume {
            "standard output cannot be gone on with: name a file, or leave out --resume"
        } else if io::stdout().is_terminal() {
            "a stream of bytes is not for a terminal: name a file, or use a pipe"
        } else {
            return Ok(());
        };
        Err(Failure::Usage(what.to_owned()))
    }

    fn to_file(&self, context: &Context, path: &Path) -> Result<ExportReport, Failure> {
        paths::refuse_dangling(path)?;
        // First, so that no file is left where there is no store.
        let db = store::open_to_read(&context.path, &self.store)?;
        let mut options = ExportOptions::new();
        let plan = if self.resume {
            Plan::Say("the file keeps what it has; the same command goes on with it")
        } else {
            Plan::Remove(Made::Export(path.to_owned()))
        };
        let (mut file, _guard) = match interrupt::make(|| self.open(path), plan) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(Error::AlreadyExists { path: path.to_owned() }.into());
            }
            other => other.map_err(failed("open the file"))?,
        };
        if self.resume {
            options = take_up(&db, &mut file, options)?;
        }
        let report = write(&db, &mut BufWriter::new(&file), options)?;
        file.sync_all().map_err(failed("sync the file"))?;
        Ok(report)
    }

    /// Opens the file to write: one that is new, or a regular one to go on with.
    fn open(&self, path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        if !self.resume {
            return options.create_new(true).open(path);
        }
        // What is in a pipe cannot be verified: reading it would wait for ever.
        let file = options.create(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)?;
        if !file.metadata()?.is_file() {
            let message = "it is not a regular file, so there is nothing to go on with";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        Ok(file)
    }
}

/// Cuts off what is not whole of an interrupted export.
fn take_up(db: &Db, file: &mut File, options: ExportOptions) -> Result<ExportOptions, Failure> {
    let (bytes, options) = match StreamReader::new(BufReader::new(&*file)) {
        Ok(reader) => {
            let verified = reader.verify()?;
            db.check_resumable(&verified)?;
            (verified.bytes(), options.resume(verified))
        }
        // Not even the header: begin anew.
        Err(Error::StreamTruncated { .. }) => (0, options),
        Err(error) => return Err(error.into()),
    };
    file.set_len(bytes).map_err(failed("cut the file"))?;
    file.seek(SeekFrom::Start(bytes)).map_err(failed("seek in the file"))?;
    Ok(options)
}

fn write(db: &Db, to: &mut dyn Write, options: ExportOptions) -> Result<ExportReport, Failure> {
    let bar = Bar::new("exporting", "records");
    let options = match &bar {
        Some(bar) => options.progress(bar.callback()),
        None => options,
    };
    Ok(db.export(to, &options)?)
}

fn failed(action: &'static str) -> impl FnOnce(io::Error) -> Failure {
    move |source| Failure::Io { action, source }
}

fn line(report: &ExportReport) -> String {
    let before = report.records - report.records_written;
    let before = match before {
        0 => String::new(),
        before => format!(", {} of them before", count(before)),
    };
    let (records, frames) = (count(report.records), count(report.frames));
    format!("exported {records} records{before}, in {frames} frames: {}", size(report.bytes))
}
