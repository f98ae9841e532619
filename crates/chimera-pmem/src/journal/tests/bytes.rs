//! What is in the file: laps, gaps, damage, hostile bytes.

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

fn lines_in(pool: &Pool) -> io::Result<u64> {
    let contents = Contents::read(&*open(&pool.files, "journal"))?.unwrap();
    Ok(contents.lines().end() / 64)
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
        change(&pool, DATA_AT + 2 * 104 + byte, |old| old ^ 1 << (byte % 8));
        assert_eq!(lines_in(&pool).unwrap(), 2, "byte {byte}");
    }
}

#[test]
fn a_gap_before_what_was_synced_is_damage() {
    let pool = filled(6, 4);
    change(&pool, DATA_AT + 2 * 104 + 50, |old| old ^ 1);
    let error = lines_in(&pool).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    assert!(error.to_string().contains(&(DATA_AT + 2 * 104).to_string()), "{error}");
    // The fifth entry, the first one behind the sync, says so; without it and its followers nothing
    // tells the damage from a power loss.
    for entry in [4, 5] {
        change(&pool, DATA_AT + entry * 104 + 50, |old| old ^ 1);
    }
    assert_eq!(lines_in(&pool).unwrap(), 2);
}

#[test]
fn entries_behind_a_gap_never_come_back() {
    let pool = filled(6, 0);
    change(&pool, DATA_AT + 2 * 104 + 50, |old| old ^ 1);
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
        assert!(Contents::read(&*file).unwrap().is_none());
    }
    file.write_at(19_000, b"x").unwrap();
    assert!(Contents::read(&*file).is_err(), "blank headers before something else");
}

#[test]
fn a_later_version_and_a_cut_file_are_named() {
    let pool = filled(3, 3);
    let file = open(&pool.files, "journal");
    let mut words =
        Header { pool_id: 1, journal_id: 2, capacity: CAPACITY, start: 0, is_closed: false }
            .encode();
    words[1] = 2;
    words[7] = xxhash_rust::xxh3::xxh3_64(zerocopy::IntoBytes::as_bytes(&words[..7]));
    file.write_at(0, zerocopy::IntoBytes::as_bytes(&words)).unwrap();
    assert!(lines_in(&pool).unwrap_err().to_string().contains("newer program"));
    let pool = filled(3, 3);
    open(&pool.files, "journal").set_length(DATA_AT + CAPACITY - 1).unwrap();
    assert!(lines_in(&pool).unwrap_err().to_string().contains("it was cut"));
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
