//! What is newer, what a pool's sizes may be, and what may be a part of a new copy.

use super::*;

#[test]
fn the_later_update_is_newer_also_where_the_numbers_wrap() {
    let with = |sequence| Superblock { sequence, ..example() };
    for (earlier, later) in
        [(0, 1), (8, 9), (8, 1 << 40), (u64::MAX, 0), (u64::MAX - 1, 1), (i64::MAX as u64, 1 << 63)]
    {
        assert!(with(later).is_newer_than(&with(earlier)), "{later} after {earlier}");
        assert!(!with(earlier).is_newer_than(&with(later)), "{earlier} after {later}");
    }
    assert!(!with(8).is_newer_than(&with(8)));
}

#[test]
fn words_of_closing_are_those_of_a_closed_store() {
    let closed = Superblock { closing: Closing::Clean, closed_words: [70, 80], ..example() };
    assert_eq!((closed.closed_words(), &closed.encode()[10..14]), ([70, 80], &[0, 0, 70, 80][..]));
    let open = Superblock { closing: Closing::Open, ..closed };
    assert_eq!(open.closed_words(), [0, 0]);
}

#[test]
fn sizes_are_multiples_of_lines_and_pages_or_are_refused() {
    let sizes = |segment_bytes, block_bytes, block_shift_bytes| {
        PoolGeometry { segment_bytes, block_bytes, block_shift_bytes }.validate()
    };
    for (segment, block, shift) in
        [(4096, 64, 0), (1 << 30, 24 << 10, 0), (1 << 44, 256, 2048), (12288, 192, 64)]
    {
        assert_eq!(sizes(segment, block, shift), Ok(()), "{segment}, {block}, {shift}");
    }
    for (block, shift) in [(0, 0), (0, 64), (63, 0), (65, 0), (32, 64), (64, 1), (256, 32), (1, 1)]
    {
        let text = sizes(1 << 20, block, shift).unwrap_err();
        assert!(text.contains("multiple of 64 bytes"), "{text}");
        assert!(text.contains(&format!("not {block} and {shift}")), "{text}");
    }
    for segment in [1, 4095, 4097, (1 << 44) + 1, (1 << 44) + 4096, 1 << 62, u64::MAX] {
        let text = sizes(segment, 64, 0).unwrap_err();
        assert!(text.contains("multiple of 4096 bytes"), "{text}");
        assert!(text.contains(&format!("not {segment}")), "{text}");
    }
}

/// Words in which these are not zero.
fn with(set: &[(usize, u64)]) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    for &(number, word) in set {
        words[number] = word;
    }
    words
}

#[test]
fn a_line_that_begins_as_a_creation_begins_it_is_a_part_of_a_new_copy() {
    for part in [
        &[][..],
        &[(0, MAGIC)],
        &[(0, MAGIC), (7, 3)],
        &[(8, 1)],
        &[(8, 4), (9, 99), (15, u64::MAX)],
        &[(0, MAGIC), (8, 2)],
        &[(16, 1)],
        &[(16, AREA_LENGTH_MAX), (50, 7)],
        // Of an older and longer area only the end.
        &[(30, 7)],
    ] {
        assert!(is_part_of_new(&with(part)), "{part:?}");
    }
    assert!(is_part_of_new(&example().encode()));
}

#[test]
fn one_foreign_line_is_enough_for_words_to_be_no_part_of_a_new_copy() {
    for foreign in [
        &[(0, MAGIC + 1)][..],
        &[(1, 1)],
        &[(7, 1), (8, 1)],
        &[(0, MAGIC), (8, 5)],
        &[(0, MAGIC), (9, 1)],
        &[(0, MAGIC), (15, 1), (16, 1)],
        &[(16, AREA_LENGTH_MAX + 1)],
        &[(0, MAGIC), (8, 2), (16, u64::MAX)],
    ] {
        assert!(!is_part_of_new(&with(foreign)), "{foreign:?}");
    }
}
