//! [`CutPmem`]: mapped memory that stops a thread for good before a chosen step.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;

use chimera_pmem::environment::File;
use chimera_pmem::{Extent, Hardware, Medium, Pmem, Site};

/// Called with the operation and the step; never returns.
type Stop = Box<dyn FnMut(u64, &str)>;

struct Armed {
    /// Steps still to be made.
    left: u64,
    operation: u64,
    stop: Stop,
}

thread_local! {
    static ARMED: RefCell<Option<Armed>> = const { RefCell::new(None) };
}

/// Stops this thread by `stop` after `steps` more steps; `operation` is the one that begins now. A
/// thread that is armed already only learns of the operation.
pub(super) fn arm(steps: u64, operation: u64, stop: impl FnMut(u64, &str) + 'static) {
    ARMED.with_borrow_mut(|armed| match armed {
        Some(armed) => armed.operation = operation,
        None => *armed = Some(Armed { left: steps, operation, stop: Box::new(stop) }),
    });
}

/// Before a step of this thread.
fn step(what: &str, site: Site) {
    ARMED.with_borrow_mut(|armed| {
        if let Some(armed) = armed {
            match armed.left.checked_sub(1) {
                Some(left) => armed.left = left,
                None => (armed.stop)(armed.operation, &format!("{what} at {}", site.name())),
            }
        }
    });
}

/// Mapped memory with a place to stop before every step.
pub(super) struct CutPmem {
    inner: Hardware,
}

impl CutPmem {
    pub(super) fn new(inner: Hardware) -> Self {
        Self { inner }
    }
}

impl Pmem for CutPmem {
    fn map(&self, at: u64, file: &Arc<dyn File>, file_offset: u64, length: u64) -> io::Result<()> {
        self.inner.map(at, file, file_offset, length)
    }

    fn mapped(&self) -> u64 {
        self.inner.mapped()
    }

    fn populate(&self, at: u64, length: u64) -> io::Result<()> {
        self.inner.populate(at, length)
    }

    fn medium(&self) -> Medium {
        self.inner.medium()
    }

    fn load_u64(&self, at: u64) -> u64 {
        self.inner.load_u64(at)
    }

    fn store_u64(&self, at: u64, value: u64, site: Site) {
        step("store", site);
        self.inner.store_u64(at, value, site);
    }

    fn cas_u64(&self, at: u64, current: u64, new: u64, site: Site) -> Result<u64, u64> {
        step("swap", site);
        self.inner.cas_u64(at, current, new, site)
    }

    fn cas_u128(&self, at: u64, current: u128, new: u128, site: Site) -> Result<u128, u128> {
        step("swap", site);
        self.inner.cas_u128(at, current, new, site)
    }

    fn read(&self, from: Extent, into: &mut [u8]) {
        self.inner.read(from, into);
    }

    fn compare(&self, with: Extent, bytes: &[u8]) -> bool {
        self.inner.compare(with, bytes)
    }

    fn prefetch(&self, range: Extent) {
        self.inner.prefetch(range);
    }

    fn prefetch_write(&self, range: Extent) {
        self.inner.prefetch_write(range);
    }

    fn copy(&self, to: Extent, bytes: &[u8], site: Site) {
        step("copy", site);
        self.inner.copy(to, bytes, site);
    }

    fn copy_nt(&self, to: Extent, bytes: &[u8], site: Site) {
        step("copy", site);
        self.inner.copy_nt(to, bytes, site);
    }

    fn zero(&self, range: Extent, site: Site) {
        step("zero", site);
        self.inner.zero(range, site);
    }

    fn flush(&self, range: Extent, site: Site) {
        step("flush", site);
        self.inner.flush(range, site);
    }

    fn fence(&self, site: Site) {
        step("fence", site);
        self.inner.fence(site);
    }

    fn punch(&self, range: Extent, site: Site) -> io::Result<bool> {
        step("punch", site);
        self.inner.punch(range, site)
    }

    fn sync_punched(&self, site: Site) -> io::Result<()> {
        step("sync_punched", site);
        self.inner.sync_punched(site)
    }

    fn sync(&self, site: Site) -> io::Result<()> {
        step("sync", site);
        self.inner.sync(site)
    }
}
