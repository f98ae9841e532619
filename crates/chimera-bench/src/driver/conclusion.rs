//! What is done with the store of the last pass: close, reopen, verify.

use super::pass::{Finished, Plan};
use super::progress::Progress;
use super::recovery::Reopening;
use super::store::{Reopen, Store};
use super::verify::verify;
use crate::error::Result;
use crate::results::machine::cores;
use crate::results::rows::{RecoveryRow, StoreRow};

/// What is known after the last pass.
#[derive(Debug)]
pub(crate) struct Conclusion {
    pub(crate) store: StoreRow,
    pub(crate) recovery: Vec<RecoveryRow>,
}

/// Closes the store, measures how long opening it takes by so many threads, and verifies every record of the reopened
/// store. A store in anonymous memory is verified as it is.
///
/// # Errors
/// When a record is wrong.
pub(crate) fn conclude<S: Reopen>(
    plan: &Plan<'_>,
    finished: Finished<S>,
    (reopenings, threads): (usize, &[usize]),
    progress: &Progress,
) -> Result<Conclusion> {
    let setup = plan.setup;
    if setup.is_anonymous() {
        return conclude_volatile(plan, finished, progress);
    }
    let row = finished.row(plan.data);
    let Finished { store, ledger, path, .. } = finished;
    progress.step("reopening");
    store.close()?;
    let recovery = Reopening::measure::<S>(setup, &path, threads, reopenings)?.rows();
    progress.step("verifying");
    let store = S::reopen(setup, &path)?;
    let verified = verify(&store, plan.data, &ledger, cores())?;
    store.close()?;
    Ok(Conclusion { store: StoreRow { verified_records: Some(verified), ..row }, recovery })
}

/// Verifies every record of a store that would be gone if it were closed, and closes it.
///
/// # Errors
/// When a record is wrong.
pub(crate) fn conclude_volatile<S: Store>(
    plan: &Plan<'_>,
    finished: Finished<S>,
    progress: &Progress,
) -> Result<Conclusion> {
    progress.step("verifying");
    let row = finished.row(plan.data);
    let verified = verify(&finished.store, plan.data, &finished.ledger, cores())?;
    finished.store.close()?;
    let store = StoreRow { verified_records: Some(verified), ..row };
    Ok(Conclusion { store, recovery: Vec::new() })
}
