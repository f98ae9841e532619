//! Bytes written and read by the size of values, counted exactly.

use chimera::{Db, IndexWritten};
use chimera_pmem::instrumented::{Counters, OperationCounters};
use chimera_pmem::{CACHE_LINE, Hardware, Instrumented, Operation};

use super::super::sides::Side;
use crate::driver::clock::Measure;
use crate::driver::counting::begin_counting;
use crate::driver::ledger::Ledger;
use crate::driver::pass::{demand, store_row};
use crate::driver::phase::{self, Action, Extent, Phase};
use crate::driver::setup::Setup;
use crate::driver::store::{Instrument, Store};
use crate::driver::worker::Data;
use crate::error::Result;
use crate::published::paper;
use crate::report::chameleon::WrittenRow;
use crate::report::{Facts, StoreRow};

type Counting = Db<Instrumented<Hardware>>;

/// Of all records one in so many is read, as in the paper's section 3.7.
fn gets_one_in() -> u64 {
    let gb = |what: &str| paper("chameleondb").value(&format!("section3.7.{what}_gb"));
    (gb("put") / gb("get")) as u64
}

/// Puts all records and gets some, on one thread in anonymous memory.
pub(super) fn of_size(setup: &Setup, side: &Side) -> Result<(WrittenRow, StoreRow)> {
    let setup = setup.for_counting();
    let gets = (setup.records / gets_one_in()).max(1);
    let data = Data::new(&setup);
    let db = Counting::create_counting(&setup, &demand(&setup, &[], 1))?;
    let mut ledger = Ledger::default();
    let put = Work { name: "put", action: Action::Insert, class: Operation::Insert };
    let puts = put.count(&db, &data, &mut ledger, setup.records)?;
    ledger.settle();
    let (facts, footprint) = (db.facts(), db.footprint());
    let index = db.stats().chameleon().map_or_else(IndexWritten::default, |it| *it.written);
    let get = Work { name: "get", action: Action::Get, class: Operation::Get };
    let got = get.count(&db, &data, &mut ledger, gets)?;
    Store::close(db)?;
    let facts = Facts { engine: side.name.to_owned(), ..facts };
    let tables = index.table_bytes() + index.manifest.bytes;
    let (unit, all) = (puts.media_unit_bytes, puts.total());
    let by_puts = handed_over(&puts.of(Operation::Insert));
    let row = WrittenRow {
        side: facts.engine.clone(),
        durability: facts.durability.clone(),
        value_bytes: setup.value_bytes,
        records: setup.records,
        user_bytes: setup.records * u64::from(setup.key_bytes + setup.value_bytes),
        media_written: all.media_writes() * unit,
        by_puts,
        flushes: index.flushes.bytes,
        upper: index.upper.bytes,
        last: index.last.bytes,
        dumps: index.dumps.bytes,
        manifest: index.manifest.bytes,
        other: handed_over(&all).saturating_sub(by_puts + tables),
        media_read: all.media_reads_all() * unit,
        gets,
        media_read_by_gets: got.total().media_reads_all() * got.media_unit_bytes,
    };
    Ok((row, store_row(facts, footprint, &data)))
}

/// Bytes of the lines that were written back.
fn handed_over(counters: &OperationCounters) -> u64 {
    let flushed = counters.lines_flushed + counters.lines_reflushed;
    (flushed - counters.lines_flushed_clean + counters.nontemporal_lines) * CACHE_LINE
}

/// What is counted.
struct Work {
    name: &'static str,
    action: Action,
    /// What is left in buffers is booked here.
    class: Operation,
}

impl Work {
    fn count(
        &self,
        db: &Counting,
        data: &Data,
        ledger: &mut Ledger,
        operations: u64,
    ) -> Result<Counters> {
        let pmem = db.counters();
        let measure = Measure::Throughput;
        let extent = Extent { threads: 1, operations, duration: None, measure };
        begin_counting(pmem);
        phase::run(db, data, ledger, &Phase::new(self.name, self.action), extent, 1)?;
        Store::sync(db)?;
        pmem.drain(self.class);
        Ok(pmem.snapshot())
    }
}
