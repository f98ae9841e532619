//! [`Yielding`]: memory in which every word is a place for threads to take turns.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use chimera_pmem::environment::{AnonymousFile, File};
use chimera_pmem::{Extent, FlushChoice, Hardware, HardwareOptions, Medium, Pmem, Site};
use shuttle::sync::atomic::{AtomicBool, Ordering};

/// What a file had when it was mapped.
const FILLED: Site = Site::new("yielding.filled");

/// What is mapped of a file in memory.
#[derive(Clone)]
struct Part {
    at: u64,
    length: u64,
    file: Arc<dyn File>,
    file_offset: u64,
}

/// [`Hardware`], with a turn before every word that is loaded or stored and before everything else. Files in memory are
/// written together with the memory, so that a store can be opened again.
pub(crate) struct Yielding {
    hardware: Hardware,
    parts: Mutex<Vec<Part>>,
    /// Loading it is a turn. It never changes.
    turn: AtomicBool,
}

impl Yielding {
    pub(crate) fn new() -> Self {
        let options = HardwareOptions { flush: FlushChoice::Never, ..HardwareOptions::default() };
        let hardware = Hardware::new(options).expect("address space");
        Self { hardware, parts: Mutex::default(), turn: AtomicBool::new(false) }
    }

    fn turn(&self) {
        let _ = self.turn.load(Ordering::SeqCst);
    }

    /// The part of a file that a range lies in, if it lies in any. Nobody takes a turn with the lock held.
    fn part(&self, at: u64) -> Option<Part> {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.iter().find(|part| (part.at..part.at + part.length).contains(&at)).cloned()
    }

    /// Writes to the file what the memory has now.
    fn keep(&self, range: Extent) {
        let Some(part) = self.part(range.offset()) else { return };
        let mut bytes = vec![0; range.length() as usize];
        self.hardware.read(range, &mut bytes);
        let offset = part.file_offset + range.offset() - part.at;
        part.file.write_at(offset, &bytes).expect("a file in memory");
    }

    fn keep_words(&self, at: u64, bytes: u64) {
        self.keep(self.hardware.check(at, bytes).expect("inside"));
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
        if file.medium()? != Medium::Simulated {
            return self.hardware.map(at, file, file_offset, length);
        }
        let memory: Arc<dyn File> = Arc::new(AnonymousFile::new(length));
        self.hardware.map(at, &memory, 0, length)?;
        let mut bytes = vec![0; length as usize];
        file.read_at(file_offset, &mut bytes)?;
        let whole = self.hardware.check(at, length).expect("inside");
        self.hardware.copy(whole, &bytes, FILLED);
        let part = Part { at, length, file: file.clone(), file_offset };
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).push(part);
        Ok(())
    }

    fn mapped(&self) -> u64 {
        self.hardware.mapped()
    }

    fn populate(&self, at: u64, length: u64) -> io::Result<()> {
        self.turn();
        self.hardware.populate(at, length)
    }

    fn medium(&self) -> Medium {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        if parts.is_empty() { self.hardware.medium() } else { Medium::Simulated }
    }

    fn load_u64(&self, at: u64) -> u64 {
        self.turn();
        self.hardware.load_u64(at)
    }

    fn store_u64(&self, at: u64, value: u64, site: Site) {
        self.turn();
        self.hardware.store_u64(at, value, site);
        self.keep_words(at, 8);
    }

    fn cas_u64(&self, at: u64, current: u64, new: u64, site: Site) -> Result<u64, u64> {
        self.turn();
        let swapped = self.hardware.cas_u64(at, current, new, site);
        self.keep_words(at, 8);
        swapped
    }

    fn cas_u128(&self, at: u64, current: u128, new: u128, site: Site) -> Result<u128, u128> {
        self.turn();
        let swapped = self.hardware.cas_u128(at, current, new, site);
        self.keep_words(at, 16);
        swapped
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
            self.keep(word);
        }
    }

    fn copy_nt(&self, to: Extent, bytes: &[u8], site: Site) {
        self.turn();
        self.hardware.copy_nt(to, bytes, site);
        self.keep(to);
    }

    fn zero(&self, range: Extent, site: Site) {
        for (word, _) in self.words(range, range.length() as usize) {
            self.hardware.zero(word, site);
            self.keep(word);
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

    fn punch(&self, range: Extent, site: Site) -> io::Result<bool> {
        self.turn();
        if self.part(range.offset()).is_none() {
            return self.hardware.punch(range, site);
        }
        self.hardware.zero(range, site);
        self.keep(range);
        Ok(true)
    }

    fn sync_punched(&self, site: Site) -> io::Result<()> {
        self.hardware.sync_punched(site)
    }

    fn sync(&self, site: Site) -> io::Result<()> {
        self.turn();
        self.hardware.sync(site)
    }
}
