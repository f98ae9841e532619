//! [`Elision`]: changing a leaf in a hardware transaction, where the machine has them (HiKV, ATC'17, section 3.3).
//!
//! The work in the transaction is what is done without: take the leaf's lock, change the leaf, release the lock. In a
//! transaction nobody sees the lock taken: others see the leaf before or after the change, with the version of then. So
//! readers do not wait for a writer that is about to be done, and are right for the same reasons as ever. Where the
//! transaction is aborted, nothing has happened, and the same work is done without one.
//!
//! Splits and merges lock several nodes and are rare. They are done without.

use crate::sync::atomic::{AtomicU64, Ordering};

/// Whether leaves are changed in transactions, and what came of it.
#[derive(Debug)]
pub(super) struct Elision {
    is_in_force: bool,
    aborted: AtomicU64,
}

impl Elision {
    /// In force if it is wanted, and transactions commit on this machine.
    pub(super) fn new(is_wanted: bool) -> Self {
        let is_in_force = is_wanted && cfg!(not(loom)) && chimera_pmem::transactions_commit();
        Self { is_in_force, aborted: AtomicU64::new(0) }
    }

    /// Does `work`, in a transaction if that is possible.
    ///
    /// # Cost
    /// Where it is not in force, a branch.
    #[inline(always)]
    pub(super) fn run<T>(&self, work: impl Fn() -> T) -> T {
        if self.is_in_force {
            if let Some(done) = chimera_pmem::try_transaction(&work) {
                return done;
            }
            self.aborted.fetch_add(1, Ordering::Relaxed);
        }
        work()
    }

    pub(super) fn is_in_force(&self) -> bool {
        self.is_in_force
    }

    /// Transactions that were aborted.
    pub(super) fn aborted(&self) -> u64 {
        self.aborted.load(Ordering::Relaxed)
    }
}
