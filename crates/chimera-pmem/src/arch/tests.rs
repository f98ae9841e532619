use std::cell::UnsafeCell;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::*;

/// A line's worth of shared words.
#[repr(align(64))]
struct Line([AtomicU64; 8]);

impl Line {
    fn new(values: [u64; 8]) -> Self {
        Self(values.map(AtomicU64::new))
    }

    fn values(&self) -> [u64; 8] {
        std::array::from_fn(|word| self.0[word].load(Relaxed))
    }
}

#[test]
fn detection_picks_the_first_available() {
    let best = FlushInstruction::detect();
    assert!(best.is_available());
    let first = FlushInstruction::ALL.into_iter().find(|i| i.is_available());
    assert_eq!(Some(best), first);
    if cfg!(target_arch = "x86_64") {
        assert!(FlushInstruction::Clflush.is_available());
        assert!(!FlushInstruction::DcCvap.is_available());
        assert_ne!(best, FlushInstruction::None);
    }
}

#[test]
fn detection_agrees_with_the_kernel() {
    let Ok(info) = std::fs::read_to_string("/proc/cpuinfo") else { return };
    let Some(flags) = info.lines().find(|line| line.starts_with("flags")) else { return };
    let has = |name| flags.split_ascii_whitespace().any(|flag| flag == name);
    assert_eq!(FlushInstruction::Clwb.is_available(), has("clwb"));
    assert_eq!(FlushInstruction::ClflushOpt.is_available(), has("clflushopt"));
}

#[test]
fn numbers_round_trip() {
    for instruction in FlushInstruction::ALL {
        assert_eq!(FlushInstruction::from_number(instruction as u8), instruction);
    }
    assert_eq!(FlushInstruction::from_number(0), FlushInstruction::None);
}

#[test]
fn every_available_flush_keeps_contents() {
    let line = Line::new([1, 2, 3, 4, 5, 6, 7, 8]);
    for instruction in FlushInstruction::ALL.into_iter().filter(|i| i.is_available()) {
        line.0[3].fetch_add(10, Relaxed);
        let before = line.values();
        for word in &line.0 {
            // SAFETY: points into a live line, and the instruction is available.
            unsafe { flush_line(instruction, std::ptr::from_ref(word).cast()) };
        }
        fence();
        assert_eq!(line.values(), before, "{instruction}");
    }
}

#[test]
fn copy_past_the_cache_copies_one_line() {
    let source: Vec<u8> = (0..65).collect();
    let lines = [Line::new([7; 8]), Line::new([8; 8]), Line::new([9; 8])];
    let to = lines[1].0.as_ptr().cast_mut().cast();
    // The source need not be aligned.
    // SAFETY: a live, aligned line of interior-mutable words, and 64 bytes to read.
    unsafe { copy_nt_line(to, source[1..].as_ptr()) };
    fence();
    let bytes: Vec<u8> = lines[1].values().into_iter().flat_map(u64::to_ne_bytes).collect();
    assert_eq!(bytes, source[1..]);
    assert_eq!(lines[0].values(), [7; 8]);
    assert_eq!(lines[2].values(), [9; 8]);
}

/// Sixteen bytes that threads swap.
#[repr(align(16))]
struct Pair(UnsafeCell<u128>);

// SAFETY: only accessed by `cas_u128` while shared.
unsafe impl Sync for Pair {}

impl Pair {
    fn cas(&self, current: u128, new: u128) -> u128 {
        // SAFETY: 16 aligned, interior-mutable bytes; the tests ask `has_cas_u128` first.
        unsafe { cas_u128(self.0.get().cast(), current, new) }
    }
}

#[test]
fn pair_is_swapped_only_when_both_words_match() {
    if !has_cas_u128() {
        return;
    }
    let old = 0x1111_2222_3333_4444_5555_6666_7777_8888;
    let new = 0xaaaa_bbbb_cccc_dddd_eeee_ffff_0000_9999;
    let mut pair = Pair(UnsafeCell::new(old));
    for flipped in [1, 1 << 63, 1 << 64, 1 << 127] {
        assert_eq!(pair.cas(old ^ flipped, new), old);
        assert_eq!(*pair.0.get_mut(), old, "must stay on a mismatch");
    }
    assert_eq!(pair.cas(old, new), old);
    assert_eq!(*pair.0.get_mut(), new);
}

