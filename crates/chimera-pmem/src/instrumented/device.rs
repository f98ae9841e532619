//! [`Device`]: a model of interleaved DIMMs whose media is written in units larger than a line.
//!
//! Each DIMM has a write-combining buffer of media units (XPLines) in order of use. A line handed to
//! the DIMM joins its unit in the buffer, or takes a place there, for which the least recently used
//! unit is evicted to the media when the buffer is full. Evicting a unit of which every line was
//! handed over is one media write; any other is a read-modify-write. Two buffers run side by side:
//! the *lazy* one evicts only when room is needed, the *eager* one also as soon as a unit is whole.
//! Real devices lie between the two.
//!
//! A small read buffer of media units, also in order of use, lets the lines of one unit be fetched one
//! after the other at the cost of one media read. Neither buffer looks into the other.
//!
//! The default sizes are those of first-generation Optane DIMMs: units of 256 bytes and 16 KiB of
//! buffer per DIMM, 4 KiB interleaving over six DIMMs (Viper, PVLDB 2021, section 2.1 and Figure 2).

use std::sync::Mutex;

use super::counters::OperationCounters;
use super::lock;
use crate::CACHE_LINE;

/// Parameters of the device model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
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
}

impl Default for DeviceParameters {
    fn default() -> Self {
        Self {
            dimms: 6,
            interleave_bytes: 4096,
            xpline_bytes: 256,
            write_buffer_bytes: 16 << 10,
            read_buffer_bytes: 16 << 10,
        }
    }
}

impl DeviceParameters {
    fn validate(&self) {
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
}

/// The DIMMs. Thread-safe: each has its own lock.
#[derive(Debug)]
pub(super) struct Device {
    parameters: DeviceParameters,
    dimms: Vec<Mutex<Dimm>>,
}

#[derive(Debug)]
struct Dimm {
    lazy: Buffer,
    eager: Buffer,
    read: Buffer,
}

impl Device {
    pub(super) fn new(parameters: DeviceParameters) -> Self {
        parameters.validate();
        let lines = parameters.xpline_bytes / CACHE_LINE;
        let whole = u64::MAX >> (64 - lines);
        let write_units = (parameters.write_buffer_bytes / parameters.xpline_bytes) as usize;
        let read_units = (parameters.read_buffer_bytes / parameters.xpline_bytes) as usize;
        let dimm = || Dimm {
            lazy: Buffer::new(write_units, whole),
            eager: Buffer::new(write_units, whole),
            read: Buffer::new(read_units, whole),
        };
        Self { parameters, dimms: (0..parameters.dimms).map(|_| Mutex::new(dimm())).collect() }
    }

    pub(super) fn parameters(&self) -> &DeviceParameters {
        &self.parameters
    }

    pub(super) fn dimms(&self) -> usize {
        self.dimms.len()
    }

    /// Hands a line over to be written; says which DIMM took it.
    pub(super) fn write(&self, line: u64, counters: &mut OperationCounters) -> usize {
        let (index, unit, bit) = self.place(line);
        let mut dimm = lock(&self.dimms[index]);
        match dimm.lazy.put(unit, bit) {
            Put::Placed(Some(Evicted::Whole)) => counters.media_writes_full_lazy += 1,
            Put::Placed(Some(Evicted::Partial)) => counters.media_writes_partial_lazy += 1,
            Put::Placed(None) | Put::Joined => {}
        }
        match dimm.eager.put(unit, bit) {
            Put::Placed(Some(Evicted::Whole)) => counters.media_writes_full_eager += 1,
            Put::Placed(Some(Evicted::Partial)) => counters.media_writes_partial_eager += 1,
            Put::Placed(None) | Put::Joined => {}
        }
        counters.media_writes_full_eager += u64::from(dimm.eager.take_if_whole());
        index
    }

    /// Fetches a line; says which DIMM had it.
    pub(super) fn read(&self, line: u64, counters: &mut OperationCounters) -> usize {
        let (index, unit, bit) = self.place(line);
        let mut dimm = lock(&self.dimms[index]);
        counters.media_reads += u64::from(dimm.read.put(unit, bit) != Put::Joined);
        index
    }

    /// Writes out what the write buffers hold.
    pub(super) fn drain(&self, counters: &mut OperationCounters) {
        for dimm in &self.dimms {
            let mut dimm = lock(dimm);
            let (whole, partial) = dimm.lazy.drain();
            counters.media_writes_full_lazy += whole;
            counters.media_writes_partial_lazy += partial;
            let (whole, partial) = dimm.eager.drain();
            counters.media_writes_full_eager += whole;
            counters.media_writes_partial_eager += partial;
        }
    }

    /// Forgets what the read buffers hold.
    pub(super) fn forget_reads(&self) {
        for dimm in &self.dimms {
            lock(dimm).read.drain();
        }
    }

    /// The DIMM of a line, its media unit, and its bit inside the unit.
    fn place(&self, line: u64) -> (usize, u64, u64) {
        let offset = line * CACHE_LINE;
        let unit = offset / self.parameters.xpline_bytes;
        let bit = 1 << (offset % self.parameters.xpline_bytes / CACHE_LINE);
        (self.parameters.dimm_of(offset) as usize, unit, bit)
    }
}

/// How complete a unit was when it left a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evicted {
    Whole,
    Partial,
}

/// Media units, the most recently used one first, each with the lines of it that are present.
#[derive(Debug)]
pub(super) struct Buffer {
    units: Vec<Held>,
    capacity: usize,
    whole: u64,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    unit: u64,
    present: u64,
}

/// What adding a line to a buffer did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// The unit was there already.
    Joined,
    /// The unit took a free place, or that of another one.
    Placed(Option<Evicted>),
}

impl Buffer {
    pub(super) fn new(capacity: usize, whole: u64) -> Self {
        Self { units: Vec::with_capacity(capacity), capacity, whole }
    }

    /// Adds a line of a unit and makes the unit the most recently used one.
    pub(super) fn put(&mut self, unit: u64, bit: u64) -> Put {
        if let Some(at) = self.units.iter().position(|held| held.unit == unit) {
            self.units[..=at].rotate_right(1);
            self.units[0].present |= bit;
            return Put::Joined;
        }
        let full = self.units.len() == self.capacity;
        let evicted = if full { self.units.pop() } else { None };
        self.units.insert(0, Held { unit, present: bit });
        Put::Placed(evicted.map(|held| self.evicted(held)))
    }

    /// Takes the most recently used unit out if all its lines are present.
    pub(super) fn take_if_whole(&mut self) -> bool {
        let whole = self.units.first().is_some_and(|held| held.present == self.whole);
        if whole {
            self.units.remove(0);
        }
        whole
    }

    /// Takes everything out: how many whole units and how many others.
    pub(super) fn drain(&mut self) -> (u64, u64) {
        let all = self.units.len() as u64;
        let whole = self.units.iter().filter(|held| held.present == self.whole).count() as u64;
        self.units.clear();
        (whole, all - whole)
    }

    fn evicted(&self, held: Held) -> Evicted {
        if held.present == self.whole { Evicted::Whole } else { Evicted::Partial }
    }
}
