//! [`Db::import`]: a stream into a store.

use std::fmt;
use std::io::Read;

use chimera_pmem::Pmem;

use super::reader::StreamReader;
use crate::db::Db;
use crate::types::error::{Error, Result};
use crate::types::position::StreamPosition;
use crate::types::progress::Progress;
use crate::types::stream::ImportReport;

/// How a stream is imported.
#[derive(Clone, Default)]
#[must_use]
pub struct ImportOptions {
    resume: Option<StreamPosition>,
    progress: Option<(Progress, u64)>,
}

impl ImportOptions {
    /// All defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Skip records before this position, which an import that stopped has stored.
    pub fn resume(mut self, position: StreamPosition) -> Self {
        self.resume = Some(position);
        self
    }

    /// Called after each frame with (bytes read, `bytes` in all, as far as that is known).
    pub fn progress(mut self, progress: Progress, bytes: u64) -> Self {
        self.progress = Some((progress, bytes));
        self
    }
}

impl fmt::Debug for ImportOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImportOptions").field("resume", &self.resume).finish_non_exhaustive()
    }
}

impl<P: Pmem> Db<P> {
    /// Stores the records of a stream. Keys that are there already get the stream's values. Other
    /// sessions may go on.
    ///
    /// A frame is stored once its checksums were verified. When the stream is damaged or ends too soon,
    /// the frames before stay stored, and the error says where it stopped. Storing a record again does no
    /// harm, so an import may always begin anew. With [`resume`](ImportOptions::resume) it reads and verifies
    /// the stored frames and does not store them again.
    ///
    /// # Errors
    /// [`Error::ImportStopped`] says how far the import came, and why it stopped there: because of the
    /// stream, or because the store took no more. [`Error::StreamMismatch`], with nothing stored, when
    /// the stream has records that this store cannot hold, or is not the one that the position is of.
    ///
    /// # Durability
    /// Everything that was stored is durable on return, also with an error, as far as
    /// [`sync`](Self::sync) promises.
    ///
    /// # Cost
    /// A [`put`](crate::Session::put) for each record, and memory for the longest frame.
    pub fn import<R: Read>(
        &self,
        from: &mut StreamReader<R>,
        options: &ImportOptions,
    ) -> Result<ImportReport> {
        self.refuse_forked()?;
        let (stream, store) = (from.kind(), self.kind());
        if stream.is_fixed() && store.is_fixed() && stream != store {
            return Err(Error::StreamMismatch(format!(
                "the stream has records of {stream}, this store of {store}: import it into a store of \
                 its own sizes, or of records of any size"
            )));
        }
        let mut report = ImportReport::default();
        if let Some(position) = options.resume {
            pass_over(from, position, options)?;
            report.skipped = from.reached().records;
        }
        let stored = self.store_frames(from, options, &mut report);
        // Also what came before an error.
        self.sync()?;
        report.frames = from.reached().frames;
        report.bytes = from.reached().bytes;
        stored.map(|()| report)
    }

    fn store_frames<R: Read>(
        &self,
        from: &mut StreamReader<R>,
        options: &ImportOptions,
        report: &mut ImportReport,
    ) -> Result<()> {
        let mut session = self.try_session()?;
        loop {
            let (at, position) = (from.reached().bytes, from.position());
            let stored = from.next_frame().and_then(|frame| {
                let Some(records) = frame else { return Ok(false) };
                for (key, value) in records {
                    report.replaced += u64::from(!session.put(key, value)?);
                    report.records += 1;
                }
                Ok(true)
            });
            match stored {
                Ok(true) => options.report(from),
                Ok(false) => return Ok(()),
                Err(why) => return Err(stopped(at, position, report.records, why)),
            }
        }
    }
}

impl ImportOptions {
    fn report<R: Read>(&self, from: &StreamReader<R>) {
        if let Some((progress, bytes)) = &self.progress {
            let read = from.reached().bytes;
            progress(read, read.max(*bytes));
        }
    }
}

/// Reads and verifies the frames before a position.
fn pass_over<R: Read>(
    from: &mut StreamReader<R>,
    position: StreamPosition,
    options: &ImportOptions,
) -> Result<()> {
    while from.reached().frames < position.frames {
        let at = from.reached().bytes;
        match from.next_frame() {
            Ok(Some(_)) => options.report(from),
            Ok(None) => break,
            Err(why) => return Err(stopped(at, from.position(), 0, why)),
        }
    }
    if from.position() == position {
        return Ok(());
    }
    let what = format!("the stream is not the one that the position {position} is of");
    Err(Error::StreamMismatch(what))
}

fn stopped(at: u64, position: StreamPosition, records: u64, why: Error) -> Error {
    Error::ImportStopped { at, frame: position.frames, records, position, why: Box::new(why) }
}
