//! What a sequence is made of.

use proptest::prelude::*;

use super::End;

/// Keys that a sequence uses.
pub(super) const KEYS: u64 = 60;

/// One step of a sequence. Numbers of keys are below [`KEYS`].
#[derive(Clone, Debug)]
pub(super) enum Operation {
    Put(u64, u64),
    Get(u64),
    Delete(u64),
    /// Changes the byte at this position (modulo the length) of a value, and a second one this far on.
    Update(u64, usize, usize),
    /// Changes all of a value.
    Replace(u64, u64),
    FetchAdd(u64, usize, u64),
    /// Whether the expected value is the right one.
    Swap(u64, u64, bool),
    SwapWord(u64, usize, u64, bool),
    MultiGet(Vec<u64>),
    MultiPut(Vec<u64>, u64),
    PutMany(u64, u64),
    DeleteMany(u64),
    Iterate,
    NewSession,
    Compact,
    Reopen(End),
}

pub(super) fn operation() -> impl Strategy<Value = Operation> {
    let key = 0..KEYS;
    let version = 0_u64..1 << 40;
    // Aligned as often as not.
    let position = || prop_oneof![(0_usize..6).prop_map(|word| 8 * word), 0_usize..40];
    let end = prop_oneof![Just(End::Close), Just(End::Drop), Just(End::Kill)];
    prop_oneof![
        12 => (key.clone(), version.clone()).prop_map(|(key, value)| Operation::Put(key, value)),
        4 => key.clone().prop_map(Operation::Get),
        6 => key.clone().prop_map(Operation::Delete),
        4 => (key.clone(), any::<usize>(), 0_usize..20)
            .prop_map(|(key, at, far)| Operation::Update(key, at, far)),
        2 => (key.clone(), version.clone())
            .prop_map(|(key, value)| Operation::Replace(key, value)),
        5 => (key.clone(), position(), any::<u64>())
            .prop_map(|(key, at, delta)| Operation::FetchAdd(key, at, delta)),
        3 => (key.clone(), version.clone(), any::<bool>())
            .prop_map(|(key, value, right)| Operation::Swap(key, value, right)),
        3 => (key.clone(), position(), any::<u64>(), any::<bool>())
            .prop_map(|(key, at, new, right)| Operation::SwapWord(key, at, new, right)),
        1 => prop::collection::vec(key.clone(), 0..40).prop_map(Operation::MultiGet),
        2 => (prop::collection::vec(key.clone(), 0..40), version.clone())
            .prop_map(|(keys, value)| Operation::MultiPut(keys, value)),
        2 => (key.clone(), version).prop_map(|(key, value)| Operation::PutMany(key, value)),
        1 => key.prop_map(Operation::DeleteMany),
        1 => Just(Operation::Iterate),
        1 => Just(Operation::NewSession),
        1 => Just(Operation::Compact),
        1 => end.prop_map(Operation::Reopen),
    ]
}
