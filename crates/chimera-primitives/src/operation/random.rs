//! [`Places`]: places in an order without a pattern, each once.

/// The numbers below a bound, in an order that follows from a seed: each once, and then the same again.
#[derive(Clone, Debug)]
pub struct Places {
    count: u64,
    /// Of a sequence that goes through all numbers below the next power of two.
    state: u64,
    mask: u64,
    step: u64,
}

impl Places {
    /// The numbers below `count`.
    ///
    /// # Panics
    /// When there are none.
    pub fn new(count: u64, seed: u64) -> Self {
        assert!(count > 0, "there are no places");
        let size = count.next_power_of_two();
        // A multiplier of 4n + 1 and an odd increment go through all of a power of two.
        let step = (seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20) | 1;
        Self { count, state: seed & (size - 1), mask: size - 1, step }
    }
}

impl Iterator for Places {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        loop {
            self.state = (self.state.wrapping_mul(0x5_DEEC_E66D & !3 | 1).wrapping_add(self.step))
                & self.mask;
            // The low bits of such a sequence have short periods: those that differ most come first.
            let bits = self.mask.count_ones();
            let place = if bits == 0 { 0 } else { self.state.reverse_bits() >> (64 - bits) };
            if place < self.count {
                return Some(place);
            }
        }
    }
}

/// Mixes a number, for choices that follow from where they are made.
pub(crate) fn mix(number: u64) -> u64 {
    let number = (number ^ number >> 31).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (number ^ number >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) ^ number >> 32
}
