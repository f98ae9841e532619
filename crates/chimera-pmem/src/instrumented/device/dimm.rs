//! [`Dimm`]: buffers and media of one DIMM.

use super::super::counters::OperationCounters;
use super::media::Media;
use super::parameters::DeviceParameters;
use super::units::Units;
use crate::CACHE_LINE;

/// One DIMM.
#[derive(Debug)]
pub(super) struct Dimm {
    /// Units that are being written, until all lines are there.
    gathering: Units,
    reading: Units,
    media: Media,
    /// All lines of a unit.
    whole: u64,
    /// `u64::MAX` where nothing takes time.
    age_ps: u64,
}

impl Dimm {
    pub(super) fn new(parameters: &DeviceParameters) -> Self {
        let lines = parameters.xpline_bytes / CACHE_LINE;
        let units = |bytes: u64| Units::new((bytes / parameters.xpline_bytes) as usize);
        let read_ps = parameters.unit_ps(|timing| timing.media_read_mb_per_s);
        let write_ps = parameters.unit_ps(|timing| timing.media_write_mb_per_s);
        let age_ps = parameters.timing.map(|timing| timing.age_ns.saturating_mul(1000));
        Self {
            gathering: units(parameters.write_buffer_bytes),
            reading: units(parameters.read_buffer_bytes),
            media: Media::new(read_ps, write_ps),
            whole: u64::MAX >> (64 - lines),
            age_ps: age_ps.unwrap_or(u64::MAX),
        }
    }

    /// Takes a line; says when.
    pub(super) fn write(
        &mut self,
        unit: u64,
        line: u64,
        now_ps: u64,
        counters: &mut OperationCounters,
    ) -> u64 {
        self.write_old(now_ps, counters);
        let mut taken_ps = now_ps;
        if !self.gathering.join(unit, line, now_ps) {
            if self.gathering.is_full() {
                self.gathering.take_oldest();
                taken_ps = self.media.write_partial(now_ps);
                counters.media_writes_evicted += 1;
            }
            self.gathering.add(unit, line, taken_ps);
        }
        if self.gathering.take_if_whole(self.whole) {
            taken_ps = self.media.write_whole(taken_ps);
            counters.media_writes_full += 1;
        }
        taken_ps
    }

    /// Writes what has become old since the DIMM was used last.
    fn write_old(&mut self, now_ps: u64, counters: &mut OperationCounters) {
        while let Some(oldest) = self.gathering.oldest() {
            let old_ps = oldest.used_ps.saturating_add(self.age_ps);
            let leaves_ps = old_ps.max(self.media.takes_at_ps());
            if leaves_ps > now_ps {
                return;
            }
            self.gathering.take_oldest();
            self.media.write_partial(leaves_ps);
            counters.media_writes_aged += 1;
        }
    }

    /// Fetches a line; says when the media begins, or now if the line is in the buffer.
    pub(super) fn read(
        &mut self,
        unit: u64,
        line: u64,
        now_ps: u64,
        counters: &mut OperationCounters,
    ) -> u64 {
        if self.reading.join(unit, line, now_ps) {
            return now_ps;
        }
        if self.reading.is_full() {
            self.reading.take_oldest();
        }
        self.reading.add(unit, line, now_ps);
        counters.media_reads += 1;
        self.media.read(now_ps)
    }

    /// Writes all units that are being gathered. Whoever asks does not wait for it.
    pub(super) fn drain(&mut self, counters: &mut OperationCounters) {
        counters.media_writes_evicted += self.gathering.clear();
    }

    /// Forgets what the read buffer holds.
    pub(super) fn forget_reads(&mut self) {
        self.reading.clear();
    }
}
