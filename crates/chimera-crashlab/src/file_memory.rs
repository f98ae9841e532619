//! [`FileMemory`]: the persistence seam over files that can only be read and written.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use chimera_pmem::environment::File;
use chimera_pmem::{Arena, Extent, Medium, Pmem, Site};

/// Memory into which files are read when mapped, and from which they are written when it is dropped, or on demand.
/// No operation makes a system call. For one thread.
pub(crate) struct FileMemory {
    words: Arena<AtomicU64>,
    limit_bytes: u64,
    mapped: AtomicU64,
    files: Mutex<Vec<Mapped>>,
    medium: Medium,
    /// Loads and stores so far, and how many there may be: more are a loop without an end.
    accesses: AtomicU64,
    accesses_max: u64,
    /// The name of a check that is left out.
    skipped: Option<&'static str>,
}

struct Mapped {
    at: u64,
    file: Arc<dyn File>,
    file_offset: u64,
    length: u64,
}

impl FileMemory {
    /// Room for `limit_bytes` of files.
    pub(crate) fn new(limit_bytes: u64, medium: Medium) -> Self {
        Self {
            words: Arena::new(limit_bytes as usize / 8, false),
            limit_bytes,
            mapped: AtomicU64::new(0),
            files: Mutex::default(),
            medium,
            accesses: AtomicU64::new(0),
            accesses_max: u64::MAX,
            skipped: None,
        }
    }

    /// The same, where the access behind so many panics.
    pub(crate) fn with_accesses_max(mut self, accesses_max: u64) -> Self {
        self.accesses_max = accesses_max;
        self
    }

    /// The same, where this check is left out.
    pub(crate) fn without(mut self, skipped: Option<&'static str>) -> Self {
        self.skipped = skipped;
        self
    }

    fn count(&self) {
        let accesses = self.accesses.load(Ordering::Relaxed);
        assert!(accesses < self.accesses_max, "{accesses} accesses, and no end");
        self.accesses.store(accesses + 1, Ordering::Relaxed);
    }

    /// Writes what is mapped to its files: what the end of the process would leave there.
    pub(crate) fn write_back(&self) {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        for mapped in files.iter().filter(|mapped| !mapped.file.is_read_only()) {
            let mut bytes = vec![0; mapped.length as usize];
            self.bytes(mapped.at, &mut bytes);
            // A file that was removed meanwhile has nobody who misses it.
            mapped.file.write_at(mapped.file_offset, &bytes).expect("memory");
        }
    }

    fn word(&self, at: u64) -> &AtomicU64 {
        self.count();
        let is_inside = at.is_multiple_of(8) && at < self.mapped();
        assert!(is_inside, "access at byte {at} of {}", self.mapped());
        self.words.get(at / 8).expect("mapped")
    }

    /// The words that hold `length` bytes from `at`.
    fn words(&self, at: u64, length: usize) -> impl Iterator<Item = &AtomicU64> {
        self.count();
        let is_inside = at.is_multiple_of(8) && at + length as u64 <= self.mapped();
        assert!(is_inside, "access of {length} bytes at {at} of {}", self.mapped());
        let first = at / 8;
        let last = first + length.div_ceil(8) as u64;
        (first..last).map(|number| self.words.get(number).expect("mapped"))
    }

    fn bytes(&self, at: u64, into: &mut [u8]) {
        let length = into.len();
        for (word, chunk) in self.words(at, length).zip(into.chunks_mut(8)) {
            let word = word.load(Ordering::Relaxed).to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }

    fn set_bytes(&self, at: u64, bytes: &[u8]) {
        for (word, chunk) in self.words(at, bytes.len()).zip(bytes.chunks(8)) {
            word.store(word_of(chunk), Ordering::Relaxed);
        }
    }
}

impl Drop for FileMemory {
    fn drop(&mut self) {
        self.write_back();
    }
}

fn word_of(chunk: &[u8]) -> u64 {
    if let Ok(word) = chunk.try_into() {
        return u64::from_le_bytes(word);
    }
    let mut word = [0; 8];
    word[..chunk.len()].copy_from_slice(chunk);
    u64::from_le_bytes(word)
}

impl Pmem for FileMemory {
    fn map(&self, at: u64, file: &Arc<dyn File>, file_offset: u64, length: u64) -> io::Result<()> {
        assert_eq!(at, self.mapped(), "a region must be mapped where the mapped space ends");
        let end = at.checked_add(length).filter(|end| *end <= self.limit_bytes);
        let end = end.ok_or(io::ErrorKind::OutOfMemory)?;
        let mut bytes = vec![0; length as usize];
        file.read_at(file_offset, &mut bytes)?;
        self.words.ensure(self.limit_bytes / 8)?;
        self.mapped.store(end, Ordering::Release);
        self.set_bytes(at, &bytes);
        let mapped = Mapped { at, file: Arc::clone(file), file_offset, length };
        self.files.lock().unwrap_or_else(PoisonError::into_inner).push(mapped);
        Ok(())
    }

