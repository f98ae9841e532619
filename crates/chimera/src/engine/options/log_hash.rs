//! [`LogHashOptions`]: what of a store's options is that of a log with one hash table.

/// What of a store's options is that of `pmem-hash` and `dram-hash`. See [`Options::log_hash`](crate::Options::log_hash).
#[derive(Clone, Debug, Default)]
#[must_use]
#[expect(clippy::struct_field_names, reason = "units are a part of names")]
pub struct LogHashOptions {
    pub(in crate::engine) index_segment_bytes: Option<u32>,
    pub(in crate::engine) log_run_bytes: Option<u32>,
    pub(in crate::engine) log_batch_bytes: u32,
}

impl LogHashOptions {
    /// Bytes of a segment of the index of `pmem-hash`, rounded up to whole blocks: from 256 to 1 MiB. Default 16 KiB. Fixed
    /// at creation.
    pub fn index_segment_bytes(mut self, bytes: u32) -> Self {
        self.index_segment_bytes = Some(bytes);
        self
    }

    /// Bytes of a run of the storage log, rounded up to whole blocks. Default 256 KiB, at most a quarter of a segment of the
    /// pool. Each session appends to a run of its own. Fixed at creation.
    pub fn log_run_bytes(mut self, bytes: u32) -> Self {
        self.log_run_bytes = Some(bytes);
        self
    }

    /// Bytes of records that a session of `dram-hash` appends before they are made durable, all at once: see
    /// [`ChameleonOptions::log_batch_bytes`](crate::ChameleonOptions::log_batch_bytes). `pmem-hash` persists each write, as
    /// published, whatever this says. Default 0: none. May change at every open.
    pub fn log_batch_bytes(mut self, bytes: u32) -> Self {
        self.log_batch_bytes = bytes;
        self
    }
}
