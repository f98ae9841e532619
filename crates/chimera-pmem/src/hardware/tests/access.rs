//! Words, ranges and the bounds of both.

use proptest::prelude::*;

use super::*;

/// Bytes that differ from each other and from zero.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251 + 1) as u8).collect()
}

#[test]
fn words_are_stored_loaded_and_swapped() {
    let memory = anonymous(1);
    assert_eq!(memory.load_u64(8), 0);
    memory.store_u64(8, 0x0102_0304_0506_0708, SITE);
    assert_eq!(memory.load_u64(8), 0x0102_0304_0506_0708);
    assert_eq!(memory.load_u64(0), 0);
    assert_eq!(memory.load_u64(16), 0);
    let mut bytes = [0; 8];
    memory.read(extent(&memory, 8, 8), &mut bytes);
    assert_eq!(bytes, [8, 7, 6, 5, 4, 3, 2, 1], "little-endian");

    assert_eq!(memory.cas_u64(8, 1, 2, SITE), Err(0x0102_0304_0506_0708));
    assert_eq!(memory.cas_u64(8, 0x0102_0304_0506_0708, 2, SITE), Ok(0x0102_0304_0506_0708));
    assert_eq!(memory.load_u64(8), 2);
    memory.publish(8, 3, &[], SITE);
    assert_eq!(memory.publish_cas(8, 3, 4, &[], SITE), Ok(3));
    assert_eq!(memory.load_u64(8), 4);
}

#[test]
fn pairs_have_the_low_word_first() {
    let memory = anonymous(1);
    memory.store_u64(32, 1, SITE);
    memory.store_u64(40, 2, SITE);
    let (old, new) = (2 << 64 | 1, 4 << 64 | 3);
    assert_eq!(memory.cas_u128(32, new, old, SITE), Err(old));
    assert_eq!(memory.cas_u128(32, old, new, SITE), Ok(old));
    assert_eq!((memory.load_u64(32), memory.load_u64(40)), (3, 4));
    assert_eq!((memory.load_u64(24), memory.load_u64(48)), (0, 0));
    assert!(panic_of(|| _ = memory.cas_u128(40, 0, 0, SITE)).contains("offset 40"));
}

/// Every length up to several lines, at every word of a line: nothing before, nothing behind, the
/// tail of the last word zeroed.
#[test]
fn copies_are_exact_at_every_length_and_place() {
    const SPACE: usize = 512;
    let memory = anonymous(1);
    let space = extent(&memory, 0, SPACE as u64);
    let source = pattern(300);
    for start in (0..64).step_by(8) {
        for length in 0..=256 {
            // An odd address: private buffers need not be aligned.
            let bytes = &source[1..=length];
            memory.copy(space, &[0xee; SPACE], SITE);
            memory.copy(extent(&memory, start as u64, length as u64), bytes, SITE);

            let mut expected = [0xee; SPACE];
            expected[start..start + length].copy_from_slice(bytes);
            expected[start + length..start + length.next_multiple_of(8)].fill(0);
            let mut whole = [0; SPACE];
            memory.read(space, &mut whole);
            assert_eq!(whole, expected, "{length} bytes at {start}");

            let mut back = vec![0xdd; length + 2];
            memory.read(extent(&memory, start as u64, length as u64), &mut back[1..=length]);
            assert_eq!(&back[1..=length], bytes);
            assert_eq!((back[0], back[length + 1]), (0xdd, 0xdd), "nothing beside is touched");
        }
    }
}

#[test]
fn comparisons_see_every_byte_and_no_more() {
    let memory = anonymous(1);
    let source = pattern(200);
    memory.copy(extent(&memory, 64, 200), &source, SITE);
    for length in 0..200 {
        let with = extent(&memory, 64, 200);
        assert!(memory.compare(with, &source[..length]));
        for wrong in 0..length {
            let mut bytes = source[..length].to_vec();
            bytes[wrong] ^= 0x80;
            assert!(!memory.compare(with, &bytes), "byte {wrong} of {length}");
        }
    }
}