    fn mapped(&self) -> u64 {
        self.mapped.load(Ordering::Acquire)
    }

    fn populate(&self, at: u64, length: u64) -> io::Result<()> {
        assert!(self.check(at, length).is_some(), "populate {length} bytes at {at}");
        Ok(())
    }

    fn medium(&self) -> Medium {
        self.medium
    }

    fn load_u64(&self, at: u64) -> u64 {
        self.word(at).load(Ordering::Acquire)
    }

    fn store_u64(&self, at: u64, value: u64, _site: Site) {
        self.word(at).store(value, Ordering::Release);
    }

    fn cas_u64(&self, at: u64, current: u64, new: u64, _site: Site) -> Result<u64, u64> {
        self.word(at).compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire)
    }

    /// For one thread.
    fn cas_u128(&self, at: u64, current: u128, new: u128, _site: Site) -> Result<u128, u128> {
        let [low, high] = [self.word(at), self.word(at + 8)];
        let found = u128::from(low.load(Ordering::Acquire))
            | u128::from(high.load(Ordering::Acquire)) << 64;
        if found != current {
            return Err(found);
        }
        low.store(new as u64, Ordering::Release);
        high.store((new >> 64) as u64, Ordering::Release);
        Ok(found)
    }

    fn read(&self, from: Extent, into: &mut [u8]) {
        assert!(into.len() as u64 <= from.length(), "{} bytes of {from:?}", into.len());
        self.bytes(from.offset(), into);
    }

    fn compare(&self, with: Extent, bytes: &[u8]) -> bool {
        assert!(bytes.len() as u64 <= with.length(), "{} bytes with {with:?}", bytes.len());
        self.words(with.offset(), bytes.len()).zip(bytes.chunks(8)).all(|(word, chunk)| {
            word.load(Ordering::Relaxed).to_le_bytes()[..chunk.len()] == *chunk
        })
    }

    fn prefetch(&self, range: Extent) {
        assert!(self.check(range.offset(), range.length()).is_some(), "prefetch of {range:?}");
    }

    fn prefetch_write(&self, range: Extent) {
        self.prefetch(range);
    }

    fn copy(&self, to: Extent, bytes: &[u8], _site: Site) {
        assert!(bytes.len() as u64 <= to.length(), "{} bytes to {to:?}", bytes.len());
        self.set_bytes(to.offset(), bytes);
    }

    fn copy_nt(&self, to: Extent, bytes: &[u8], site: Site) {
        self.copy(to, bytes, site);
    }

    fn zero(&self, range: Extent, _site: Site) {
        let words = self.words(range.offset(), range.length() as usize);
        words.for_each(|word| word.store(0, Ordering::Relaxed));
    }

    fn flush(&self, range: Extent, _site: Site) {
        assert!(self.check(range.offset(), range.length()).is_some(), "flush of {range:?}");
    }

    fn fence(&self, _site: Site) {}

    fn punch(&self, range: Extent, site: Site) -> io::Result<bool> {
        self.zero(range, site);
        Ok(true)
    }

    fn sync_punched(&self, _site: Site) -> io::Result<()> {
        Ok(())
    }

    fn sync(&self, _site: Site) -> io::Result<()> {
        Ok(())
    }

    fn skips(&self, step: Site) -> bool {
        self.skipped == Some(step.name())
    }
}
