//! The trees, with leaves of four records: so that they split, and become empty.

use chimera_primitives::PrimitivesError;
use chimera_primitives::tree::{Tree, TreeShape};

use super::{Map, from_bytes, to_bytes};
use crate::simulated::Simulated;
use crate::subject::{VALUE_BYTES, Value};

const SHAPE: TreeShape =
    TreeShape { key_bytes: 8, value_bytes: VALUE_BYTES as u32, leaf_entries: 4 };

struct TreeMap<T>(T);

/// Opens the tree.
pub(super) fn open<T: Tree<Simulated> + Send + 'static>(
    pmem: Simulated,
) -> Result<Box<dyn Map>, PrimitivesError> {
    Ok(Box::new(TreeMap(T::open(pmem, SHAPE)?)))
}

impl<T: Tree<Simulated> + Send> Map for TreeMap<T> {
    fn get(&mut self, key: u64) -> Result<Option<Value>, PrimitivesError> {
        let mut value = Vec::new();
        let is_there = self.0.get(&key.to_be_bytes(), &mut value)?;
        Ok(is_there.then(|| from_bytes(&value)))
    }

    fn set(&mut self, key: u64, value: Option<&Value>) -> Result<(), PrimitivesError> {
        match value {
            Some(value) => self.0.put(&key.to_be_bytes(), &to_bytes(value)).map(drop),
            None => self.0.delete(&key.to_be_bytes()).map(drop),
        }
    }

    fn check(&mut self, records: u64) -> Result<(), PrimitivesError> {
        self.0.check()?;
        let mut keys = Vec::new();
        self.0.scan(&[0; 8], usize::MAX, |key, _| keys.push(key.to_vec()))?;
        if keys.len() as u64 == records && keys.is_sorted() {
            return Ok(());
        }
        Err(PrimitivesError::Corrupted { what: "the tree has other records", at: 0 })
    }

    fn pmem(&self) -> &Simulated {
        self.0.pmem()
    }
}