#[test]
fn zeroing_is_exact() {
    let memory = anonymous(1);
    for words in 0..40 {
        memory.copy(extent(&memory, 0, 512), &[0xff; 512], SITE);
        memory.zero(extent(&memory, 8, words * 8), SITE);
        for word in 0..64 {
            let expected = if (1..=words).contains(&word) { 0 } else { u64::MAX };
            assert_eq!(memory.load_u64(word * 8), expected);
        }
    }
    assert!(panic_of(|| memory.zero(extent(&memory, 0, 12), SITE)).contains("whole words"));
}

#[test]
fn lines_are_copied_past_the_cache() {
    let memory = anonymous(1);
    let source = pattern(64 * 5 + 1);
    memory.copy(extent(&memory, 0, 512), &[0xff; 512], SITE);
    memory.copy_nt(extent(&memory, 64, 320), &source[1..], SITE);
    memory.fence(SITE);
    assert!(memory.compare(extent(&memory, 64, 320), &source[1..]));
    assert_eq!((memory.load_u64(56), memory.load_u64(384)), (u64::MAX, u64::MAX));
    for (at, length) in [(8, 64), (64, 63), (64, 8)] {
        let to = extent(&memory, at, 128);
        assert!(panic_of(|| memory.copy_nt(to, &source[..length], SITE)).contains("whole lines"));
    }
}

#[test]
fn ranges_longer_than_their_extent_are_refused() {
    let memory = anonymous(1);
    let four = extent(&memory, 0, 4);
    assert!(panic_of(|| memory.read(four, &mut [0; 5])).contains("read of 5"));
    assert!(panic_of(|| memory.copy(four, &[0; 5], SITE)).contains("copy of 5"));
    assert!(panic_of(|| _ = memory.compare(four, &[0; 5])).contains("compare of 5"));
    assert!(panic_of(|| memory.copy_nt(four, &[0; 64], SITE)).contains("copy of 64"));
}

/// Each way to reach memory, at `at`, for eight bytes.
const REACHES: &[fn(&Hardware, u64)] = &[
    |memory, at| {
        _ = memory.load_u64(at);
    },
    |memory, at| memory.store_u64(at, 1, SITE),
    |memory, at| {
        _ = memory.cas_u64(at, 0, 1, SITE);
    },
    |memory, at| memory.read(Extent::new_checked(at, 8), &mut [0; 8]),
    |memory, at| _ = memory.compare(Extent::new_checked(at, 8), &[0; 8]),
    |memory, at| memory.copy(Extent::new_checked(at, 8), &[0; 8], SITE),
    |memory, at| memory.zero(Extent::new_checked(at, 8), SITE),
    |memory, at| memory.flush(Extent::new_checked(at, 8), SITE),
    |memory, at| memory.prefetch(Extent::new_checked(at, 8)),
    |memory, at| memory.prefetch_write(Extent::new_checked(at, 8)),
    |memory, at| {
        _ = memory.punch(Extent::new_checked(at, 8), SITE);
    },
];

#[test]
fn nothing_outside_can_be_reached() {
    let memory = anonymous(2);
    let end = 2 * PAGE;
    for (number, reach) in REACHES.iter().enumerate() {
        reach(&memory, 0);
        reach(&memory, end - 8);
        for at in [end, end + 8, 1 << 40, 1 << 63, u64::MAX - 7] {
            let message = panic_of(|| reach(&memory, at));
            assert!(message.contains("outside of the 8192 bytes mapped"), "{number}: {message}");
        }
        for at in [1, 4, 7, end - 7, end - 1, u64::MAX] {
            let message = panic_of(|| reach(&memory, at));
            assert!(message.contains("not a multiple of 8"), "{number} at {at}: {message}");
        }
    }
    for (at, length) in [(16, u64::MAX), (end - 8, 9), (0, end + 1), (8, 1 << 63)] {
        let range = Extent::new_checked(at, length);
        assert!(panic_of(|| memory.flush(range, SITE)).contains("outside"), "{range:?}");
    }
    assert!(panic_of(|| _ = memory.cas_u128(end, 0, 0, SITE)).contains("outside"));
}

