//! The two copies of the header, and files that are no journal.

use std::os::fd::BorrowedFd;

use xxhash_rust::xxh3::xxh3_64;
use zerocopy::IntoBytes;

use super::*;

/// Words of a copy of the header.
type Words = [u64; 10];

fn words_of(file: &dyn File) -> Words {
    Header::read(file).unwrap().unwrap().encode()
}

/// With the checksum that belongs to it.
fn checked(mut words: Words) -> Words {
    words[9] = xxh3_64(IntoBytes::as_bytes(&words[..9]));
    words
}

fn write(file: &dyn File, copies: [Words; 2]) {
    for (at, words) in [0, 4096].into_iter().zip(copies) {
        file.write_at(at, IntoBytes::as_bytes(&words)).unwrap();
    }
}

/// A pool with an entry in its journal, and the journal.
fn journal() -> (Pool, Arc<dyn File>) {
    let pool = Pool::create(GROUP);
    pool.put(0, 1);
    let file = open(&pool.files, "journal");
    (pool, file)
}

#[test]
fn no_flipped_bit_of_one_header_loses_anything_and_of_both_is_unnoticed() {
    let (_pool, file) = journal();
    let whole = words_of(&*file);
    for (word, bit) in (0..10).flat_map(|word| (0..64).map(move |bit| (word, bit))) {
        let mut damaged = whole;
        damaged[word] ^= 1 << bit;
        for copies in [[damaged, whole], [whole, damaged]] {
            write(&*file, copies);
            assert_eq!(words_of(&*file), whole, "bit {bit} of word {word}");
        }
        write(&*file, [damaged; 2]);
        let error = Contents::read(&*file, BOOT, &no_data).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "bit {bit} of word {word}");
    }
}

#[test]
fn of_two_headers_the_later_start_is_in_force() {
    let (_pool, file) = journal();
    let old = words_of(&*file);
    let mut new = old;
    new[5] += 104;
    let new = checked(new);
    let mut closed = old;
    closed[6] = 1;
    let closed = checked(closed);
    for (one, other, in_force) in [(old, new, new), (closed, new, new), (closed, old, old)] {
        for copies in [[one, other], [other, one]] {
            write(&*file, copies);
            assert_eq!(words_of(&*file), in_force);
        }
    }
    // A close that did not come to its second copy is not one.
    assert!(!Contents::read(&*file, BOOT, &no_data).unwrap().unwrap().is_closed());
    write(&*file, [closed; 2]);
    assert!(Contents::read(&*file, BOOT, &no_data).unwrap().unwrap().is_closed());
}

#[test]
fn a_header_with_a_right_checksum_and_wrong_words_is_refused() {
    const POSITION_MAX: u64 = 1 << 62;
    let (_pool, file) = journal();
    let whole = words_of(&*file);
    let with = |word: usize, value: u64| {
        let mut words = whole;
        words[word] = value;
        checked(words)
    };
    let refused = [
        (0, u64::from_le_bytes(*b"CHIMJRN2")),
        (1, 0),
        (1, 1),
        (4, 0),
        (4, 8192),
        (4, (16 << 10) + 8),
        (4, (1 << 30) + 4096),
        (4, u64::MAX - 4095),
        (5, POSITION_MAX),
        (5, u64::MAX - 7),
        (5, whole[5] + 1),
        (6, 0),
        (6, 3),
    ];
    for (word, value) in refused {
        write(&*file, [with(word, value); 2]);
        let error = Header::read(&*file).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{value} in word {word}");
        if word == 4 {
            let what = format!("its header says {value} bytes for entries, which no journal has");
            assert_eq!(error.to_string(), what);
        }
        write(&*file, [with(word, value), whole]);
        assert_eq!(words_of(&*file), whole, "{value} in word {word}");
    }
    let boot_id = xxh3_64(IntoBytes::as_bytes(&whole[..7]));
    for (word, value) in [(5, POSITION_MAX - 8), (6, 1), (7, boot_id)] {
        write(&*file, [with(word, value); 2]);
        assert_eq!(words_of(&*file), with(word, value), "{value} in word {word}");
    }
}

