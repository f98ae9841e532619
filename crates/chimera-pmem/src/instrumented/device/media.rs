//! [`Media`]: what is behind the buffers of a DIMM, in modelled time.

/// The media of one DIMM. It reads one unit at a time and writes one unit at a time. So while a unit is being written, the
/// next one may be read that a partial write has to complete. No further unit is taken meanwhile.
#[derive(Debug)]
pub(super) struct Media {
    /// Picoseconds to read a unit.
    read: u64,
    /// Picoseconds to write a unit.
    write: u64,
    /// When the last read ends.
    read_free_ps: u64,
    /// When the last two units that were taken to be written are done; the earlier one first.
    written_ps: [u64; 2],
}

impl Media {
    pub(super) fn new(read_ps: u64, write_ps: u64) -> Self {
        Self { read: read_ps, write: write_ps, read_free_ps: 0, written_ps: [0; 2] }
    }

    /// Reads a unit; says when the read begins.
    pub(super) fn read(&mut self, now_ps: u64) -> u64 {
        let begins_ps = now_ps.max(self.read_free_ps);
        self.read_free_ps = begins_ps + self.read;
        begins_ps
    }

    /// When another unit can be taken to be written.
    pub(super) fn takes_at_ps(&self) -> u64 {
        self.written_ps[0]
    }

    /// Writes a unit all of whose lines are there; says when the unit is taken.
    pub(super) fn write_whole(&mut self, now_ps: u64) -> u64 {
        let taken_ps = now_ps.max(self.takes_at_ps());
        self.write(taken_ps);
        taken_ps
    }

    /// Reads a unit and writes it, because some of its lines are missing; says when the unit is taken.
    pub(super) fn write_partial(&mut self, now_ps: u64) -> u64 {
        let taken_ps = now_ps.max(self.takes_at_ps());
        let read_ps = self.read(taken_ps) + self.read;
        self.write(read_ps);
        taken_ps
    }

    fn write(&mut self, ready_ps: u64) {
        let [_, before_ps] = self.written_ps;
        self.written_ps = [before_ps, ready_ps.max(before_ps) + self.write];
    }
}