#[test]
fn pair_swaps_are_atomic() {
    const ROUNDS: u128 = 500_000;
    if !has_cas_u128() {
        return;
    }
    // Both halves count; a torn swap or read makes them differ.
    let step = 1 << 64 | 1;
    let mut pair = Pair(UnsafeCell::new(0));
    let start = Barrier::new(4);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                start.wait();
                let mut current = 0;
                let mut done = 0;
                while done < ROUNDS {
                    let found = pair.cas(current, current + step);
                    assert_eq!(found as u64, (found >> 64) as u64);
                    if found == current {
                        done += 1;
                        current += step;
                    } else {
                        current = found;
                    }
                }
            });
        }
    });
    assert_eq!(*pair.0.get_mut(), 4 * ROUNDS * step);
}

#[test]
fn prefetches_never_fault() {
    for address in [0usize, 1, usize::MAX] {
        prefetch_line(std::ptr::without_provenance(address));
        prefetch_line_write(std::ptr::without_provenance(address));
    }
}

#[test]
fn the_counter_counts() {
    let first = timestamp();
    std::thread::sleep(std::time::Duration::from_millis(1));
    assert!(timestamp() > first);
}

/// Values of 256 bits that live across the copy, which code with AVX keeps in registers.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[test]
fn a_copy_leaves_the_vectors_of_others_alone() {
    use crate::sum::KEYS;
    use std::arch::x86_64::{
        __m256i, _mm256_loadu_si256, _mm256_set1_epi64x, _mm256_storeu_si256, _mm256_xor_si256,
    };

    /// Loads values, copies, and xors each value with the copy's sum: so none is loaded again, or is done with
    /// before the copy.
    #[target_feature(enable = "avx2")]
    #[inline(never)]
    fn across(values: &mut [[u64; 4]; 10], from: &[u64; 4], to: &mut [u64; 4]) {
        #[expect(clippy::cast_ptr_alignment, reason = "they are loaded and stored unaligned")]
        let at = values.as_mut_ptr().cast::<__m256i>();
        macro_rules! across {
            ($($value:ident $number:literal)*) => {
                // SAFETY: below the tenth of ten values of 32 bytes.
                $(let $value = unsafe { _mm256_loadu_si256(at.add($number)) };)*
                // SAFETY: 32 readable and 32 writable bytes; the machine has AVX2, as this function needs it.
                let sum = unsafe { copy_sum(to.as_mut_ptr().cast(), from.as_ptr().cast(), 1, &KEYS) };
                let sum = _mm256_set1_epi64x(sum as i64);
                // SAFETY: as above.
                $(unsafe { _mm256_storeu_si256(at.add($number), _mm256_xor_si256($value, sum)) };)*
            };
        }
        across!(a 0 b 1 c 2 d 3 e 4 f 5 g 6 h 7 i 8 j 9);
    }

    if !has_copy_sum() {
        return;
    }
    let (from, mut to) = ([1, 2, 3, 4], [0; 4]);
    let before: [[u64; 4]; 10] = std::array::from_fn(|number| [0x5555 ^ number as u64; 4]);
    let mut values = before;
    // SAFETY: the machine has AVX2.
    unsafe { across(&mut values, &from, &mut to) };
    let bytes: Vec<u8> = from.into_iter().flat_map(u64::to_le_bytes).collect();
    let sum = crate::sum(&bytes);
    assert_eq!(to, from);
    assert_eq!(values, before.map(|value| value.map(|word| word ^ sum)), "a register was changed");
}

/// Uses as many registers as there are, and a stack that vectors want aligned.
extern "C" fn spoil(at: *const (), first: u64, second: u64) -> u64 {
    let mut values = [first; 64];
    for (number, value) in (0..).zip(&mut values) {
        *value = value.rotate_left(number) ^ second.wrapping_mul(u64::from(number) | 1);
    }
    let values = std::hint::black_box(values.map(|value| value as f64 + 0.5));
    std::hint::black_box(values.iter().sum::<f64>());
    at as u64 ^ first ^ second
}

#[test]
fn a_call_aside_is_given_its_arguments_and_changes_nothing_else() {
    let kept: [u64; 12] = std::array::from_fn(|number| std::hint::black_box(number as u64));
    let thirds = || kept.map(|value| value as f64 / 3.0);
    let fractions: [f64; 12] = std::hint::black_box(thirds());
    for round in 0..100 {
        let (at, first, second) = (round as *const (), round << 20, round << 40);
        // SAFETY: `spoil` has no demands, and does not unwind.
        let result = unsafe { call_aside(spoil, at, first, second) };
        assert_eq!(result, round ^ first ^ second);
        assert_eq!(kept.iter().sum::<u64>(), 66);
        // Bit by bit.
        assert_eq!(thirds().map(f64::to_bits), fractions.map(f64::to_bits));
    }
}
