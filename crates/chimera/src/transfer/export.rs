//! [`Db::export`]: a store as a stream.

use std::fmt;
use std::io::Write;

use chimera_pmem::Pmem;

use super::format::Header;
use super::reader::Verified;
use super::writer::{StreamProgress, StreamWriter};
use crate::db::Db;
use crate::types::error::{Error, Result};
use crate::types::progress::Progress;
use crate::types::stream::ExportReport;

/// Content of a frame, unless a single record is longer.
const FRAME_BYTES_DEFAULT: usize = 1 << 20;
/// Progress is reported once for so many records.
const PROGRESS_RECORDS: u64 = 256;

/// How a store is exported.
#[must_use]
pub struct ExportOptions {
    frame_bytes: usize,
    resume: Option<Verified>,
    progress: Option<Progress>,
}

impl Default for ExportOptions {
    fn default() -> Self {
        Self { frame_bytes: FRAME_BYTES_DEFAULT, resume: None, progress: None }
    }
}

impl ExportOptions {
    /// All defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes of records in a frame: what an interruption or a damage costs at least. Default 1 MiB. A
    /// record that is longer has a frame of its own. Each frame costs 48 bytes.
    pub fn frame_bytes(mut self, bytes: usize) -> Self {
        self.frame_bytes = bytes.min(FRAME_BYTES_DEFAULT << 6);
        self
    }

    /// Go on with a stream that was interrupted: write the rest, behind its first
    /// [`bytes`](Verified::bytes) bytes. Nothing is written when it is complete.
    pub fn resume(mut self, verified: Verified) -> Self {
        self.resume = Some(verified);
        self
    }

    /// Called now and then with (records written, records of the store).
    pub fn progress(mut self, progress: Progress) -> Self {
        self.progress = Some(progress);
        self
    }
}

impl fmt::Debug for ExportOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExportOptions")
            .field("frame_bytes", &self.frame_bytes)
            .field("resume", &self.resume)
            .finish_non_exhaustive()
    }
}

impl<P: Pmem> Db<P> {
    /// Writes all records to `to`, as a stream that [`import`](Self::import) reads: docs/STREAM.md. Other
    /// sessions may go on, and are not held up. A key that is there from beginning to end is contained
    /// exactly once, with a value that it has meanwhile, whole; the stream is not of one moment.
    ///
    /// An export that was interrupted goes on where its stream ends, with
    /// [`resume`](ExportOptions::resume). A key that is there all the time, also between, is then contained
    /// at least once, and an import keeps the last value.
    ///
    /// ```
    /// use chimera::{Db, ExportOptions, ImportOptions, Options, StreamReader};
    ///
    /// # fn main() -> Result<(), chimera::Error> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let (one, other) = (directory.path().join("one"), directory.path().join("other"));
    /// let db = Db::open(&one, &Options::new().segment_bytes(1 << 20))?;
    /// db.put(b"greeting", b"hello")?;
    /// let mut stream = Vec::new();
    /// db.export(&mut stream, &ExportOptions::new())?;
    ///
    /// let mut reader = StreamReader::new(&stream[..])?;
    /// let copy = Db::open(&other, &reader.kind().options().segment_bytes(1 << 20))?;
    /// copy.import(&mut reader, &ImportOptions::new())?;
    /// assert_eq!(copy.get(b"greeting")?.as_deref(), Some(&b"hello"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::StreamIo`] when `to` fails; [`Error::Corrupted`] for a damaged record. The stream is then
    /// not complete, and says so when it is read; its whole frames can be imported. A store that was opened with
    /// salvage leaves the record out, and [`ExportReport::losses`] says so.
    /// [`Error::StreamMismatch`] when the stream to go on with is not of this store.
    ///
    /// # Durability
    /// What is written is as durable as an acknowledged write was. Syncing `to` is the caller's.
    ///
    /// # Cost
    /// Reads every record once, as [`get`](Self::get) does, and a checksum more; memory for a frame and
    /// the longest value. No lock is held while `to` is written.
    pub fn export(&self, to: &mut dyn Write, options: &ExportOptions) -> Result<ExportReport> {
        self.refuse_forked()?;
        let frame_bytes = options.frame_bytes;
        let pool_id = self.pool().superblock().pool_id;
        let mut writer = match &options.resume {
            None => {
                let stream_id = self.pool().environment.random_u64();
                let header = Header { kind: self.kind(), pool_id, stream_id };
                StreamWriter::begin(to, &header, frame_bytes)?
            }
            Some(verified) => {
                self.check_resumable(verified)?;
                if verified.is_complete() {
                    return Ok(self.report(&verified.reached, verified.records()));
                }
                StreamWriter::go_on(to, &verified.header, verified.reached, frame_bytes)
            }
        };
        let before = writer.reached.records;
        let (whole, mut listed, mut failure) = (self.len(), before, None);
        self.list(writer.reached.done_below, |record| {
            failure = writer.record(record).err();
            listed += 1;
            if let (Some(progress), 0) = (&options.progress, listed % PROGRESS_RECORDS) {
                progress(listed, whole.max(listed));
            }
            failure.is_none()
        })?;
        if let Some(failure) = failure {
            return Err(failure);
        }
        let reached = writer.finish()?;
        if let Some(progress) = &options.progress {
            progress(reached.records, reached.records);
        }
        Ok(self.report(&reached, before))
    }

    /// Whether an export of this store can go on with a stream.
    ///
    /// # Errors
    /// [`Error::StreamMismatch`] when the stream was begun from another store.
    pub fn check_resumable(&self, verified: &Verified) -> Result<()> {
        self.refuse_forked()?;
        let pool_id = self.pool().superblock().pool_id;
        if verified.header.pool_id == pool_id && verified.kind() == self.kind() {
            return Ok(());
        }
        let what = "the stream was begun from another store: go on from that one, or begin anew";
        Err(Error::StreamMismatch(what.to_owned()))
    }

    fn report(&self, reached: &StreamProgress, before: u64) -> ExportReport {
        ExportReport {
            records: reached.records,
            records_written: reached.records - before,
            frames: reached.frames,
            bytes: reached.bytes,
            losses: self.losses(),
        }
    }
}
