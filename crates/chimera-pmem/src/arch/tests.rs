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
