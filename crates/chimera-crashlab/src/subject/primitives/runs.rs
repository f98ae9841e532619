//! Runs: every write is moved to a run of its own, and four of them are merged.

use chimera_primitives::PrimitivesError;
use chimera_primitives::atomicity::{
    FailureAtomicity, L0_RUNS, Merge, MergeInto, RunBuffer, RunGeometry, Runs,
};

use super::{Map, from_bytes, to_bytes};
use crate::simulated::Simulated;
use crate::subject::{VALUE_BYTES, Value};

/// Entries of the second level: keys, whether there or gone.
const SECOND: usize = 6;
/// Behind a value: whether the key is there or gone.
const THERE: u64 = 1;
const GONE: u64 = 2;

struct RunMap {
    pmem: Simulated,
    runs: Runs,
    how: Merge,
    into: MergeInto,
}

/// Opens the runs.
pub(super) fn open(
    pmem: Simulated,
    kind: FailureAtomicity,
    (k_way, buffered): (bool, bool),
) -> Result<Box<dyn Map>, PrimitivesError> {
    let geometry = RunGeometry { key_words: 1, value_bytes: VALUE_BYTES + 8, entries: 1 };
    let runs = Runs::open(&pmem, 0, geometry, SECOND, kind)?;
    let how = if k_way { Merge::KWay } else { Merge::TwoWay };
    let into = if buffered { MergeInto::Buffered } else { MergeInto::Direct };
    Ok(Box::new(RunMap { pmem, runs, how, into }))
}

impl Map for RunMap {
    fn get(&mut self, key: u64) -> Result<Option<Value>, PrimitivesError> {
        let mut found = Vec::new();
        if !self.runs.get(&self.pmem, &[key], &mut found)? {
            return Ok(None);
        }
        let is_there = found[VALUE_BYTES..] == THERE.to_le_bytes();
        Ok(is_there.then(|| from_bytes(&found)))
    }

    fn set(&mut self, key: u64, value: Option<&Value>) -> Result<(), PrimitivesError> {
        if self.runs.filled(&self.pmem)? == L0_RUNS {
            self.runs.merge(&self.pmem, self.how, self.into)?;
        }
        let flag = if value.is_some() { THERE } else { GONE };
        let mut bytes = to_bytes(value.unwrap_or(&Value::default()));
        bytes.extend(flag.to_le_bytes());
        let mut buffer = RunBuffer::default();
        buffer.push(&[key], &bytes);
        self.runs.push(&self.pmem, &buffer)
    }

    fn check(&mut self, _records: u64) -> Result<(), PrimitivesError> {
        self.runs.second_count(&self.pmem).map(drop)
    }

    fn pmem(&self) -> &Simulated {
        &self.pmem
    }
}
