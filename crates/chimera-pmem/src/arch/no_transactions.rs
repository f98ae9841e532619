//! Architectures without hardware transactions, or whose transactions are not used.

/// What [`begin_transaction`] would return in a transaction.
pub(crate) const TRANSACTION_BEGUN: u32 = u32::MAX;

pub(crate) fn has_transactions() -> bool {
    false
}

/// # Safety
/// Never to be called: [`has_transactions`] says no.
pub(crate) unsafe fn begin_transaction() -> u32 {
    panic!("this architecture has no transactions");
}

/// # Safety
/// Never to be called: [`has_transactions`] says no.
pub(crate) unsafe fn end_transaction() {
    panic!("this architecture has no transactions");
}
