//! [`Chunks`]: which chunks of a region are free, and runs of them.

/// Free chunks as bits, in DRAM.
#[derive(Debug)]
pub(super) struct Chunks {
    /// A bit for each chunk that is in use.
    used: Vec<u64>,
    count: usize,
    free: usize,
    /// No chunk below this one is free.
    first: usize,
}

impl Chunks {
    pub(super) fn new(count: usize) -> Self {
        Self { used: vec![0; count.div_ceil(64)], count, free: count, first: 0 }
    }

    #[cfg(test)]
    fn free(&self) -> usize {
        self.free
    }

    fn is_used(&self, chunk: usize) -> bool {
        self.used[chunk / 64] >> (chunk % 64) & 1 == 1
    }

    fn set(&mut self, chunk: usize, used: bool) {
        debug_assert_ne!(self.is_used(chunk), used, "chunk {chunk}");
        self.used[chunk / 64] ^= 1 << (chunk % 64);
    }

    /// Takes the first run of `length` chunks.
    pub(super) fn take(&mut self, length: usize) -> Option<usize> {
        if length == 0 || length > self.free {
            return None;
        }
        let mut run = 0;
        let mut seen_free = false;
        for chunk in self.first..self.count {
            if self.is_used(chunk) {
                run = 0;
                continue;
            }
            if !seen_free {
                self.first = chunk;
                seen_free = true;
            }
            run += 1;
            if run == length {
                let start = chunk + 1 - length;
                (start..=chunk).for_each(|chunk| self.set(chunk, true));
                self.free -= length;
                return Some(start);
            }
        }
        None
    }

    /// Gives a run back.
    pub(super) fn give(&mut self, start: usize, length: usize) {
        (start..start + length).for_each(|chunk| self.set(chunk, false));
        self.free += length;
        self.first = self.first.min(start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_taken_first_fit_and_given_back() {
        let mut chunks = Chunks::new(100);
        assert_eq!((chunks.take(0), chunks.take(101)), (None, None));
        assert_eq!((chunks.take(40), chunks.take(60)), (Some(0), Some(40)));
        assert_eq!((chunks.take(1), chunks.free()), (None, 0));
        chunks.give(10, 5);
        chunks.give(50, 6);
        assert_eq!(chunks.take(6), Some(50), "the first run is too short");
        assert_eq!((chunks.take(1), chunks.take(4), chunks.take(1)), (Some(10), Some(11), None));
    }
}
