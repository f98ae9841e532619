//! What is in the file: laps, gaps, damage, hostile bytes.

use zerocopy::IntoBytes;

use super::*;

/// A pool whose journal holds `count` entries of a line each, 104 bytes, the first `synced` synced.
fn filled(count: u64, synced: u64) -> Pool {
    let pool = Pool::create(GROUP);
    for number in 0..count {
        pool.put(number * 64, number + 1);
        if number + 1 == synced {
            pool.journal().sync().unwrap();
        }
    }
    pool
}

/// Bytes of an entry of one line.
const ENTRY: u64 = 104;
/// Where the first one is of a pool that was just made: behind the end marks of two lives.
const FIRST_AT: u64 = DATA_AT + 8;

fn read(pool: &Pool, boot_id: u64) -> io::Result<Contents> {
    Ok(Contents::read(&*open(&pool.files, "journal"), boot_id, &no_data)?.unwrap())
}

/// The lines of the prefix after a power loss, and whether that is damage.
fn lines_in(pool: &Pool) -> io::Result<u64> {
    let contents = read(pool, NEXT_BOOT)?;
    match contents.damage() {
        Some(damage) => Err(damaged(damage.what.clone())),
        None => Ok(contents.lines().end() / 64),
    }
}

/// The lines of the prefix after the end of the process, and what is lost, in entries and bytes.
fn killed(pool: &Pool) -> (u64, Option<(u64, u64, u64)>) {
    let contents = read(pool, BOOT).unwrap();
    let lost = contents.damage().map(|damage| (damage.at, damage.entries, damage.bytes));
    (contents.lines().end() / 64, lost)
}

