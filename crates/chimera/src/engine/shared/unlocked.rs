//! Reading without a lock what others may change meanwhile.

use chimera_pmem::Pmem;

use crate::engine::contract::core::Core;

/// Attempts before a reader takes a lock.
const ATTEMPTS: u32 = 8;

impl<P: Pmem> Core<P> {
    /// What `read` answers: it says `None` where somebody has changed what it read meanwhile, and is asked again. None where
    /// there is no moment without a change, because others write so often, or what is read is so large: then the caller
    /// reads under a lock.
    #[inline(always)]
    pub(crate) fn read_unlocked<T>(&self, mut read: impl FnMut() -> Option<T>) -> Option<T> {
        for attempt in 0..ATTEMPTS {
            if let Some(answer) = read() {
                return Some(answer);
            }
            self.pool.pmem.operation_rereads();
            self.environment().relax(attempt);
        }
        None
    }
}
