//! [`Shared`]: a backend that a structure owns and that its driver can still look at, for its counters for example.

use std::io;
use std::sync::Arc;

use chimera_pmem::environment::File;
use chimera_pmem::journal::{Journal, Lines};
use chimera_pmem::{Extent, Medium, Operation, PersistenceCounts, Pmem, Site};

/// One more way to a backend.
#[derive(Debug)]
pub(crate) struct Shared<P>(Arc<P>);

impl<P> Shared<P> {
    /// The first way to it.
    pub(crate) fn new(backend: P) -> Self {
        Self(Arc::new(backend))
    }

    /// The backend itself.
    pub(crate) fn get(&self) -> &P {
        &self.0
    }
}

impl<P> Clone for Shared<P> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

macro_rules! forward {
    ($($(#[$attribute:meta])* fn $name:ident(&self $(, $argument:ident: $kind:ty)*) $(-> $result:ty)?;)+) => {
        impl<P: Pmem> Pmem for Shared<P> {
            $(
                $(#[$attribute])*
                #[inline(always)]
                fn $name(&self $(, $argument: $kind)*) $(-> $result)? {
                    P::$name(&self.0 $(, $argument)*)
                }
            )+
        }
    };
}

forward! {
    fn map(&self, at: u64, file: &Arc<dyn File>, file_offset: u64, length: u64) -> io::Result<()>;
    fn mapped(&self) -> u64;
    fn populate(&self, at: u64, length: u64) -> io::Result<()>;
    fn check(&self, offset: u64, length: u64) -> Option<Extent>;
    fn use_journal(&self, journal: Arc<Journal>) -> io::Result<()>;
    fn journal(&self) -> Option<&Arc<Journal>>;
    fn overlay(&self, lines: Lines) -> io::Result<()>;
    fn medium(&self) -> Medium;
    fn load_u64(&self, at: u64) -> u64;
    fn store_u64(&self, at: u64, value: u64, site: Site);
    fn cas_u64(&self, at: u64, current: u64, new: u64, site: Site) -> Result<u64, u64>;
    fn cas_u128(&self, at: u64, current: u128, new: u128, site: Site) -> Result<u128, u128>;
    fn read(&self, from: Extent, into: &mut [u8]);
    fn read_sum(&self, from: Extent, first_word: u64, into: &mut [u8]) -> u64;
    fn compare(&self, with: Extent, bytes: &[u8]) -> bool;
    fn prefetch(&self, range: Extent);
    fn prefetch_write(&self, range: Extent);
    fn copy(&self, to: Extent, bytes: &[u8], site: Site);
    fn copy_sum(&self, to: Extent, bytes: &[u8], site: Site) -> u64;
    fn copy_nt(&self, to: Extent, bytes: &[u8], site: Site);
    fn zero(&self, range: Extent, site: Site);
    fn flush(&self, range: Extent, site: Site);
    fn fence(&self, site: Site);
    fn publish(&self, at: u64, value: u64, depends_on: &[Extent], site: Site);
    fn publish_cas(&self, at: u64, current: u64, new: u64, depends_on: &[Extent], site: Site) -> Result<u64, u64>;
    fn punch(&self, range: Extent, site: Site) -> io::Result<bool>;
    fn sync_punched(&self, site: Site) -> io::Result<()>;
    fn sync(&self, site: Site) -> io::Result<()>;
    fn operation_begin(&self, operation: Operation, session: u32);
    fn operation_is(&self, operation: Operation);
    fn withdrawn(&self, range: Extent);
    fn operation_rereads(&self);
    fn operation_decided(&self);
    fn persistence_counts(&self) -> Option<PersistenceCounts>;
    fn skips(&self, step: Site) -> bool;
    fn operation_acknowledge(&self);
}

#[cfg(test)]
mod tests {
    use chimera_pmem::environment::AnonymousFile;
    use chimera_pmem::instrumented::InstrumentedOptions;
    use chimera_pmem::{Hardware, HardwareOptions, Instrumented};

    use super::*;

    /// What overrides a default of the trait is reached, too.
    #[test]
    fn calls_reach_the_backend() {
        const SITE: Site = Site::new("test.shared");
        let options = HardwareOptions { reserve_bytes: 1 << 26, ..HardwareOptions::default() };
        let hardware = Hardware::new(options).expect("address space");
        let pmem = Shared::new(Instrumented::new(hardware, InstrumentedOptions::default()));
        let file: Arc<dyn File> = Arc::new(AnonymousFile::new(4096));
        pmem.map(0, &file, 0, 4096).expect("memory");
        pmem.operation_begin(Operation::Insert, 0);
        pmem.publish(8, 7, &[], SITE);
        pmem.flush(Extent::new_checked(8, 8), SITE);
        pmem.fence(SITE);
        pmem.operation_is(Operation::Overwrite);
        pmem.operation_acknowledge();
        let counters = pmem.get().snapshot().of(Operation::Overwrite);
        assert_eq!((counters.operations, counters.stores, counters.fences), (1, 1, 1));
        assert_eq!(pmem.load_u64(8), 7);
    }
}
