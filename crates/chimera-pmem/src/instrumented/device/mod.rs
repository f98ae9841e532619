//! [`Device`]: a model of interleaved DIMMs whose media is written in units larger than a line.
//!
//! Each DIMM has a write-combining buffer of media units (XPLines), which all threads share. A line that is written joins its
//! unit there, or takes a place for it. A unit goes to the media
//! - when it is *whole*: all its lines have been written. The media writes it.
//! - when it is *evicted*: another unit needs a place, and it is the least recently used one. It is partial, so the media reads
//!   it and writes it.
//! - when it is *old*: nothing was added to it for some time. The media reads it and writes it as soon as it is free.
//!
//! The media takes two units at a time: one is being written while the next one is read. A line waits only where it makes a
//! unit leave and the media cannot take that unit yet. All waiting follows from this.
//!
//! A read buffer of media units lets the lines of one unit be fetched one after the other at the cost of one media read.
//! Neither buffer looks into the other.
//!
//! Time is an argument, in picoseconds from any beginning, and never goes back by much: threads may come in a slightly
//! different order. Without [`Timing`] nothing takes time and no unit becomes old, and only counts are of interest.
//!
//! docs/DEVICE-MODEL.md has the sources of all constants, and what the model gives for published measurements.

mod dimm;
mod media;
mod parameters;
mod units;

#[cfg(test)]
mod tests;

use std::sync::Mutex;

use super::counters::OperationCounters;
use super::lock;
use crate::CACHE_LINE;
use dimm::Dimm;
pub use parameters::{DeviceParameters, Timing};

/// Where a line was written or read, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The DIMM.
    pub dimm: usize,
    /// Of a write: when the line is in the buffer, which makes it durable. Of a read: when the media begins.
    pub at_ps: u64,
}

/// The DIMMs. Thread-safe: each has its own lock.
#[derive(Debug)]
pub struct Device {
    parameters: DeviceParameters,
    dimms: Vec<Mutex<Dimm>>,
}

impl Device {
    /// A device with empty buffers.
    ///
    /// # Panics
    /// When the parameters make no sense, as their documentation says.
    #[must_use]
    pub fn new(parameters: DeviceParameters) -> Self {
        parameters.validate();
        let dimm = |_| Mutex::new(Dimm::new(&parameters));
        Self { parameters, dimms: (0..parameters.dimms).map(dimm).collect() }
    }

    /// How it is built.
    pub fn parameters(&self) -> &DeviceParameters {
        &self.parameters
    }

    pub(super) fn dimms(&self) -> usize {
        self.dimms.len()
    }

    /// Writes a line, by its number.
    pub fn write(&self, line: u64, now_ps: u64, counters: &mut OperationCounters) -> Access {
        let (dimm, unit, bit) = self.place(line);
        let at_ps = lock(&self.dimms[dimm]).write(unit, bit, now_ps, counters);
        Access { dimm, at_ps }
    }

    /// Reads a line, by its number.
    pub fn read(&self, line: u64, now_ps: u64, counters: &mut OperationCounters) -> Access {
        let (dimm, unit, bit) = self.place(line);
        let at_ps = lock(&self.dimms[dimm]).read(unit, bit, now_ps, counters);
        Access { dimm, at_ps }
    }

    /// Writes out what the write buffers hold, all of it partial units. Takes no time.
    pub fn drain(&self, counters: &mut OperationCounters) {
        self.dimms.iter().for_each(|dimm| lock(dimm).drain(counters));
    }

    /// Forgets what the read buffers hold.
    pub(super) fn forget_reads(&self) {
        self.dimms.iter().for_each(|dimm| lock(dimm).forget_reads());
    }

    /// The DIMM of a line, its media unit, and its bit inside the unit.
    fn place(&self, line: u64) -> (usize, u64, u64) {
        let offset = line * CACHE_LINE;
        let unit = offset / self.parameters.xpline_bytes;
        let bit = 1 << (offset % self.parameters.xpline_bytes / CACHE_LINE);
        (self.parameters.dimm_of(offset) as usize, unit, bit)
    }
}
