//! What tables promise to engines.

mod merge;
mod persistent;
mod slot;
mod volatile;

use std::sync::Arc;

use chimera_pmem::{Extent, Hardware, Pmem, RealEnvironment};

use super::slot::decode;
use super::*;
use crate::index::Probe;
use crate::pool::small::small_pool;
use crate::pool::{BlockKind, Pool};

/// Where tables are stored.
mod sites {
    pub(super) const TABLE: chimera_pmem::Site = chimera_pmem::Site::new("tests.table");
}

/// Where tables lie: the pool's own bytes do not matter.
const AT: u64 = 64 << 10;
const OWNER: u64 = 77;

fn pool() -> Arc<Pool<Hardware>> {
    let pool = small_pool(Arc::new(RealEnvironment::new()), 1 << 18, 1 << 20);
    // So that there is memory.
    let _run = pool.take_run(BlockKind::new(1, "table"), 512, |_| ()).expect("room");
    pool
}

fn place(pool: &Pool<Hardware>, slots: u32) -> Extent {
    pool.pmem.check(AT, PersistentTable::bytes_of(slots)).expect("inside of the pool")
}

/// Well mixed.
fn mixed(number: u64) -> u64 {
    let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// A hash with its home at a slot of a table of 16, in shard 3, the same for each two keys.
fn hash_at(slot: u64, key: u64) -> u64 {
    3 << 50 | (key / 2) << 32 | slot << 28 | 1 << 20
}

/// The slot of a key's record. Its offset says which key and version it is.
fn slot_of(hash: u64, key: u64, version: u64, is_tombstone: bool) -> Slot {
    Slot::new(hash, 8 * (1 + key + (version << 20)), 24 + 8 * key, is_tombstone)
}

fn key_of(found: Found) -> u64 {
    (found.offset / 8 - 1) & 0xf_ffff
}

/// All locations of a hash, in the order of the probe.
fn in_volatile(table: VolatileTable<'_>, hash: u64) -> Vec<u64> {
    let mut found = Vec::new();
    assert_eq!(table.probe(hash, |entry| note(&mut found, hash, entry)), Probe::NotThis);
    found
}

fn in_persistent(
    pool: &Pool<Hardware>,
    table: PersistentTable,
    hash: u64,
) -> crate::types::error::Result<Vec<u64>> {
    let mut found = Vec::new();
    let answer = table.probe(&pool.pmem, hash, |entry| note(&mut found, hash, entry))?;
    assert_eq!(answer, Probe::NotThis);
    Ok(found)
}

fn note(found: &mut Vec<u64>, hash: u64, entry: Found) -> Probe<()> {
    assert_eq!(decode(hash, entry.location), Some(entry));
    found.push(entry.location);
    Probe::NotThis
}

/// Writes a table of these slots durably, and opens it.
fn written(pool: &Pool<Hardware>, slots: u32, entries: &[Slot]) -> PersistentTable {
    let mut image = Image::default();
    assert!(image.fill(slots, entries.iter().copied()));
    assert_eq!((image.slots(), image.len()), (slots, entries.len() as u32));
    let to = place(pool, slots);
    let table = image.write(&pool.pmem, to, OWNER, sites::TABLE);
    pool.pmem.fence(sites::TABLE);
    assert_eq!(PersistentTable::open(&pool.pmem, to, OWNER).unwrap(), table);
    table
}

#[test]
fn homes_are_spread_over_any_number_of_slots_and_never_sink() {
    for slots in [16, 48, 80, 512, 1104, 32_768, SLOTS_MAX] {
        assert_eq!(home(0, slots), 0);
        assert_eq!(home(u64::MAX, slots), slots - 1);
        let step = (1_u64 << 32) / u64::from(slots);
        for slot in (0..u64::from(slots)).step_by((slots / 16) as usize) {
            let hash = mixed(slot) << 32 | (slot * step + step / 2);
            assert!(
                home(hash, slots).abs_diff(slot as u32) <= 1 + (slots >> 10),
                "{slot} of {slots}"
            );
        }
        assert!((0..1000).map(|low| home(low << 22, slots)).is_sorted());
        // What chooses the shard plays no part.
        assert_eq!(home(0xabcd << 48 | 1 << 31, slots), home(1 << 31, slots));
    }
    let numbers: Vec<_> = chain(15 << 28, 16).collect();
    assert_eq!(numbers.len(), 16);
    assert_eq!(numbers[..3], [15, 0, 1]);
}

#[test]
fn a_table_for_so_many_entries_has_room_for_them() {
    for entries in [0, 1, 15, 16, 100, 61_035, 700_000_000] {
        for load in [1, 50, 75, 85, 100] {
            let Some(slots) = slots_for(entries, load) else {
                assert!(entries * 100 / u64::from(load) + 17 > SLOTS_MAX.into());
                continue;
            };
            assert!(slots.is_multiple_of(SLOTS_UNIT) && slots > 0);
            assert!(entries * 100 <= u64::from(slots) * u64::from(load));
            assert!(u64::from(slots) <= entries * 100 / u64::from(load) + 17);
        }
    }
    assert_eq!(
        (slots_for(10, 0), slots_for(u64::MAX, 50), slots_for(1 << 30, 99)),
        (None, None, None)
    );
}
