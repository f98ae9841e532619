//! [`Demand`]: how large a pool must be for what is to be kept in it.

/// What a store is to keep and to take in, for [`Options::pool_bytes_for`](crate::Options::pool_bytes_for).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Most records that are live at a time.
    pub live: u64,
    /// How many of these are overwritten in random order, again and again.
    pub rewritten: u64,
    /// Records that are written in all, by inserts and overwrites; the first update in place of a record is an
    /// overwrite.
    pub written: u64,
    /// Bytes of a key, or their mean. Not used with [`Options::fixed_size`](crate::Options::fixed_size).
    pub key_bytes: u32,
    /// Bytes of a value, or their mean. Not used with [`Options::fixed_size`](crate::Options::fixed_size).
    pub value_bytes: u32,
    /// Sessions that write at the same time.
    pub sessions: u64,
}

/// Bytes for `demand` in a log that is written once: half as much again as the records, and room for each
/// session.
pub(crate) fn log_bytes(demand: &Demand) -> u64 {
    const HEADER_BYTES: u64 = 40;
    const SESSION_BYTES: u64 = 1 << 20;
    let record_bytes = HEADER_BYTES + u64::from(demand.key_bytes) + u64::from(demand.value_bytes);
    let records = demand.written.saturating_mul(record_bytes + record_bytes / 2);
    records.saturating_add((1 + demand.sessions).saturating_mul(SESSION_BYTES))
}
