//! Storage that is given back, beside somebody who flushes late what was there.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{OnceLock, Weak};

use super::altered::Altered;
use super::*;

const PAGE: u64 = 4096;

/// A file beside whose holes, just before they are made, somebody flushes a word, or needs others to be durable.
#[derive(Debug)]
struct Late {
    inner: Arc<dyn File>,
    memory: OnceLock<Weak<Hardware>>,
    syncs_before: AtomicBool,
    /// Syncs since the last hole was made.
    syncs: AtomicU64,
}

impl Altered for Late {
    fn inner(&self) -> &dyn File {
        &*self.inner
    }

    fn on_punch(&self, offset: u64, length: u64) -> io::Result<()> {
        if let Some(memory) = self.memory.get().and_then(Weak::upgrade) {
            if self.syncs_before.load(Ordering::Relaxed) {
                memory.sync_punched(SITE).unwrap();
            } else {
                memory.flush(memory.check(PAGE, 8).unwrap(), SITE);
                memory.fence(SITE);
            }
        }
        self.syncs.store(0, Ordering::Relaxed);
        self.inner().punch(offset, length)
    }

    fn on_sync(&self) -> io::Result<()> {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.inner().sync()
    }
}

/// Memory of such a file, with a journal and a word in its second page.
fn memory() -> (Arc<dyn FileProvider>, Arc<Late>, Arc<Hardware>) {
    let files: Arc<dyn FileProvider> = Arc::new(MemoryFiles::new().on(Medium::File));
    let inner = open(&files, "data");
    inner.allocate(0, DATA_BYTES).unwrap();
    let (memory, syncs) = (OnceLock::new(), AtomicU64::new(0));
    let late = Arc::new(Late { inner, memory, syncs_before: AtomicBool::new(false), syncs });
    let file = open(&files, "journal");
    Journal::format(&*file, 7, 99, CAPACITY, BOOT).unwrap();
    let environment = Arc::new(SteppedEnvironment::with_files(1, files.clone()));
    let journal = Journal::open(file, CAPACITY, GROUP, environment).unwrap();
    let memory = Arc::new(Hardware::new(HardwareOptions::default()).unwrap());
    memory.use_journal(journal).unwrap();
    let data: Arc<dyn File> = late.clone();
    memory.map(0, &data, 0, DATA_BYTES).unwrap();
    memory.store_u64(PAGE, 7, SITE);
    memory.flush(memory.check(PAGE, 8).unwrap(), SITE);
    memory.fence(SITE);
    late.memory.set(Arc::downgrade(&memory)).unwrap();
    (files, late, memory)
}

/// A sync that comes just before a hole does not make it durable.
#[test]
fn a_hole_is_synced_once_it_is_made() {
    let (_files, late, memory) = memory();
    late.syncs_before.store(true, Ordering::Relaxed);
    memory.punch(memory.check(PAGE, PAGE).unwrap(), SITE).unwrap();
    memory.sync_punched(SITE).unwrap();
    assert_eq!(late.syncs.load(Ordering::Relaxed), 1);
    memory.sync_punched(SITE).unwrap();
    assert_eq!(late.syncs.load(Ordering::Relaxed), 1, "once");
}

/// As who retires a record does, which is seen before it is flushed.
#[test]
fn what_is_flushed_late_is_in_the_file_as_in_memory() {
    let (files, late, memory) = memory();
    memory.punch(memory.check(PAGE, PAGE).unwrap(), SITE).unwrap();
    memory.sync_punched(SITE).unwrap();
    let found = memory.load_u64(PAGE);
    let mut bytes = vec![0; DATA_BYTES as usize];
    late.inner.read_at(0, &mut bytes).unwrap();
    let contents = Contents::read(&*open(&files, "journal"), BOOT, &no_data).unwrap().unwrap();
    contents.lines().put_over(0..DATA_BYTES, &mut bytes);
    let left = bytes[PAGE as usize..].first_chunk().map(|word| u64::from_le_bytes(*word));
    assert_eq!(left, Some(found), "whoever finds zeros has them after a crash, too");
}
