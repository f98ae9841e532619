//! [`Output`]: standard output. A closed pipe is a clean end, never a panic.

use std::fmt::Display;
use std::io::{self, BufWriter, Stdout, Write};

use serde::Serialize;

use crate::failure::Failure;

/// Buffered standard output.
pub(crate) struct Output {
    writer: BufWriter<Stdout>,
}

impl Output {
    pub(crate) fn new() -> Self {
        Self { writer: BufWriter::new(io::stdout()) }
    }

    /// Writes a line.
    ///
    /// # Errors
    /// `OutputClosed` when the reader has gone; what the system said otherwise.
    pub(crate) fn line(&mut self, line: impl Display) -> Result<(), Failure> {
        writeln!(self.writer, "{line}").map_err(failed)
    }

    /// Writes bytes as they are.
    ///
    /// # Errors
    /// As [`line`](Self::line).
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.writer.write_all(bytes).map_err(failed)
    }

    /// Writes a value as one line of JSON, whole or not at all.
    ///
    /// # Errors
    /// As [`line`](Self::line); when the value has no form in JSON.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let mut line = serde_json::to_vec(value).map_err(|error| Failure::Io {
            action: "write the report as JSON",
            source: error.into(),
        })?;
        line.push(b'\n');
        self.bytes(&line)
    }

    /// Sends on what is still in the buffer.
    ///
    /// # Errors
    /// As [`line`](Self::line).
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        self.writer.flush().map_err(failed)
    }
}

fn failed(source: io::Error) -> Failure {
    match source.kind() {
        io::ErrorKind::BrokenPipe => Failure::OutputClosed,
        _ => Failure::Io { action: "write to standard output", source },
    }
}
