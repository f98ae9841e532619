//! Tests with expectations worked out by hand.

mod cache;
mod counting;
mod hardware;
mod lines;
mod operations;
mod profile;
mod reads;
mod threads;

use std::io;
use std::sync::Arc;
use std::sync::Mutex;

use super::{
    CacheParameters, Counters, DeviceParameters, Instrumented, InstrumentedOptions,
    OperationCounters,
};
use crate::environment::File;
use crate::{Extent, Medium, Operation, Pmem, Site};

const SITE: Site = Site::new("instrumented.test");

/// Memory without any hardware.
struct Heap {
    words: Mutex<Vec<u64>>,
    bytes: u64,
}

impl Heap {
    fn new(bytes: u64) -> Self {
        Self { words: Mutex::new(vec![0; (bytes / 8) as usize]), bytes }
    }

    fn word<R>(&self, at: u64, work: impl FnOnce(&mut u64) -> R) -> R {
        assert!(at.is_multiple_of(8));
        work(&mut self.words.lock().unwrap()[(at / 8) as usize])
    }
}

impl Pmem for Heap {
    fn map(&self, _: u64, _: &Arc<dyn File>, _: u64, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn mapped(&self) -> u64 {
        self.bytes
    }

    fn populate(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn medium(&self) -> Medium {
        Medium::Simulated
    }

    fn load_u64(&self, at: u64) -> u64 {
        self.word(at, |word| *word)
    }

    fn store_u64(&self, at: u64, value: u64, _: Site) {
        self.word(at, |word| *word = value);
    }

    fn cas_u64(&self, at: u64, current: u64, new: u64, _: Site) -> Result<u64, u64> {
        self.word(at, |word| {
            if *word != current {
                return Err(*word);
            }
            *word = new;
            Ok(current)
        })
    }

    fn cas_u128(&self, at: u64, current: u128, new: u128, site: Site) -> Result<u128, u128> {
        let found = u128::from(self.load_u64(at)) | u128::from(self.load_u64(at + 8)) << 64;
        if found != current {
            return Err(found);
        }
        self.store_u64(at, new as u64, site);
        self.store_u64(at + 8, (new >> 64) as u64, site);
        Ok(current)
    }

    fn read(&self, from: Extent, into: &mut [u8]) {
        for (index, chunk) in into.chunks_mut(8).enumerate() {
            let word = self.load_u64(from.offset() + index as u64 * 8).to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }

    fn compare(&self, with: Extent, bytes: &[u8]) -> bool {
        let mut found = vec![0; bytes.len()];
        self.read(with, &mut found);
        found == bytes
    }

    fn prefetch(&self, _: Extent) {}

    fn prefetch_write(&self, _: Extent) {}

    fn copy(&self, to: Extent, bytes: &[u8], site: Site) {
        for (index, chunk) in bytes.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.store_u64(to.offset() + index as u64 * 8, u64::from_le_bytes(word), site);
        }
    }

    fn copy_nt(&self, to: Extent, bytes: &[u8], site: Site) {
        self.copy(to, bytes, site);
    }

    fn zero(&self, range: Extent, site: Site) {
        self.copy(range, &vec![0; range.length() as usize], site);
    }

    fn flush(&self, _: Extent, _: Site) {}

    fn fence(&self, _: Site) {}

    fn sync_punched(&self, _: Site) -> io::Result<()> {
        Ok(())
    }

    fn punch(&self, range: Extent, site: Site) -> io::Result<bool> {
        self.zero(range, site);
        Ok(true)
    }

    fn sync(&self, _: Site) -> io::Result<()> {
        Ok(())
    }
}

/// An instance over 1 MiB with everything at its default but what `change` changes.
fn instance(change: impl FnOnce(&mut InstrumentedOptions)) -> Instrumented<Heap> {
    let mut options = InstrumentedOptions::default();
    change(&mut options);
    Instrumented::new(Heap::new(1 << 20), options)
}

fn extent(offset: u64, length: u64) -> Extent {
    Extent::new_checked(offset, length)
}

/// Runs `work` as an operation of session 0 and returns what was counted for its class meanwhile.
fn counted(
    pmem: &Instrumented<Heap>,
    operation: Operation,
    work: impl FnOnce(),
) -> OperationCounters {
    let before = pmem.snapshot();
    pmem.operation_begin(operation, 0);
    work();
    pmem.operation_acknowledge();
    pmem.snapshot().since(&before).of(operation)
}

/// Stores, flushes and fences the record at `at`.
fn persist(pmem: &Instrumented<Heap>, at: u64, length: usize) {
    let to = extent(at, length as u64);
    pmem.copy(to, &vec![7; length], SITE);
    pmem.flush(to, SITE);
    pmem.fence(SITE);
}
