//! [`DeviceParameters`]: how a modelled device is built, and [`Timing`]: how long what it does takes.

use crate::CACHE_LINE;

/// Parameters of the device model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct DeviceParameters {
    /// DIMMs. Default 6.
    pub dimms: u32,
    /// Bytes on one DIMM before the next one begins; a multiple of the media unit. Default 4096.
    pub interleave_bytes: u64,
    /// Bytes per media unit: a multiple of 64, at most 4096. Default 256; 64 for media without a
    /// larger unit, on which no write is a read-modify-write.
    pub xpline_bytes: u64,
    /// Bytes of write-combining buffer per DIMM, at least one unit. Default 16 KiB, 64 units.
    pub write_buffer_bytes: u64,
    /// Bytes of read buffer per DIMM, at least one unit. Default 16 KiB, 64 units.
    pub read_buffer_bytes: u64,
    /// How long accesses take. `None`, the default, counts them and takes no time.
    pub timing: Option<Timing>,
}

/// Times of a device. Latencies are added to what the machine itself takes, whose memory is DRAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Timing {
    /// Added to a call that misses, if its first unit is neither the last one that the thread missed nor next to it.
    pub read_random_ns: u32,
    /// Added to any other call that misses.
    pub read_sequential_ns: u32,
    /// Added to each persist: a fence with flushes or copies past the cache before it.
    pub persist_ns: u32,
    /// Bandwidth of one DIMM's media for reads, in 10^6 bytes per second; 0 for no limit.
    pub media_read_mb_per_s: u32,
    /// Bandwidth of one DIMM's media for writes, in 10^6 bytes per second; 0 for no limit.
    pub media_write_mb_per_s: u32,
    /// A unit of which some lines were written, and none for so long, leaves the write buffer as soon as the media is free.
    pub age_ns: u64,
}

impl Default for DeviceParameters {
    fn default() -> Self {
        Self {
            dimms: 6,
            interleave_bytes: 4096,
            xpline_bytes: 256,
            write_buffer_bytes: 16 << 10,
            read_buffer_bytes: 16 << 10,
            timing: None,
        }
    }
}

impl DeviceParameters {
    pub(super) fn validate(&self) {
        assert!(self.dimms > 0, "a device has at least one DIMM");
        assert!(
            self.xpline_bytes > 0
                && self.xpline_bytes.is_multiple_of(CACHE_LINE)
                && self.xpline_bytes <= 64 * CACHE_LINE,
            "a media unit is 1 to 64 whole cache lines"
        );
        assert!(
            self.interleave_bytes > 0 && self.interleave_bytes.is_multiple_of(self.xpline_bytes),
            "interleaving is by whole media units"
        );
        assert!(
            self.write_buffer_bytes >= self.xpline_bytes
                && self.read_buffer_bytes >= self.xpline_bytes,
            "a buffer has room for at least one media unit"
        );
    }

    /// The DIMM that holds the byte at an offset of the pool.
    pub fn dimm_of(&self, offset: u64) -> u32 {
        (offset / self.interleave_bytes % u64::from(self.dimms)) as u32
    }

    /// The same device, counting only.
    #[must_use]
    pub fn untimed(self) -> Self {
        Self { timing: None, ..self }
    }

    /// Picoseconds that the media takes for a unit.
    pub(super) fn unit_ps(&self, bandwidth_mb_per_s: impl Fn(&Timing) -> u32) -> u64 {
        let mb_per_s = self.timing.as_ref().map_or(0, bandwidth_mb_per_s);
        (self.xpline_bytes * 1_000_000).checked_div(u64::from(mb_per_s)).unwrap_or(0)
    }
}

impl Timing {
    /// Whether it matters which reads miss, and which flushes have something to write.
    pub(in super::super) fn needs_cache(&self) -> bool {
        let latency_ns = self.read_random_ns.max(self.read_sequential_ns);
        latency_ns > 0 || self.media_read_mb_per_s > 0 || self.media_write_mb_per_s > 0
    }
}