#[test]
fn an_empty_space_has_nothing_to_reach() {
    let memory = Hardware::new(HardwareOptions::default()).unwrap();
    assert_eq!(memory.mapped(), 0);
    assert_eq!(memory.medium(), Medium::Anonymous);
    for reach in REACHES {
        assert!(panic_of(|| reach(&memory, 0)).contains("outside of the 0 bytes mapped"));
    }
    memory.read(Extent::new_checked(0, 0), &mut []);
}

#[test]
fn extents_are_checked() {
    let memory = anonymous(1);
    assert!(memory.check(0, PAGE).is_some());
    assert!(memory.check(PAGE, 0).is_some());
    assert!(memory.check(4, 8).is_none());
    assert!(memory.check(8, PAGE).is_none());
    assert!(memory.check(8, u64::MAX).is_none());
}

#[test]
fn every_flush_works_and_counts_no_line_twice() {
    for instruction in FlushInstruction::ALL.into_iter().filter(|i| i.is_available()) {
        let options = HardwareOptions {
            flush: FlushChoice::Instruction(instruction),
            ..HardwareOptions::default()
        };
        let memory = anonymous_with(1, options);
        assert_eq!(memory.flush_instruction(), instruction);
        let bytes = pattern(216);
        memory.copy(extent(&memory, 56, 216), &bytes, SITE);
        let mut lines = Vec::new();
        memory.for_lines(extent(&memory, 56, 216), |line| lines.push(line.addr()));
        let base = memory.base.addr();
        let expected: Vec<_> = (0..5).map(|line| base + line * 64).collect();
        assert_eq!(lines, expected, "bytes 56 to 272 touch five lines");
        memory.flush(extent(&memory, 56, 216), SITE);
        memory.flush(extent(&memory, 56, 0), SITE);
        memory.fence(SITE);
        assert!(memory.compare(extent(&memory, 56, 216), &bytes));
    }
}

proptest! {
    /// Any sequence of copies leaves what the same copies leave in a plain buffer.
    #[test]
    fn copies_behave_like_a_buffer(
        copies in prop::collection::vec((0u64..60, prop::collection::vec(any::<u8>(), 0..200)), 0..20)
    ) {
        let memory = anonymous(1);
        let mut buffer = [0; 1024];
        for (word, bytes) in copies {
            let start = word as usize * 8;
            memory.copy(extent(&memory, word * 8, bytes.len() as u64), &bytes, SITE);
            buffer[start..start + bytes.len()].copy_from_slice(&bytes);
            buffer[start + bytes.len()..start + bytes.len().next_multiple_of(8)].fill(0);
        }
        prop_assert!(memory.compare(extent(&memory, 0, 1024), &buffer));
    }
}

#[test]
fn what_is_copied_is_summed_by_words_as_by_vectors() {
    let mut memory = anonymous(1);
    let source = pattern(320);
    for has_copy_sum in [false, arch::has_copy_sum()] {
        memory.has_copy_sum = has_copy_sum;
        for length in 0..source.len() {
            let to = extent(&memory, 64, length as u64);
            // An odd address: private buffers need not be aligned.
            let bytes = &source[1..=length];
            let sum = crate::sum(bytes);
            assert_eq!(memory.copy_sum(to, bytes, SITE), sum, "{length} bytes");
            let mut found = vec![0; bytes.len() + 1];
            assert_eq!(memory.read_sum(to, 0, &mut found[1..]), sum, "{length} bytes");
            assert_eq!(found[1..], *bytes);
            if bytes.len() > 64 {
                // As two parts of one range.
                let (first, second) = found[1..].split_at_mut(64);
                let (from, bytes_left) = (to.offset() + 64, second.len() as u64);
                let second = memory.read_sum(extent(&memory, from, bytes_left), 8, second);
                let both = memory.read_sum(to, 0, first).wrapping_add(second);
                assert_eq!(both, sum, "{length} bytes in two parts");
            }
            let (last, rest) = (64 + bytes.len() as u64 / 8 * 8, bytes.len() % 8);
            assert!(rest == 0 || memory.load_u64(last) >> (8 * rest) == 0, "the rest of the word");
        }
    }
}
