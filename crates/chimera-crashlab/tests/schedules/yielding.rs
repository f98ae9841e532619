//! [`Yielding`]: anonymous memory in which every word is a place for threads to take turns.

use std::io;
use std::sync::Arc;

use chimera::pmem::environment::File;
use chimera::pmem::{Extent, FlushChoice, Hardware, HardwareOptions, Medium, Pmem, Site};
use shuttle::sync::atomic::{AtomicBool, Ordering};

/// [`Hardware`], with a turn before every word that is loaded or stored and before everything else.
pub(crate) struct Yielding {
    hardware: Hardware,
    /// Loading it is a turn. It never changes.
    turn: AtomicBool,
}

impl Yielding {
    pub(crate) fn new() -> Self {
        let options = HardwareOptions { flush: FlushChoice::Never, ..HardwareOptions::default() };
        let hardware = Hardware::new(options).expect("address space");
        Self { hardware, turn: AtomicBool::new(false) }
    }

    fn turn(&self) {
        let _ = self.turn.load(Ordering::SeqCst);
    }

    /// The words of a range of `bytes` bytes, with a turn before each.
    fn words(
        &self,
        range: Extent,
        bytes: usize,
    ) -> impl Iterator<Item = (Extent, std::ops::Range<usize>)> {
        (0..bytes).step_by(8).map(move |start| {
            self.turn();
            let end = (start + 8).min(bytes);
            let at = range.offset() + start as u64;
            (self.hardware.check(at, (end - start) as u64).expect("inside"), start..end)
        })
    }
}

impl Pmem for Yielding {
    fn map(&self, at: u64, file: &Arc<dyn File>, file_offset: u64, length: u64) -> io::Result<()> {
        self.turn();
        self.hardware.map(at, file, file_offset, length)
    }

    fn mapped(&self) -> u64 {
        self.hardware.mapped()
    }

    fn populate(&self, at: u64, length: u64) -> io::Result<()> {
        self.turn();
        self.hardware.populate(at, length)
    }

    fn medium(&self) -> Medium {
        self.hardware.medium()
    }

    fn load_u64(&self, at: u64) -> u64 {
        self.turn();
        self.hardware.load_u64(at)
    }

    fn store_u64(&self, at: u64, value: u64, site: Site) {
        self.turn();
        self.hardware.store_u64(at, value, site);
    }

    fn cas_u64(&self, at: u64, current: u64, new: u64, site: Site) -> Result<u64, u64> {
        self.turn();
        self.hardware.cas_u64(at, current, new, site)
    }

    fn cas_u128(&self, at: u64, current: u128, new: u128, site: Site) -> Result<u128, u128> {
        self.turn();
        self.hardware.cas_u128(at, current, new, site)
    }

    fn read(&self, from: Extent, into: &mut [u8]) {
        for (word, range) in self.words(from, into.len()) {
            self.hardware.read(word, &mut into[range]);
        }
    }

    fn compare(&self, with: Extent, bytes: &[u8]) -> bool {
        self.words(with, bytes.len())
            .all(|(word, range)| self.hardware.compare(word, &bytes[range]))
    }

    fn prefetch(&self, _range: Extent) {
        self.turn();
    }

    fn prefetch_write(&self, _range: Extent) {
        self.turn();
    }

    fn copy(&self, to: Extent, bytes: &[u8], site: Site) {
        for (word, range) in self.words(to, bytes.len()) {
            self.hardware.copy(word, &bytes[range], site);
        }
    }

    fn copy_nt(&self, to: Extent, bytes: &[u8], site: Site) {
        self.turn();
        self.hardware.copy_nt(to, bytes, site);
    }

    fn zero(&self, range: Extent, site: Site) {
        for (word, _) in self.words(range, range.length() as usize) {
            self.hardware.zero(word, site);
        }
    }

    fn flush(&self, range: Extent, site: Site) {
        self.turn();
        self.hardware.flush(range, site);
    }

    fn fence(&self, site: Site) {
        self.turn();
        self.hardware.fence(site);
    }

    fn punch(&self, range: Extent, site: Site) -> io::Result<()> {
        self.turn();
        self.hardware.punch(range, site)
    }

    fn sync(&self, site: Site) -> io::Result<()> {
        self.turn();
        self.hardware.sync(site)
    }
}
