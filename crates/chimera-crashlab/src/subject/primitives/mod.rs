//! The structures of the primitives study: nodes and runs under each kind of failure atomicity, and the trees.
//!
//! None of them is a store of this project. They are tested because what is measured of them would mean nothing if it did not
//! survive a crash.

mod guarded;
mod runs;
mod tree;

use std::io;
use std::path::Path;
use std::sync::Arc;

use chimera_pmem::environment::OpenMode;
use chimera_pmem::{Environment, Operation, Pmem};
use chimera_primitives::PrimitivesError;
use chimera_primitives::atomicity::FailureAtomicity;
use chimera_primitives::layout::LayoutKind;
use chimera_primitives::tree::{CachedFpTree, FpTree, NvTree};
use serde::{Deserialize, Serialize};

use super::{Abilities, Failure, Store, Subject, Value};
use crate::simulated::{Machine, Simulated};

/// A structure, written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Primitive {
    /// A node of this layout whose changes are atomic in this way.
    Node(LayoutKind, FailureAtomicity),
    /// Runs, merged by pairs or all at once, directly or through a buffer.
    Runs {
        kind: FailureAtomicity,
        k_way: bool,
        buffered: bool,
    },
    FpTree,
    CachedFpTree,
    NvTree,
}

impl Primitive {
    /// Every structure.
    pub(crate) fn all() -> Vec<Self> {
        let nodes = LayoutKind::ALL.into_iter().flat_map(|layout| {
            FailureAtomicity::ALL.into_iter().map(move |kind| Self::Node(layout, kind))
        });
        let runs = FailureAtomicity::ALL.into_iter().flat_map(|kind| {
            [(false, false), (false, true), (true, false), (true, true)]
                .map(|(k_way, buffered)| Self::Runs { kind, k_way, buffered })
        });
        nodes.chain(runs).chain([Self::FpTree, Self::CachedFpTree, Self::NvTree]).collect()
    }
}

impl std::fmt::Display for Primitive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Node(layout, kind) => write!(f, "{layout} node, {kind}"),
            Self::Runs { kind, k_way, buffered } => {
                let how = if *k_way { "K-way" } else { "2-way" };
                let into = if *buffered { "buffered" } else { "direct" };
                write!(f, "runs, {kind}, {how}, {into}")
            }
            Self::FpTree => f.write_str("fptree"),
            Self::CachedFpTree => f.write_str("fptree-cached"),
            Self::NvTree => f.write_str("nvtree"),
        }
    }
}

/// What holds the value of each key.
trait Map: Send {
    fn get(&mut self, key: u64) -> Result<Option<Value>, PrimitivesError>;
    /// Stores a value; none removes the key, which is there.
    fn set(&mut self, key: u64, value: Option<&Value>) -> Result<(), PrimitivesError>;
    fn check(&mut self, records: u64) -> Result<(), PrimitivesError>;
    fn pmem(&self) -> &Simulated;
}

/// An open structure.
pub(crate) struct PrimitiveStore(Box<dyn Map>);

fn failure(error: PrimitivesError) -> Failure {
    match error {
        PrimitivesError::Full => Failure::Full,
        other => Failure::Wrong(other.to_string()),
    }
}

/// Bytes of a value.
fn to_bytes(value: &Value) -> Vec<u8> {
    value.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A value of bytes, of which there are enough.
fn from_bytes(bytes: &[u8]) -> Value {
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|number| u64::from_le_bytes(words[number]))
}

impl PrimitiveStore {
    /// Does an operation, so that tools can tell where it begins and ends.
    fn operation<T>(
        &mut self,
        operation: Operation,
        work: impl FnOnce(&mut dyn Map) -> Result<T, PrimitivesError>,
    ) -> Result<T, Failure> {
        let map = &mut *self.0;
        map.pmem().operation_begin(operation, 0);
        let outcome = work(map);
        map.pmem().operation_acknowledge();
        outcome.map_err(failure)
    }