/// Version 3 has the same words, and nothing of places that were taken; version 2 no direct runs either, and a word less.
#[test]
fn a_journal_of_an_earlier_version_is_read_and_becomes_one_of_this_version() {
    let (_pool, file) = journal();
    let now = words_of(&*file);
    let (mut of_3, mut of_2) = (now, now);
    (of_3[1], of_2[1]) = (3, 2);
    of_3[9] = xxh3_64(IntoBytes::as_bytes(&of_3[..9]));
    of_2[8] = xxh3_64(IntoBytes::as_bytes(&of_2[..8]));
    of_2[9] = 0;
    for before in [of_3, of_2] {
        write(&*file, [now; 2]);
        becomes_this_version(&*file, before);
    }
}

fn becomes_this_version(file: &dyn File, before: [u64; 10]) {
    write(file, [before; 2]);
    let found = Contents::read(file, BOOT, &no_data).unwrap().unwrap();
    assert_eq!((found.lines().end(), found.damage()), (64, None));
    found.empty(file, BOOT, CAPACITY).unwrap();
    let mut version = [0; 8];
    for copy in [8, 4096 + 8] {
        file.read_at(copy, &mut version).unwrap();
        assert_eq!(u64::from_le_bytes(version), 4);
    }
}

#[test]
fn a_journal_has_pages_from_16_kib_to_1_gib() {
    let file = MemoryFiles::new().open(Path::new("journal"), OpenMode::CreateNew).unwrap();
    for capacity in [0, 12 << 10, (16 << 10) + 8, (1 << 30) + 4096, u64::MAX - 4095] {
        let error = Journal::format(&*file, 7, 99, capacity, BOOT).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{capacity}");
        assert_eq!(file.length().unwrap(), 0, "{capacity}");
    }
    for capacity in [16 << 10, 20 << 10] {
        Journal::format(&*file, 7, 99, capacity, BOOT).unwrap();
        assert_eq!(Header::read(&*file).unwrap().unwrap().capacity, capacity);
    }
}

#[test]
fn a_journal_that_was_cut_behind_its_headers_is_not_taken_for_a_new_one() {
    let (_pool, file) = journal();
    file.set_length(DATA_AT).unwrap();
    let error = Contents::read(&*file, BOOT, &no_data).unwrap_err();
    assert_eq!(error.to_string(), "it has 8192 bytes instead of 24576: it was cut");
}

/// A file of zeros, of which the headers alone can be read.
#[derive(Debug)]
struct Zeros {
    length: u64,
}

impl File for Zeros {
    fn length(&self) -> io::Result<u64> {
        Ok(self.length)
    }
    fn allocate(&self, _: u64, _: u64) -> io::Result<()> {
        unreachable!()
    }
    fn punch(&self, _: u64, _: u64) -> io::Result<()> {
        unreachable!()
    }
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        if offset + into.len() as u64 > DATA_AT {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        into.fill(0);
        Ok(())
    }
    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        unreachable!()
    }
    fn set_length(&self, _: u64) -> io::Result<()> {
        unreachable!()
    }
    fn sync(&self) -> io::Result<()> {
        unreachable!()
    }
    fn try_lock(&self, _: bool) -> io::Result<bool> {
        unreachable!()
    }
    fn medium(&self) -> io::Result<Medium> {
        unreachable!()
    }
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    fn is_read_only(&self) -> bool {
        true
    }
}

#[test]
fn a_file_larger_than_any_journal_is_refused_unread() {
    let largest = DATA_AT + (1 << 30);
    let read = |length| Contents::read(&Zeros { length }, BOOT, &no_data).unwrap_err().kind();
    assert_eq!(read(largest), io::ErrorKind::BrokenPipe, "it may be blank");
    assert_eq!(read(largest + 1), io::ErrorKind::InvalidData);
    assert_eq!(read(u64::MAX), io::ErrorKind::InvalidData);
}
