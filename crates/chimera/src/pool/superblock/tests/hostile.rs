//! Copies that no program wrote, with checksums that are right: whoever forged them, each wrong field is an error of its own.

use super::*;

/// A copy for byte `at` in which words are replaced, and its checksums are right again.
fn forged(at: u64, replaced: &[(usize, u64)]) -> [u64; WORDS] {
    let mut words = Superblock { sequence: 8 + at / COPY_STRIDE, ..example() }.encode();
    for &(number, word) in replaced {
        words[number] = word;
    }
    seal(&mut words);
    words
}

/// What is said to be wrong, and at which byte.
fn damage(at: u64, replaced: &[(usize, u64)]) -> (String, u64) {
    match Superblock::decode(&forged(at, replaced), at) {
        Err(Error::Corrupted { what, at }) => (what, at),
        other => panic!("{replaced:x?} at {at}: {other:?}"),
    }
}

#[test]
fn each_wrong_field_is_named_with_the_byte_it_lies_at() {
    for at in [0, COPY_STRIDE] {
        Superblock::decode(&forged(at, &[]), at).unwrap();
        let other_parity = 9 - at / COPY_STRIDE;
        for (number, word, what, byte) in [
            (0, 0, "no magic number", 0),
            (0, u64::from_le_bytes(*b"CHIMERA2"), "no magic number", 0),
            (0, u64::from_le_bytes(*b"CHIMSEG1"), "no magic number", 0),
            (1, 0x0000_0001_0000_0000, "no valid format version", 8),
            (1, 0x0000_0000_0000_0004, "no valid engine", 8),
            (6, other_parity, "lies in the place of the other one", 0),
            (6, other_parity.wrapping_sub(10), "lies in the place of the other one", 0),
            (8, 0, "no valid state", 64),
            (8, 5, "no valid state", 64),
            (8, u64::MAX, "no valid state", 64),
            (8, 1 << 32 | 1, "no valid state", 64),
            (16, 31, "no valid area of its engine", 128),
            (16, 1 << 32, "no valid area of its engine", 128),
            (16, u64::MAX, "no valid area of its engine", 128),
        ] {
            let (found, place) = damage(at, &[(number, word)]);
            assert!(found.contains(what), "word {number} as {word:#x}: {found}");
            assert_eq!(place, at + byte, "{found}");
        }
    }
}

#[test]
fn a_format_of_another_time_is_named_whatever_else_is_not_understood() {
    for (version, is_newer) in [(1, false), (3, false), (5, true), (u32::MAX, true)] {
        // No engine, no state and no area of today.
        let words = forged(0, &[(1, u64::from(version)), (8, 77), (16, 77)]);
        match Superblock::decode(&words, 0) {
            Err(Error::NewerFormat { found, supported: 4 }) if is_newer => {
                assert_eq!(found, version);
            }
            Err(Error::OlderFormat { found, supported: 4 }) if !is_newer => {
                assert_eq!(found, version);
            }
            other => panic!("version {version}: {other:?}"),
        }
    }
}

#[test]
fn a_wrong_checksum_is_named_before_any_field_is_believed() {
    let changed = [(1, 0), (1, 5), (1, u64::MAX), (6, 8), (8, 0), (16, 31), (2, 1)];
    for (number, word) in changed {
        let mut words = forged(COPY_STRIDE, &[]);
        words[number] = word;
        let error = Superblock::decode(&words, COPY_STRIDE).unwrap_err().to_string();
        let what = if number == 16 { "area of its engine" } else { "match its checksum" };
        assert!(error.contains(what), "word {number} as {word}: {error}");
    }
}

#[test]
fn an_area_that_was_cut_or_extended_does_not_match() {
    let words = example().encode();
    for length in [0, 1, 2, 4, AREA_LENGTH_MAX] {
        let mut damaged = words;
        damaged[AREA_LENGTH_AT] = length;
        assert!(Superblock::decode(&damaged, 0).is_err(), "{length} words");
    }
}

#[test]
fn every_state_and_every_number_comes_back_from_either_place() {
    for closing in [Closing::Clean, Closing::Open, Closing::OpenJournaled, Closing::Incomplete] {
        for at in [0, COPY_STRIDE] {
            let superblock = Superblock {
                engine: 0xfedc_ba98,
                geometry: PoolGeometry {
                    segment_bytes: 0x1111_2222_3333_4444,
                    block_bytes: 0x5555_6666,
                    block_shift_bytes: 0x7777_8888,
                },
                sequence: u64::MAX - 1 + at / COPY_STRIDE,
                segments: 0x9999_aaaa_bbbb_cccc,
                closing,
                ..example()
            };
            assert_eq!(Superblock::decode(&superblock.encode(), at).unwrap(), superblock);
        }
    }
}

/// A store that was written once has to be read for ever.
#[test]
fn the_example_lies_on_media_as_format_4_says() {
    let words = example().encode();
    assert_eq!(words[0].to_le_bytes(), *b"CHIMERA1");
    assert_eq!(words[1..6], [0x1_0000_0004, 0x0123_4567_89ab_cdef, 42, 1 << 30, 24 << 10]);
    assert_eq!(words[6..15], [8, 3, 2, 99, 0, 0, 3, 4, 0]);
    assert_eq!(words[15..18], [5_379_746_785_778_387_826, 3, 16_224_854_450_221_458_848]);
    assert_eq!(words[18..24], [8, 9, 10, 5, 6, 7]);
    assert_eq!(words[24..], [0; WORDS - 24]);
    // Where the first bit is that of the order, the others are not looked at, nor the next word, but for the checksums.
    let mut before = words;
    [before[10], before[11]] = [1, 2];
    [before[15], before[17]] = [8_270_637_218_561_501_610, 3_925_047_315_773_633_110];
    let ordered = Superblock { is_ordered: true, ..example() };
    assert_eq!(Superblock::decode(&before, 0).unwrap(), ordered);
    before[10] = u64::MAX - 1;
    seal(&mut before);
    assert_eq!(Superblock::decode(&before, 0).unwrap(), example());
}