    /// Changes a value that may not be there; what it was.
    fn change(
        &mut self,
        key: u64,
        change: impl FnOnce(Value) -> Option<Value>,
    ) -> Result<Option<Value>, Failure> {
        self.operation(Operation::Update, |map| {
            let found = map.get(key)?;
            if let Some(value) = found {
                map.set(key, change(value).as_ref())?;
            }
            Ok(found)
        })
    }
}

impl Store for PrimitiveStore {
    fn put(&mut self, _session: usize, key: u64, value: &Value) -> Result<bool, Failure> {
        self.operation(Operation::Insert, |map| {
            let is_new = map.get(key)?.is_none();
            map.set(key, Some(value))?;
            Ok(is_new)
        })
    }

    fn get(&mut self, _session: usize, key: u64) -> Result<Option<Value>, Failure> {
        self.operation(Operation::Get, |map| map.get(key))
    }

    fn delete(&mut self, _session: usize, key: u64) -> Result<bool, Failure> {
        self.change(key, |_| None).map(|found| found.is_some())
    }

    fn add(
        &mut self,
        _session: usize,
        key: u64,
        word: usize,
        delta: u64,
    ) -> Result<Option<u64>, Failure> {
        let found = self.change(key, |mut value| {
            value[word] = value[word].wrapping_add(delta);
            Some(value)
        })?;
        Ok(found.map(|value| value[word]))
    }

    fn replace(&mut self, _session: usize, key: u64, value: &Value) -> Result<bool, Failure> {
        self.change(key, |_| Some(*value)).map(|found| found.is_some())
    }

    fn end_session(&mut self, _session: usize) {}

    fn sync(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn check(&mut self, records: u64) -> Result<(), Failure> {
        self.0.check(records).map_err(failure)
    }

    fn close(self) -> Result<(), Failure> {
        Ok(())
    }
}

/// Maps the structure's file, which is made of zeros if it is not there yet.
fn map(
    machine: &Arc<Machine>,
    environment: &Arc<dyn Environment>,
    bytes: u64,
) -> io::Result<Simulated> {
    let path = Path::new("primitive");
    let (file, is_new) = match environment.open(path, OpenMode::ReadWrite) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            (environment.open(path, OpenMode::CreateNew)?, true)
        }
        opened => (opened?, false),
    };
    // A crash may have kept the name and lost the length.
    if is_new || file.length()? != bytes {
        file.set_length(bytes)?;
        file.sync()?;
        environment.sync_directory(Path::new(""))?;
    }
    let pmem = Simulated::new(machine);
    pmem.map(0, &file, 0, bytes)?;
    Ok(pmem)
}

impl Subject for Primitive {
    type Store = PrimitiveStore;

    fn image_bytes(&self) -> u64 {
        match self {
            Self::Node(..) | Self::Runs { .. } => 4096,
            Self::FpTree | Self::CachedFpTree | Self::NvTree => 8192,
        }
    }

    fn keys(&self) -> u64 {
        match self {
            Self::Node(..) | Self::Runs { .. } => 5,
            Self::FpTree | Self::CachedFpTree | Self::NvTree => 12,
        }
    }

    /// A killed process may leave what it stored and did not flush: nothing of this makes that durable.
    fn abilities(&self) -> Abilities {
        Abilities::OF_STRUCTURES
    }

    fn open(
        &self,
        machine: &Arc<Machine>,
        environment: &Arc<dyn Environment>,
    ) -> Result<PrimitiveStore, Failure> {
        let pmem = map(machine, environment, self.image_bytes())
            .map_err(|error| Failure::Wrong(format!("the structure's file: {error}")))?;
        let map = match *self {
            Self::Node(layout, kind) => guarded::open(pmem, layout, kind),
            Self::Runs { kind, k_way, buffered } => runs::open(pmem, kind, (k_way, buffered)),
            Self::FpTree => tree::open::<FpTree<Simulated>>(pmem),
            Self::CachedFpTree => tree::open::<CachedFpTree<Simulated>>(pmem),
            Self::NvTree => tree::open::<NvTree<Simulated>>(pmem),
        };
        map.map(PrimitiveStore).map_err(failure)
    }
}
