//! What the table promises to engines.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::thread;

use chimera_pmem::RealEnvironment;

use super::*;

fn table() -> RobinHoodTable {
    RobinHoodTable::new(Arc::new(RealEnvironment::new()), 2, 3, false).unwrap()
}

/// Well mixed.
fn hash_of(number: u64) -> u64 {
    let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

fn slot(hash: u64, number: u64) -> Slot {
    Slot::new(hash, 8 * (number + 1), 8, number % 2 == 1)
}

fn insert(table: &RobinHoodTable, hash: u64, number: u64) -> Result<(), NoRoom> {
    table.reserve(hash)?;
    table.insert(slot(hash, number));
    Ok(())
}

/// All locations of a hash, sorted.
fn locations(table: &RobinHoodTable, hash: u64) -> Vec<u64> {
    let mut all = Vec::new();
    let answer = table.find_once(hash, &mut |found: Found| {
        all.push(found.location);
        Probe::<()>::NotThis
    });
    assert_eq!(answer, Some(Probe::NotThis));
    all.sort_unstable();
    all
}

/// All entries from a hash on, by a listing.
fn listed(table: &RobinHoodTable, from: u64) -> Vec<(u64, u64)> {
    let (mut all, mut next) = (Vec::new(), Some(from));
    while let Some(from) = next {
        let mut part = Vec::new();
        next = table.list(from, |slot| part.push((slot.hash, slot.location)));
        assert!(next.is_none_or(|next| next > from));
        assert!(part.iter().all(|(hash, _)| *hash >= from));
        assert!(part.iter().all(|(hash, _)| next.is_none_or(|next| *hash < next)));
        part.sort_unstable();
        all.extend(part);
    }
    all
}

/// Entries by hash and location.
type Model = BTreeMap<u64, Vec<u64>>;

fn assert_holds(table: &RobinHoodTable, model: &Model) {
    let all = |from| {
        let range = model.range(from..);
        let pairs = range.flat_map(|(hash, all)| all.iter().map(|location| (*hash, *location)));
        pairs.collect::<Vec<_>>()
    };
    assert_eq!(table.len(), all(0).len() as u64);
    assert!(listed(table, 0) == all(0));
    for from in [1, 1 << 61, hash_of(3), hash_of(7) + 1, u64::MAX] {
        assert!(listed(table, from) == all(from));
    }
    for (hash, locations_of) in model {
        assert_eq!(locations(table, *hash), *locations_of);
    }
    assert_order(table);
}

/// No entry is farther from its home than the one in front of it, and one more.
fn assert_order(table: &RobinHoodTable) {
    let shape = table.shape();
    for number in 0..table.slots() {
        let (one, other) = (table.load(number), table.load(shape.next(number)));
        if other.location != 0 {
            let distance = shape.distance(other.hash, shape.next(number));
            let most = if one.location == 0 { 0 } else { shape.distance(one.hash, number) + 1 };
            assert!(distance <= most, "slot {number}");
        }
    }
}

#[test]
fn the_table_holds_what_a_model_holds_while_it_grows_and_shrinks() {
    let (table, mut model) = (table(), Model::new());
    for number in 0..4000_u64 {
        // Some hashes have several entries, some begin with the same bits.
        let hash = match number % 10 {
            0 => hash_of(number / 40),
            1 => u64::MAX - hash_of(number) % 64,
            _ => hash_of(number),
        };
        insert(&table, hash, number).unwrap();
        let all = model.entry(hash).or_default();
        all.push(slot(hash, number).location);
        all.sort_unstable();
        let other = hash_of(number * 7 % (number + 1));
        if let Some(all) = model.get_mut(&other) {
            let (old, new) = (all[0], slot(other, 10_000 + number).location);
            assert!(table.replace(other, old, new));
            assert!(!table.replace(other, old, new), "not any more");
            all[0] = new;
            all.sort_unstable();
        }
        let gone = hash_of(number / 3);
        if number % 2 == 0
            && let Some(all) = model.get_mut(&gone)
        {
            assert!(table.remove(gone, all[0]) && !table.remove(gone, all[0]));
            all.remove(0);
            if all.is_empty() {
                model.remove(&gone);
            }
        }
        if number.is_power_of_two() {
            assert_holds(&table, &model);
        }
    }
    assert_holds(&table, &model);
    for (hash, all) in std::mem::take(&mut model) {
        assert!(all.into_iter().all(|location| table.remove(hash, location)));
    }
    assert_holds(&table, &model);
}

#[test]
fn an_entry_takes_20_to_40_bytes_once_there_are_some() {
    let table = table();
    for number in 0..100_000 {
        insert(&table, hash_of(number), number).unwrap();
        let bytes = (table.bytes() - size_of_val(&*table.parts) as u64) as f64;
        if number > 2000 {
            // Parts are not filled quite evenly.
            assert!((20.0..45.0).contains(&(bytes / (number + 1) as f64)), "{number}: {bytes}");
        }
    }
}

#[test]
fn a_part_that_is_full_on_purpose_does_not_grow_the_table_for_ever() {
    let table = RobinHoodTable::new(Arc::new(RealEnvironment::new()), 6, 3, false).unwrap();
    let error = (0..10_000).find_map(|number| insert(&table, number, number).err());
    assert_eq!(error, Some(NoRoom::TooManyCollisions(TooManyCollisions)));
    assert_eq!((table.slots(), table.len()), (8192, 102));
    insert(&table, 1 << 63, 1).unwrap();
    assert_eq!(locations(&table, 1 << 63).len(), 1);
}

#[test]
fn room_that_was_reserved_is_there_and_can_be_given_up() {
    let table = table();
    for _ in 0..1000 {
        table.reserve(5).unwrap();
        table.release(5);
    }
    assert_eq!((table.len(), table.slots()), (0, 32));
    (0..6).for_each(|_| table.reserve(5).unwrap());
    assert_eq!(table.slots(), 32);
    table.reserve(5).unwrap();
    assert_eq!((table.len(), table.slots()), (7, 64));
}

#[test]
fn an_answer_counts_only_if_nobody_has_changed_the_part_meanwhile() {
    let table = table();
    insert(&table, 5, 1).unwrap();
    let find = |change: &dyn Fn()| {
        table.find_once(5, &mut |found| {
            change();
            Probe::Found(found.location)
        })
    };
    let found = Some(Probe::Found(slot(5, 1).location));
    assert_eq!(find(&|| ()), found);
    assert_eq!(find(&|| insert(&table, 6, 2).unwrap()), None);
    assert_eq!(find(&|| assert!(table.replace(6, slot(6, 2).location, 24))), None);
    assert_eq!(find(&|| assert!(table.remove(6, 24))), None);
    assert_eq!(find(&|| table.grow(table.shape()).unwrap()), None);
    assert_eq!(find(&|| insert(&table, 1 << 63, 2).unwrap()), found, "another part");
    let guard = table.lock(6);
    assert_eq!(find(&|| ()), None);
    drop(guard);
    assert_eq!(find(&|| ()), found);
}

#[test]
fn readers_find_what_is_there_while_entries_move_and_the_table_grows() {
    let table = table();
    let (stay, is_over) = (200, AtomicBool::new(false));
    (0..stay).for_each(|number| insert(&table, hash_of(number), number).unwrap());
    let find = |hash| {
        loop {
            if let Some(answer) = table.find_once(hash, &mut |it| Probe::Found(it.location)) {
                return answer;
            }
            thread::yield_now();
        }
    };
    thread::scope(|scope| {
        for reader in 0..2 {
            let (find, is_over) = (&find, &is_over);
            scope.spawn(move || {
                let mut number = reader;
                while !is_over.load(Ordering::Relaxed) {
                    number = (number + 1) % stay;
                    let hash = hash_of(number);
                    assert_eq!(find(hash), Probe::Found(slot(hash, number).location));
                    assert_eq!(find(hash_of(1_000_000 + number)), Probe::NotThis);
                }
            });
        }
        for number in 1000..9000 {
            let hash = hash_of(number);
            insert(&table, hash, number).unwrap();
            if number % 4 > 0 {
                assert!(table.remove(hash, slot(hash, number).location));
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(table.slots() > 2048);
}

#[test]
fn writers_of_several_threads_lose_nothing() {
    let table = table();
    let (writers, each) = (3_u64, 3000);
    thread::scope(|scope| {
        for writer in 0..writers {
            let table = &table;
            scope.spawn(move || {
                for number in (0..each).map(|number| writers * number + writer) {
                    let hash = hash_of(number);
                    insert(table, hash, number).unwrap();
                    if number % 7 == 0 {
                        assert!(table.remove(hash, slot(hash, number).location));
                    }
                }
            });
        }
    });
    let numbers = (0..writers * each).filter(|number| number % 7 != 0);
    let entry = |number| (hash_of(number), vec![slot(hash_of(number), number).location]);
    assert_holds(&table, &numbers.map(entry).collect());
}
