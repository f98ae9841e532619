//! [`ShapeArguments`]: what all benchmarks of ChameleonDB have beside what all benchmarks have.

use chimera::ChameleonOptions;

use super::super::common::Common;
use super::super::given::{NO_DURATION, NOT_COUNTED, Unused};
use super::sides::Side;
use crate::driver::engine::EngineChoice;
use crate::driver::setup::{Reclaim, Setup, Sizing};
use crate::driver::tuning::Tuning;
use crate::error::{BenchError, Result};
use crate::published::paper;

/// Shards of the default size.
const SHARDS: u64 = 16;
/// Repetitions of the default size.
const REPETITIONS: usize = 3;

/// The sizes of ChameleonDB.
#[derive(Clone, Debug, clap::Args)]
pub struct ShapeArguments {
    /// Shards of the index, a power of two [default: so many that each has 61,440 records at most]
    #[arg(long, value_name = "N", help_heading = "Store")]
    pub shards: Option<u32>,
    /// Bytes of a MemTable
    #[arg(long, default_value_t = Tuning::published(0).memtable_bytes, value_name = "BYTES")]
    #[arg(help_heading = "Store")]
    pub memtable_bytes: u32,
    /// Bytes of records that a session gathers before they are made durable; 0 for none. Not of pmem-hash
    #[arg(long, default_value_t = published_batch_bytes(), value_name = "BYTES")]
    #[arg(help_heading = "Store")]
    pub batch_bytes: u32,
}

fn published_batch_bytes() -> u32 {
    (paper("chameleondb").value("section2.5.batch_kib") as u32) << 10
}

/// Keys of a shard in the paper.
fn keys_per_shard() -> u64 {
    paper("chameleondb").value("table1.keys_per_shard") as u64
}

/// What no benchmark of ChameleonDB uses.
pub(super) const UNUSED: &[Unused] = &[
    ("engine", "give --sides"),
    ("layout", "the stores have one layout each"),
    ("any-size", "the stores take any size anyway"),
    ("verify-reads", "the stores that are compared verify each get"),
    ("order", "the stores that are compared have no order"),
    ("trees", "the stores that are compared have no order"),
    NO_DURATION,
    NOT_COUNTED,
];

impl ShapeArguments {
    /// What the options are of a store for so many records.
    pub(super) fn tuning(&self, side: &Side, records: u64) -> Tuning {
        let published = Tuning::published(records);
        let threshold = ChameleonOptions::GET_PROTECT_PUBLISHED;
        Tuning {
            shards: self.shards.unwrap_or(published.shards),
            memtable_bytes: self.memtable_bytes,
            batch_bytes: if side.has_batches { self.batch_bytes } else { 0 },
            get_protect: side.protects_gets.then_some(threshold),
            blind_puts: true,
            change: side.change,
            ..published
        }
    }

    /// Refuses the shape of levels where no side has any.
    ///
    /// # Errors
    /// When it is given.
    pub(super) fn refuse_without_levels(common: &Common, sides: &[Side]) -> Result<()> {
        if sides.iter().any(Side::has_levels) {
            return Ok(());
        }
        common.given.refuse_all(&["shards", "memtable-bytes"], "these stores have no levels")
    }

    /// What is to be measured of each side, with records of 8 + 8 bytes unless told otherwise. Nothing is reclaimed in the
    /// background, because the stores that ChameleonDB is compared with never reclaim anything.
    ///
    /// # Errors
    /// When the arguments make no sense.
    pub(super) fn setups(&self, common: &Common, sides: &[Side]) -> Result<Vec<Setup>> {
        common.given.refuse(UNUSED)?;
        let refuse = |what: String| Err(BenchError::Arguments(what));
        for (number, side) in sides.iter().enumerate() {
            if sides[..number].iter().any(|other| other.name == side.name) {
                return refuse(format!("store `{side}` is given twice"));
            }
        }
        if sides.is_empty() {
            return refuse("there is nothing to measure: give --sides".to_owned());
        }
        if !sides.iter().any(|side| side.has_batches) {
            common.given.refuse_all(&["batch-bytes"], "these stores have no batches")?;
        }
        let records = common.records.unwrap_or(if common.quick {
            keys_per_shard()
        } else {
            SHARDS * keys_per_shard()
        });
        let common = Common {
            records: Some(records),
            operations: Some(common.operations.unwrap_or((records / 4).max(1))),
            repetitions: common.repetitions.or((!common.quick).then_some(REPETITIONS)),
            ..common.clone()
        };
        let setup = common.setup((8, 8))?;
        let sizing = if setup.sizing == Sizing::Fixed { Sizing::Any } else { setup.sizing };
        let of_side = |side: &Side| Setup {
            engine: EngineChoice::Store(side.engine),
            sizing,
            reclaim: Some(Reclaim { percent: 0, bytes_per_second: 1 }),
            tuning: Some(self.tuning(side, records)),
            ..setup.clone()
        };
        Ok(sides.iter().map(of_side).collect())
    }
}
