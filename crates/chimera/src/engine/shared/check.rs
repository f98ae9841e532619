//! Verifying a store by reading every record.

use chimera_pmem::Pmem;

use crate::engine::Engine;
use crate::types::check::CheckReport;
use crate::types::error::Error;
use crate::types::progress::Progress;

/// Reads every record, which verifies its checksums. Ends at the first damage.
pub(crate) fn check<P: Pmem, E: Engine<P>>(engine: &E, progress: Option<&Progress>) -> CheckReport {
    let whole = engine.records();
    let blocks = engine.core().pool.used_blocks();
    let mut report = CheckReport { blocks, index_entries: whole, ..CheckReport::default() };
    let mut client = engine.client(0);
    let listed = engine.list(&mut client, 0, |_| {
        report.records += 1;
        if let (Some(progress), 0) = (progress, report.records % 1024) {
            progress(report.records, whole.max(report.records));
        }
        true
    });
    engine.end(&mut client);
    if let Some(progress) = progress {
        progress(report.records, report.records);
    }
    match listed {
        Ok(()) => {}
        Err(Error::Corrupted { what, at }) => report.damage(at, what),
        Err(other) => report.damage(0, other.to_string()),
    }
    report
}
