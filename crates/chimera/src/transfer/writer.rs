//! [`StreamWriter`]: frames, one after the other.

use std::io::Write;

use zerocopy::IntoBytes;
use zerocopy::little_endian::U64;

use super::format::{End, Frame, FrameKind, Header, content_checksum, record_head};
use crate::engine::contract::listed::Listed;
use crate::types::error::{Error, Result};

/// How far one has come in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamProgress {
    pub(super) bytes: u64,
    /// Of records.
    pub(super) frames: u64,
    pub(super) records: u64,
    /// Of all heads so far.
    pub(super) digest: u64,
    pub(super) done_below: u64,
}

/// Writes a stream.
pub(super) struct StreamWriter<'a> {
    to: &'a mut dyn Write,
    stream_id: u64,
    pub(super) reached: StreamProgress,
    /// A frame is written when its content would become longer.
    frame_bytes: usize,
    /// Of the next frame.
    content: Vec<u8>,
    records: u32,
    done_below: u64,
}

impl<'a> StreamWriter<'a> {
    /// Begins a stream.
    ///
    /// # Errors
    /// `StreamIo`.
    pub(super) fn begin(
        to: &'a mut dyn Write,
        header: &Header,
        frame_bytes: usize,
    ) -> Result<Self> {
        let bytes = header.encode();
        to.write_all(&bytes).map_err(failed)?;
        let reached = StreamProgress {
            bytes: bytes.len() as u64,
            frames: 0,
            records: 0,
            digest: header.digest(),
            done_below: 0,
        };
        Ok(Self::go_on(to, header, reached, frame_bytes))
    }

    /// Goes on behind the whole frames of a stream.
    pub(super) fn go_on(
        to: &'a mut dyn Write,
        header: &Header,
        reached: StreamProgress,
        frame_bytes: usize,
    ) -> Self {
        let done_below = reached.done_below;
        let stream_id = header.stream_id;
        Self { to, stream_id, reached, frame_bytes, content: Vec::new(), records: 0, done_below }
    }

    /// Adds a record.
    ///
    /// # Errors
    /// `StreamIo`.
    pub(super) fn record(&mut self, listed: &Listed<'_>) -> Result<()> {
        let head = record_head(listed.key, listed.value);
        let parts = [&head[..], listed.key, listed.value];
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        if self.records > 0 && self.content.len() + bytes > self.frame_bytes {
            self.write_records()?;
        }
        self.done_below = listed.done_below;
        self.records += 1;
        if bytes > self.frame_bytes {
            // A frame of its own, without a copy.
            return self.write(FrameKind::Records, &parts);
        }
        for part in parts {
            self.content.extend_from_slice(part);
        }
        Ok(())
    }

    /// Writes what is left, and the end.
    ///
    /// # Errors
    /// `StreamIo`.
    pub(super) fn finish(mut self) -> Result<StreamProgress> {
        if self.records > 0 {
            self.write_records()?;
        }
        let StreamProgress { records, digest, .. } = self.reached;
        let end = End { records: U64::new(records), digest: U64::new(digest) };
        self.done_below = u64::MAX;
        self.write(FrameKind::End, &[end.as_bytes()])?;
        self.to.flush().map_err(failed)?;
        Ok(self.reached)
    }

    fn write_records(&mut self) -> Result<()> {
        let mut content = std::mem::take(&mut self.content);
        self.write(FrameKind::Records, &[&content])?;
        content.clear();
        self.content = content;
        Ok(())
    }

    /// Writes a frame with this content.
    fn write(&mut self, kind: FrameKind, parts: &[&[u8]]) -> Result<()> {
        let content_bytes = parts.iter().map(|part| part.len() as u64).sum();
        let frame = Frame {
            kind,
            records: self.records,
            number: self.reached.frames,
            content_bytes,
            done_below: self.done_below,
            content_checksum: content_checksum(self.stream_id, parts),
        };
        let (head, digest) = frame.encode(self.reached.digest);
        self.to.write_all(&head).map_err(failed)?;
        parts.iter().try_for_each(|part| self.to.write_all(part)).map_err(failed)?;
        self.reached.bytes += head.len() as u64 + content_bytes;
        self.reached.digest = digest;
        self.reached.done_below = self.done_below;
        self.reached.records += u64::from(self.records);
        self.reached.frames += u64::from(kind == FrameKind::Records);
        self.records = 0;
        Ok(())
    }
}

fn failed(source: std::io::Error) -> Error {
    Error::StreamIo { action: "write", source }
}
