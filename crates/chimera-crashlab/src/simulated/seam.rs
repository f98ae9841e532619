//! [`Simulated`]: the seam of a simulated machine.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use chimera_pmem::environment::File;
use chimera_pmem::{CACHE_LINE, Extent, Medium, Operation, Pmem, Site};

use super::event::{Event, Order};
use super::files::address;
use super::machine::Machine;

/// Persistent memory of which a crash leaves what hardware may leave.
#[derive(Debug)]
pub struct Simulated {
    machine: Arc<Machine>,
}

impl Simulated {
    pub(crate) fn new(machine: &Arc<Machine>) -> Self {
        Self { machine: machine.clone() }
    }

    /// A step that stores; which thread makes it.
    #[inline]
    fn store_step(&self, site: Site) -> u8 {
        self.machine.before_store(site);
        self.machine.step(site.name())
    }

    /// A step that makes stores durable, now or later; which thread makes it.
    #[inline]
    fn flush_step(&self, site: Site) -> u8 {
        self.machine.before_change();
        self.machine.step(site.name())
    }

    fn note_read(&self, at: u64, length: u64, thread: u8) {
        if self.machine.records_reads() {
            let (first, count) = ((at / 8) as u32, length.div_ceil(8) as u32);
            self.machine.note(Event::Read { first, count, thread });
        }
    }

    fn store_bytes(&self, to: Extent, bytes: &[u8], order: Order, thread: u8, site: Site) {
        for (number, chunk) in bytes.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            let at = to.offset() + 8 * number as u64;
            self.machine.store(at, u64::from_le_bytes(word), order, thread, site);
        }
    }
}

