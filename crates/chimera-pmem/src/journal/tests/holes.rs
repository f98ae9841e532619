//! Storage that is given back, beside somebody who flushes late what was there.

use std::sync::{OnceLock, Weak};

use super::altered::Altered;
use super::*;

const PAGE: u64 = 4096;

/// A file beside whose holes somebody flushes a word.
#[derive(Debug)]
struct Late {
    inner: Arc<dyn File>,
    memory: OnceLock<Weak<Hardware>>,
}

impl Altered for Late {
    fn inner(&self) -> &dyn File {
        &*self.inner
    }

    fn on_punch(&self, offset: u64, length: u64) -> io::Result<()> {
        if let Some(memory) = self.memory.get().and_then(Weak::upgrade) {
            memory.flush(memory.check(PAGE, 8).unwrap(), SITE);
            memory.fence(SITE);
        }
        self.inner().punch(offset, length)
    }
}

/// As who retires a record does, which is seen before it is flushed.
#[test]
fn what_is_flushed_late_is_in_the_file_as_in_memory() {
    let files: Arc<dyn FileProvider> = Arc::new(MemoryFiles::new().on(Medium::File));
    let inner = open(&files, "data");
    inner.allocate(0, DATA_BYTES).unwrap();
    let late = Arc::new(Late { inner, memory: OnceLock::new() });
    let file = open(&files, "journal");
    Journal::format(&*file, 7, 99, CAPACITY, BOOT).unwrap();
    let environment = Arc::new(SteppedEnvironment::with_files(1, files.clone()));
    let journal = Journal::open(file, CAPACITY, GROUP, environment.clone()).unwrap();
    let memory = Arc::new(Hardware::new(HardwareOptions::default()).unwrap());
    memory.use_journal(journal).unwrap();
    let data: Arc<dyn File> = late.clone();
    memory.map(0, &data, 0, DATA_BYTES).unwrap();
    memory.store_u64(PAGE, 7, SITE);
    memory.flush(memory.check(PAGE, 8).unwrap(), SITE);
    memory.fence(SITE);

    late.memory.set(Arc::downgrade(&memory)).unwrap();
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