fn bytes_of(pool: &Pool) -> Vec<u8> {
    let file = open(&pool.files, "journal");
    let mut bytes = vec![0; file.length().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

fn change(pool: &Pool, at: u64, how: impl Fn(u8) -> u8) {
    let file = open(&pool.files, "journal");
    let mut byte = [0];
    file.read_at(at, &mut byte).unwrap();
    file.write_at(at, &[how(byte[0])]).unwrap();
}

#[test]
fn every_flipped_bit_of_an_entry_ends_the_prefix() {
    for byte in 0..104 {
        let pool = filled(5, 0);
        change(&pool, FIRST_AT + 2 * ENTRY + byte, |old| old ^ 1 << (byte % 8));
        assert_eq!(lines_in(&pool).unwrap(), 2, "byte {byte}");
        let lost = Some((FIRST_AT + 2 * ENTRY, 3, 3 * ENTRY));
        assert_eq!(killed(&pool), (2, lost), "byte {byte}: no power was lost");
    }
}

/// Where all that was written is there, the prefix ends at the end mark and nowhere else.
#[test]
fn after_a_kill_the_last_entry_and_the_end_mark_are_missed_too() {
    for byte in 0..ENTRY + 8 {
        for how in [|old: u8| old ^ 0x10, |old| u8::from(old == 0)] {
            let pool = filled(5, 0);
            assert_eq!(killed(&pool), (5, None));
            change(&pool, FIRST_AT + 4 * ENTRY + byte, how);
            let (lines, lost) = killed(&pool);
            let (at, entries, bytes) = lost.expect("noticed");
            let is_end = byte >= ENTRY;
            assert_eq!(
                (lines, at),
                (4 + u64::from(is_end), FIRST_AT + lines * ENTRY),
                "byte {byte}"
            );
            // Without the end mark it is not known that nothing was behind it.
            let expected = (1, if is_end { 0 } else { ENTRY });
            assert_eq!((entries, bytes), expected, "byte {byte}");
        }
    }
}

#[test]
fn after_a_kill_zeroed_exchanged_and_older_pages_are_missed() {
    const PAGE: usize = 4096;
    let entries = 120;
    let pool = filled(entries, 0);
    let whole = bytes_of(&pool);
    let file = open(&pool.files, "journal");
    let used = FIRST_AT as usize..(FIRST_AT + entries * ENTRY) as usize + 8;
    let pages: Vec<_> =
        (used.start / PAGE..used.end.div_ceil(PAGE)).map(|page| page * PAGE).collect();
    assert_eq!(pages.len(), 4);
    let older = bytes_of(&filled(entries / 2, 0));
    let check = |changed: &[u8], what: &str| {
        file.write_at(0, changed).unwrap();
        let (lines, lost) = killed(&pool);
        let (at, lost_entries, _) = lost.unwrap_or_else(|| panic!("{what} is not noticed"));
        assert_eq!(at, FIRST_AT + lines * ENTRY, "{what}");
        assert!(lines < entries && lost_entries > 0, "{what}: {lines} lines, {lost_entries} lost");
    };
    for &page in &pages {
        let mut changed = whole.clone();
        changed[page..page + PAGE].fill(0);
        check(&changed, &format!("a zeroed page at {page}"));
        for &other in pages.iter().filter(|other| **other > page) {
            let mut changed = whole.clone();
            changed[page..page + PAGE].copy_from_slice(&whole[other..other + PAGE]);
            changed[other..other + PAGE].copy_from_slice(&whole[page..page + PAGE]);
            check(&changed, &format!("pages {page} and {other} exchanged"));
        }
        if page != pages[0] && page != pages[3] {
            let mut changed = whole.clone();
            changed[page..page + PAGE].copy_from_slice(&older[page..page + PAGE]);
            check(&changed, &format!("an older page at {page}"));
        }
    }
    for word in (used.start..used.end).step_by(8) {
        let mut changed = whole.clone();
        changed[word..word + 8].fill(0);
        // The end mark is the one word with no entry behind it; and of words that are zero nothing is missed.
        if word + 8 < used.end && changed != whole {
            check(&changed, &format!("a zeroed word at {word}"));
        }
    }
}

/// Every state that a process can leave that is killed while it appends.
#[test]
fn a_kill_leaves_a_whole_entry_or_none() {
    let (file, pool) = pace::slow(GROUP);
    // Around the end of the ring, too: 10 and 1 lines for an entry.
    for round in 0..2000_u64 {
        let lines = if round % 2 == 0 { 1 } else { 10 };
        let at = round % 64 * 640;
        let before = bytes_of(&pool);
        lock(&file.writes).clear();
        let whole = pool.memory.check(at, lines * 64).unwrap();
        pool.memory.copy(whole, &vec![round as u8; lines as usize * 64], SITE);
        pool.memory.flush(whole, SITE);
        pool.memory.fence(SITE);
        let writes = std::mem::take(&mut *lock(&file.writes));
        let is_at_end = writes.len() > 2;
        if round > 3 && !is_at_end {
            continue;
        }
        let killed = open(&pool.files, "killed_or_new");
        let mut left = before;
        let mut words = writes.iter().flat_map(|(at, bytes)| {
            bytes
                .chunks_exact(8)
                .enumerate()
                .map(move |(number, word)| (at + 8 * number as u64, word))
        });
        let expected = read(&pool, BOOT).unwrap();
        assert_eq!(expected.damage(), None);
        let total = words.clone().count();
        for stored in 0..=total {
            killed.write_at(0, &left).unwrap();
            let contents = Contents::read(&*killed, BOOT, &no_data).unwrap().unwrap();
            assert_eq!(contents.damage(), None, "{stored} of {total} words of entry {round}");
            let is_whole = contents.end() == expected.end();
            assert_eq!(is_whole, stored == total, "{stored} of {total} words of entry {round}");
            if let Some((at, word)) = words.next() {
                left[at as usize..at as usize + 8].copy_from_slice(word);
            }
        }
    }
}

#[test]
fn a_gap_before_what_was_synced_is_damage() {
    let pool = filled(6, 4);
    change(&pool, FIRST_AT + 2 * ENTRY + 50, |old| old ^ 1);
    let error = lines_in(&pool).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    assert!(error.to_string().contains(&(FIRST_AT + 2 * ENTRY).to_string()), "{error}");
    // The fifth entry, the first one behind the sync, says so; without it and its followers nothing
    // tells the damage from a power loss.
    for entry in [4, 5] {
        change(&pool, FIRST_AT + entry * ENTRY + 50, |old| old ^ 1);
    }
    assert_eq!(lines_in(&pool).unwrap(), 2);
}

#[test]
fn entries_behind_a_gap_never_come_back() {
    let pool = filled(6, 0);
    change(&pool, FIRST_AT + 2 * ENTRY + 50, |old| old ^ 1);
    let files = pool.files.clone();
    drop(pool);
    let pool = Pool::open(files, GROUP);
    assert_eq!(pool.replayed()[..7 * 8].iter().filter(|word| **word != 0).count(), 2);
    // As long as the lost one, at any place where it could join what follows.
    for number in 0..3 {
        pool.put(number * 64, 100 + number);
        assert_eq!(pool.replayed()[3 * 8..6 * 8].iter().sum::<u64>(), 0);
    }
}

#[test]
fn one_damaged_header_is_survived_and_two_are_not() {
    for byte in 0..64 {
        for copies in [&[0][..], &[4096], &[0, 4096]] {
            let pool = filled(3, 3);
            for copy in copies {
                change(&pool, copy + byte, |old| old ^ 4);
            }
            match lines_in(&pool) {
                Ok(lines) => assert!(copies.len() == 1 && lines == 3, "byte {byte} of {copies:?}"),
                Err(error) => {
                    assert!(copies.len() == 2, "byte {byte} of {copies:?}: {error}");
                    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
                }
            }
        }
    }
}

#[test]
fn a_journal_that_was_being_made_holds_nothing() {
    let files = MemoryFiles::new();
    let file = files.open(Path::new("journal"), OpenMode::CreateNew).unwrap();
    for length in [0, 100, 8192, 20_000] {
        file.set_length(length).unwrap();
        assert!(Contents::read(&*file, BOOT, &no_data).unwrap().is_none());
    }
    file.write_at(19_000, b"x").unwrap();
    assert!(Contents::read(&*file, BOOT, &no_data).is_err(), "blank headers before something else");
}

#[test]
fn other_versions_and_a_cut_file_are_named() {
    for (version, checksum_at, text) in [(1, 7, "program that wrote it"), (5, 9, "newer program")] {
        let pool = filled(3, 3);
        let file = open(&pool.files, "journal");
        let mut words = Header::read(&*file).unwrap().unwrap().encode();
        words[1] = version;
        words[checksum_at] = xxhash_rust::xxh3::xxh3_64(IntoBytes::as_bytes(&words[..checksum_at]));
        file.write_at(0, IntoBytes::as_bytes(&words)).unwrap();
        let error = lines_in(&pool).unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
        let other = error.get_ref().and_then(|inner| inner.downcast_ref::<OtherVersion>());
        assert_eq!(other, Some(&OtherVersion { found: version }));
    }
    let pool = filled(3, 3);
    open(&pool.files, "journal").set_length(DATA_AT + CAPACITY - 1).unwrap();
    assert!(lines_in(&pool).unwrap_err().to_string().contains("it was cut"));
}

/// At each moment of its making a journal holds nothing, and of a later one no entry of an earlier one.
#[test]
fn a_journal_that_is_made_or_emptied_is_whole_at_any_moment() {
    let (file, pool) = pace::slow(GROUP);
    pool.put(0, 1);
    let contents = read(&pool, BOOT).unwrap();
    let left_of = |before: Vec<u8>, writes: &[(u64, Vec<u8>)], check: &dyn Fn(Option<Contents>)| {
        let killed = open(&pool.files, "killed_or_new");
        let mut left = before;
        for step in 0..=writes.len() {
            killed.set_length(left.len() as u64).unwrap();
            killed.write_at(0, &left).unwrap();
            for boot_id in [BOOT, NEXT_BOOT] {
                let contents = Contents::read(&*killed, boot_id, &no_data).unwrap();
                assert!(contents.as_ref().is_none_or(|contents| contents.damage().is_none()));
                check(contents);
            }
            if let Some((at, bytes)) = writes.get(step) {
                left[*at as usize..*at as usize + bytes.len()].copy_from_slice(bytes);
            }
        }
    };
    let before = bytes_of(&pool);
    lock(&file.writes).clear();
    contents.empty(&*file, NEXT_BOOT, CAPACITY).unwrap();
    let writes = std::mem::take(&mut *lock(&file.writes));
    left_of(before.clone(), &writes, &|contents| assert!(contents.is_some()));
    assert!(read(&pool, NEXT_BOOT).unwrap().lines().is_empty());
    Journal::format(&*file, 7, 100, 1 << 20, BOOT).unwrap();
    let writes = std::mem::take(&mut *lock(&file.writes));
    left_of(vec![0; before.len()], &writes, &|contents| {
        assert!(contents.is_none_or(|contents| contents.lines().is_empty()));
    });
}

#[test]
fn a_mark_contradicts_another_journal_and_an_older_one() {
    let pool = filled(5, 5);
    let file = open(&pool.files, "data");
    let copies = [60_000, 62_000];
    let kept = |file: &Arc<dyn File>| Mark::read(file.clone(), copies).unwrap().1.ok().flatten();
    let (mark, was) = Mark::read(file.clone(), copies).unwrap();
    assert_eq!(was.unwrap(), None, "no mark was made");
    pool.journal().keep_mark(mark).unwrap();
    let start = pool.journal().start_at();
    let used = |position, tail| MarkState::Used { journal_id: 99, position, tail };
    let tail = start + 5 * ENTRY;
    assert_eq!(kept(&file), Some(used(start, tail)));
    let mut older = read(&pool, BOOT).unwrap();
    older.compare(kept(&file).unwrap()).unwrap();
    let unused = older.compare(MarkState::Unused).unwrap_err();
    assert!(unused.what.contains("none was in use"), "{unused:?}");
    let other =
        older.compare(MarkState::Used { journal_id: 98, position: 0, tail: 0 }).unwrap_err();
    assert!(other.what.contains("another pool, or is not the one"), "{other:?}");

    pool.put(0, 77);
    let tail = tail + ENTRY;
    assert_eq!(kept(&file), Some(used(start, tail)));
    let mut earlier = older;
    let missing = earlier.compare(used(start, tail)).unwrap_err();
    assert_eq!((missing.at, missing.bytes), (DATA_AT + earlier.end() % CAPACITY, ENTRY));
    // A power loss may have taken that entry.
    let mut older = read(&pool, NEXT_BOOT).unwrap();
    change(&pool, DATA_AT + older.end() % CAPACITY - 1, |old| old ^ 1);
    let mut shorter = read(&pool, NEXT_BOOT).unwrap();
    assert_eq!(shorter.end(), start + 5 * ENTRY);
    shorter.compare(used(start, tail)).unwrap();
    change(&pool, DATA_AT + older.end() % CAPACITY - 1, |old| old ^ 1);
    older.compare(used(start, tail)).unwrap();

    pool.journal().checkpoint().unwrap();
    let reached = kept(&file).unwrap();
    assert_eq!(reached, used(tail, tail));
    let behind = earlier.compare(reached).unwrap_err();
    assert_eq!((behind.at, behind.bytes), (DATA_AT + earlier.end() % CAPACITY, ENTRY));
    read(&pool, BOOT).unwrap().compare(reached).unwrap();

    // One copy is enough; of two damaged ones nothing is believed.
    for how in [|_: u8| 0, |old: u8| old ^ 1] {
        let mut saved = [0; 2048];
        file.read_at(60_000, &mut saved).unwrap();
        let change = |at: u64| {
            let mut bytes = [0; 32];
            file.read_at(at, &mut bytes).unwrap();
            file.write_at(at, &bytes.map(how)).unwrap();
        };
        change(copies[0]);
        assert_eq!(kept(&file), Some(reached));
        file.write_at(copies[1] + 8, b"x").unwrap();
        let damaged = Mark::read(file.clone(), copies).unwrap().1;
        assert_eq!(damaged.unwrap_err().kind(), io::ErrorKind::InvalidData);
        file.write_at(60_000, &saved).unwrap();
        file.write_at(copies[1] + 8, &saved[2008..2016]).unwrap();
    }
    pool.journal().close().unwrap();
    assert_eq!(kept(&file), Some(MarkState::Unused));
}

/// Entries with right checksums and wrong insides.
#[test]
fn forged_entries_are_refused() {
    let counts = |bytes: u64, runs: u64| bytes | runs << 32;
    let entry = |words: &[u64], lines: usize| {
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.resize(bytes.len() + lines * 64, 1);
        let checksum = xxhash_rust::xxh3::xxh3_64_with_seed(&bytes[8..], 99);
        bytes[..8].copy_from_slice(&checksum.to_le_bytes());
        bytes
    };
    let read = |bytes: &[u8]| {
        let pool = Pool::create(GROUP);
        let file = open(&pool.files, "journal");
        let start = Header::read(&*file).unwrap().unwrap().start;
        let mut bytes = bytes.to_vec();
        bytes[8..16].copy_from_slice(&start.to_le_bytes());
        let checksum = xxhash_rust::xxh3::xxh3_64_with_seed(&bytes[8..], 99);
        bytes[..8].copy_from_slice(&checksum.to_le_bytes());
        file.write_at(DATA_AT + start % CAPACITY, &bytes).unwrap();
        lines_in(&pool).unwrap()
    };
    let good = entry(&[0, 0, 0, counts(104, 1), 5 << 16 | 1], 1);
    assert_eq!(read(&good), 6);
    for (words, lines) in [
        (&[0, 0, 0, counts(104, 2), 5 << 16 | 1][..], 1),
        (&[0, 0, 0, 104, 5 << 16 | 1], 1),
        (&[0, 0, 0, counts(104, u64::from(u32::MAX)), 5 << 16 | 1], 1),
        (&[0, 0, 0, counts(104, 1), 5 << 16], 1),
        (&[0, 0, 0, counts(104, 1), 5 << 16 | 2], 1),
        (&[0, 0, 0, counts(104, 1), u64::MAX], 1),
        (&[0, 0, 0, counts(96, 1), 5 << 16 | 1], 1),
        (&[0, 0, 0, 1 << 32, 5 << 16 | 1], 1),
        (&[0, 0, 0, counts(u64::from(u32::MAX), 1), 5 << 16 | 1], 1),
        (&[0, 0, 0, counts(112, 2), 5 << 16 | 1, 9 << 16], 1),
    ] {
        assert_eq!(read(&entry(words, lines)), 0, "{words:?}");
    }
}
