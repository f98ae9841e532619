//! Layouts against models, formulas and damage.

mod costs;
mod damage;
mod geometry;
mod model;

use std::sync::Arc;

use chimera_pmem::environment::AnonymousFile;
use chimera_pmem::instrumented::InstrumentedOptions;
use chimera_pmem::{Hardware, HardwareOptions, Instrumented, Pmem};

use super::*;
use crate::error::PrimitivesError;

/// Memory of a few nodes whose use is counted.
pub(super) fn memory(bytes: u64) -> Instrumented<Hardware> {
    let options = HardwareOptions { reserve_bytes: 1 << 26, ..HardwareOptions::default() };
    let hardware = Hardware::new(options).expect("address space");
    let file: Arc<dyn chimera_pmem::environment::File> = Arc::new(AnonymousFile::new(bytes));
    hardware.map(0, &file, 0, bytes).expect("memory");
    Instrumented::new(hardware, InstrumentedOptions::default())
}

/// The paper's geometry.
pub(super) fn published(kind: LayoutKind, node_bytes: u32) -> Geometry {
    Geometry::new(NodeShape::published(kind, node_bytes)).expect("it fits")
}

/// Keys of any width that follow from a number, in its order.
pub(super) fn key_of(geometry: &Geometry, number: u64) -> Vec<u64> {
    let mut key = vec![0; geometry.key_words];
    // Long keys differ in their last word alone, so that all words are compared.
    key[geometry.key_words - 1] = number;
    key
}

/// The value of a key.
pub(super) fn value_of(geometry: &Geometry, number: u64) -> Vec<u8> {
    (0..geometry.shape.value_bytes).map(|byte| (number * 31 + u64::from(byte)) as u8).collect()
}

/// Everything in a node, in the order of keys.
pub(super) fn contents<L: Layout, P: Pmem>(node: Node<'_, P>) -> Vec<(Vec<u64>, Vec<u8>)> {
    let mut all = Vec::new();
    L::iterate(node, Walk::Bitmap, |index| {
        let mut key = Vec::new();
        node.read_key(index, &mut key);
        let mut value = vec![0; node.geometry.shape.value_bytes as usize];
        node.read_value(index, &mut value);
        all.push((key, value));
    })
    .expect("it iterates");
    all.sort();
    all
}

/// Inserts keys one after the other.
pub(super) fn insert_all<L: Layout, P: Pmem>(
    node: Node<'_, P>,
    numbers: impl IntoIterator<Item = u64>,
) {
    let mut scratch = Scratch::default();
    for number in numbers {
        let key = key_of(node.geometry, number);
        let rank = L::rank_of(node, &key).expect("a rank");
        let value = value_of(node.geometry, number);
        L::insert(node, rank, &key, &value, &mut scratch).expect("it has room");
    }
}
