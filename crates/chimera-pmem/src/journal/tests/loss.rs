//! What is said to be lost for damage at each place.

use super::*;
use crate::journal::entry::end_mark;

/// Bytes of an entry of one line.
const ENTRY: u64 = 104;
/// Entries in the journal, and how many of them are synced.
const ENTRIES: u64 = 6;
const SYNCED: u64 = 4;
/// Position of the first one, and where it lies.
const FIRST: u64 = CAPACITY + 8;
const FIRST_AT: u64 = DATA_AT + 8;

/// The journal of a pool that put a word into each of the first lines.
fn journal() -> Arc<dyn File> {
    let pool = Pool::create(GROUP);
    for number in 0..ENTRIES {
        pool.put(number * 64, number + 1);
        if number + 1 == SYNCED {
            pool.journal().sync().unwrap();
        }
    }
    open(&pool.files, "journal")
}

fn flip(file: &dyn File, at: u64, bit: u64) {
    let mut byte = [0];
    file.read_at(at, &mut byte).unwrap();
    file.write_at(at, &[byte[0] ^ 1 << bit]).unwrap();
}

/// How many entries are read, and of what is lost: the place, entries, bytes.
type Found = (u64, Option<(u64, u64, u64)>);

fn found(file: &dyn File, boot_id: u64) -> Found {
    let contents = Contents::read(file, boot_id, &no_data).unwrap().unwrap();
    let lost = contents.damage().map(|damage| (damage.at, damage.entries, damage.bytes));
    if let Some(damage) = contents.damage() {
        assert!(damage.what.contains(&format!("at byte {}", damage.at)), "{damage:?}");
    }
    (contents.lines().end() / 64, lost)
}

/// The entries from `entry` on are lost.
fn lost_from(entry: u64) -> Found {
    let entries = ENTRIES - entry;
    (entry, Some((FIRST_AT + entry * ENTRY, entries, entries * ENTRY)))
}

#[test]
fn each_flipped_bit_is_told_with_the_entries_and_bytes_that_it_costs() {
    let file = journal();
    for at in 0..ENTRIES * ENTRY + 8 {
        let entry = at / ENTRY;
        let bit = at % 8;
        flip(&*file, FIRST_AT + at, bit);
        // No power was lost: without the end mark it is not known that nothing was behind it.
        let expected = match entry {
            ENTRIES => (ENTRIES, Some((FIRST_AT + ENTRIES * ENTRY, 1, 0))),
            _ => lost_from(entry),
        };
        assert_eq!(found(&*file, BOOT), expected, "byte {at}");
        // After a power loss only what was synced is missed. The entries behind the sync know of it.
        let expected = if entry < SYNCED { lost_from(entry) } else { (entry, None) };
        assert_eq!(found(&*file, NEXT_BOOT), expected, "byte {at}, after a power loss");
        flip(&*file, FIRST_AT + at, bit);
    }
    assert_eq!(found(&*file, BOOT), (ENTRIES, None));
    assert_eq!(found(&*file, NEXT_BOOT), (ENTRIES, None));
}

#[test]
fn without_the_end_mark_the_last_whole_entry_says_how_much_is_lost() {
    let file = journal();
    flip(&*file, FIRST_AT + ENTRIES * ENTRY, 0);
    for entry in 0..ENTRIES - 1 {
        flip(&*file, FIRST_AT + entry * ENTRY + 50, 3);
        assert_eq!(found(&*file, BOOT), lost_from(entry));
        if entry < SYNCED {
            assert_eq!(found(&*file, NEXT_BOOT), lost_from(entry));
        }
        flip(&*file, FIRST_AT + entry * ENTRY + 50, 3);
    }
    // The last one says its length itself, unless that is damaged, too.
    let last = ENTRIES - 1;
    let last_at = FIRST_AT + last * ENTRY;
    flip(&*file, last_at + 50, 3);
    assert_eq!(found(&*file, BOOT), lost_from(last));
    flip(&*file, last_at + 24, 0);
    assert_eq!(found(&*file, BOOT), (last, Some((last_at, 1, 0))));
}

#[test]
fn entries_behind_an_end_mark_are_damage_as_long_as_the_machine_runs() {
    let file = journal();
    for entry in 0..ENTRIES {
        let at = FIRST_AT + entry * ENTRY;
        let mut word = [0; 8];
        file.read_at(at, &mut word).unwrap();
        file.write_at(at, &end_mark(FIRST + entry * ENTRY, 99).to_le_bytes()).unwrap();
        let behind = ENTRIES - entry - 1;
        // The mark says that there was no entry at this place.
        let lost = (behind > 0).then_some((at, behind, (behind + 1) * ENTRY));
        assert_eq!(found(&*file, BOOT), (entry, lost));
        file.write_at(at, &word).unwrap();
    }
}
