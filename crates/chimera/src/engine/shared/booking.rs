//! [`Booked`]: which operation counters book persistence steps under.

use chimera_pmem::{Operation, Pmem};

use crate::engine::contract::core::Core;

impl<P: Pmem> Core<P> {
    /// Books what follows under `operation` of session `number`, until the result is dropped.
    #[inline(always)]
    pub(crate) fn book(&self, operation: Operation, number: u32) -> Booked<'_, P> {
        self.pool.pmem.operation_begin(operation, number);
        Booked { pmem: &self.pool.pmem }
    }
}

/// Acknowledges an operation when dropped, however it ends.
pub(crate) struct Booked<'a, P: Pmem> {
    pmem: &'a P,
}

impl<P: Pmem> Booked<'_, P> {
    /// The operation turned out to be of another class.
    #[inline(always)]
    pub(crate) fn is(&self, operation: Operation) {
        self.pmem.operation_is(operation);
    }
}

impl<P: Pmem> Drop for Booked<'_, P> {
    #[inline(always)]
    fn drop(&mut self) {
        self.pmem.operation_acknowledge();
    }
}