impl Pmem for Simulated {
    fn map(&self, at: u64, file: &Arc<dyn File>, file_offset: u64, length: u64) -> io::Result<()> {
        assert!(
            at == self.machine.mapped() && (file_offset == 0 || file_offset == at),
            "files are mapped in order: whole, or as parts of a device"
        );
        if (at + length) / 8 > self.machine.len() as u64 {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.machine.set_mapped(at + length);
        let address = address(file);
        let mut state = self.machine.state();
        if state.fresh.contains(&address) {
            state.fresh.retain(|fresh| *fresh != address);
            if self.machine.is_off() {
                // What a dead process still does changes nothing.
                return Ok(());
            }
            let (first, count) = ((at / 8) as u32, (length / 8) as u32);
            for word in first..first + count {
                if self.machine.peek(word) != 0 {
                    self.machine.patch(&mut state, word, 0);
                }
            }
            state.push(Event::MapFresh { first, count });
        }
        Ok(())
    }

    #[inline]
    fn mapped(&self) -> u64 {
        self.machine.mapped()
    }

    fn populate(&self, at: u64, length: u64) -> io::Result<()> {
        self.machine.state().populated.push(at..at + length);
        Ok(())
    }

    fn medium(&self) -> Medium {
        Medium::Simulated
    }

    #[inline]
    fn load_u64(&self, at: u64) -> u64 {
        let thread = self.machine.step("load");
        self.note_read(at, 8, thread);
        self.machine.range(at, 8)[0].load(Ordering::Acquire)
    }

    fn store_u64(&self, at: u64, value: u64, site: Site) {
        let thread = self.store_step(site);
        self.machine.store(at, value, Order::Ordered, thread, site);
    }

    fn cas_u64(&self, at: u64, current: u64, new: u64, site: Site) -> Result<u64, u64> {
        let thread = self.store_step(site);
        self.note_read(at, 8, thread);
        let [found] = self.machine.swap(at, [current], [new], thread, site);
        if found == current { Ok(found) } else { Err(found) }
    }

    fn cas_u128(&self, at: u64, current: u128, new: u128, site: Site) -> Result<u128, u128> {
        assert!(at.is_multiple_of(16), "16-byte compare and swap at offset {at}");
        let thread = self.store_step(site);
        self.note_read(at, 16, thread);
        let halves = |whole: u128| [whole as u64, (whole >> 64) as u64];
        let [low, high] = self.machine.swap(at, halves(current), halves(new), thread, site);
        let found = u128::from(low) | u128::from(high) << 64;
        if found == current { Ok(found) } else { Err(found) }
    }

    fn read(&self, from: Extent, into: &mut [u8]) {
        assert!(into.len() as u64 <= from.length(), "read of {} bytes from {from:?}", into.len());
        let thread = self.machine.step("read");
        self.note_read(from.offset(), into.len() as u64, thread);
        let words = self.machine.range(from.offset(), into.len() as u64);
        for (chunk, word) in into.chunks_mut(8).zip(words) {
            let word = word.load(Ordering::Relaxed).to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }

    fn compare(&self, with: Extent, bytes: &[u8]) -> bool {
        assert!(bytes.len() as u64 <= with.length(), "compare of {} with {with:?}", bytes.len());
        let thread = self.machine.step("compare");
        self.note_read(with.offset(), bytes.len() as u64, thread);
        let words = self.machine.range(with.offset(), bytes.len() as u64);
        bytes
            .chunks(8)
            .zip(words)
            .all(|(chunk, word)| word.load(Ordering::Relaxed).to_le_bytes().starts_with(chunk))
    }

    /// A place where another thread may go on: between finding a record and looking at it.
    fn prefetch(&self, _range: Extent) {
        self.machine.step("prefetch");
    }

    fn prefetch_write(&self, _range: Extent) {}

    fn copy(&self, to: Extent, bytes: &[u8], site: Site) {
        assert!(bytes.len() as u64 <= to.length(), "copy of {} bytes to {to:?}", bytes.len());
        let thread = self.store_step(site);
        self.store_bytes(to, bytes, Order::Unordered, thread, site);
    }

    fn copy_nt(&self, to: Extent, bytes: &[u8], site: Site) {
        let length = bytes.len() as u64;
        assert!(length <= to.length(), "copy of {length} bytes to {to:?}");
        let whole = to.offset().is_multiple_of(CACHE_LINE) && length.is_multiple_of(CACHE_LINE);
        assert!(whole, "copy past the cache of {length} bytes to {to:?}: not whole lines");
        let thread = self.store_step(site);
        self.store_bytes(to, bytes, Order::NonTemporal, thread, site);
        self.machine.flush(Extent::new_checked(to.offset(), length), thread, site);
    }

    fn zero(&self, range: Extent, site: Site) {
        let thread = self.store_step(site);
        for at in (range.offset()..range.end()).step_by(8) {
            self.machine.store(at, 0, Order::Unordered, thread, site);
        }
    }

    fn flush(&self, range: Extent, site: Site) {
        let thread = self.flush_step(site);
        self.machine.flush(range, thread, site);
    }

    fn fence(&self, site: Site) {
        let thread = self.flush_step(site);
        self.machine.note(Event::Fence { thread, site });
    }

    fn publish(&self, at: u64, value: u64, depends_on: &[Extent], site: Site) {
        let thread = self.store_step(site);
        self.note_publish(depends_on, thread, site);
        self.machine.store(at, value, Order::Ordered, thread, site);
    }

    fn publish_cas(
        &self,
        at: u64,
        current: u64,
        new: u64,
        depends_on: &[Extent],
        site: Site,
    ) -> Result<u64, u64> {
        let thread = self.store_step(site);
        self.note_read(at, 8, thread);
        if self.machine.range(at, 8)[0].load(Ordering::Relaxed) == current {
            self.note_publish(depends_on, thread, site);
        }
        let [found] = self.machine.swap(at, [current], [new], thread, site);
        if found == current { Ok(found) } else { Err(found) }
    }

    /// Stores zeros: they last once they are flushed, or when the machine is so inclined.
    fn punch(&self, range: Extent, site: Site) -> io::Result<bool> {
        self.zero(range, site);
        Ok(true)
    }

    fn sync_punched(&self, _site: Site) -> io::Result<()> {
        Ok(())
    }

    /// Nothing is left to do: what was fenced is durable.
    fn sync(&self, site: Site) -> io::Result<()> {
        self.flush_step(site);
        self.machine.state().see("sync", site);
        Ok(())
    }

    fn operation_begin(&self, operation: Operation, _session: u32) {
        let thread = self.machine.step("begin");
        self.machine.note(Event::Begin { thread, operation });
    }

    fn withdrawn(&self, range: Extent) {
        self.machine.step("withdrawn");
        self.machine.note(Event::Withdrawn { range });
    }

    fn operation_rereads(&self) {
        let thread = self.machine.step("reread");
        self.machine.note(Event::Reread { thread });
    }

    fn operation_decided(&self) {
        self.machine.step("decided");
        self.machine.note(Event::Decided);
    }

    fn skips(&self, step: Site) -> bool {
        self.machine.skips(step)
    }

    fn operation_acknowledge(&self) {
        let thread = self.machine.step("acknowledge");
        self.machine.note(Event::Acknowledge { thread });
    }
}

impl Simulated {
    fn note_publish(&self, depends_on: &[Extent], thread: u8, site: Site) {
        for depends_on in depends_on {
            self.machine.note(Event::Publish { depends_on: *depends_on, thread, site });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use chimera_pmem::environment::{FileProvider, OpenMode};

    use super::*;
    use crate::simulated::{Memory, SimulatedFiles};

    const SITE: Site = Site::new("test");

    #[test]
    fn only_a_process_that_lives_finds_zeros_in_a_new_file() {
        let machine = Machine::new(8192);
        let files = SimulatedFiles(machine.clone());
        let new_file = |name: &str| {
            let file = files.open(Path::new(name), OpenMode::CreateNew).expect("a file");
            file.allocate(0, 4096).expect("room");
            file
        };
        // In its second half: the first one is mapped by each process.
        let begin = |name: &str, memory: Memory| {
            machine.start(1000);
            machine.remember(memory);
            let pmem = Simulated::new(&machine);
            machine.set_mapped(4096);
            pmem.map(4096, &new_file(name), 0, 4096).expect("mapped");
            pmem
        };
        begin("one", Memory::Trace).store_u64(4096, 7, SITE);
        assert_eq!(machine.peek(512), 7);
        begin("two", Memory::Off);
        assert_eq!(machine.peek(512), 7, "a dead process changes nothing");
        begin("three", Memory::Trace);
        assert_eq!(machine.peek(512), 0);
    }
}
