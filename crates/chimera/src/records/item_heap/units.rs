//! [`Units`]: which units of a run are taken.

/// Which units of a run are taken: a bitmap, and the place where the next search begins.
#[derive(Debug)]
pub(super) struct Units {
    words: Vec<u64>,
    count: u32,
    used: u32,
    next: u32,
}

impl Units {
    /// None of `count` is taken.
    pub(super) fn new(count: u32) -> Self {
        Self { words: vec![0; count.div_ceil(u64::BITS) as usize], count, used: 0, next: 0 }
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    pub(super) fn used(&self) -> u32 {
        self.used
    }

    /// Bytes of DRAM.
    pub(super) fn bytes(&self) -> u64 {
        (size_of::<Self>() + size_of_val(&*self.words)) as u64
    }

    /// Takes `need` units in a row, and tells which is the first.
    pub(super) fn take(&mut self, need: u32) -> Option<u32> {
        if need > self.count - self.used {
            return None;
        }
        let first = self.search(self.next, need).or_else(|| self.search(0, need))?;
        self.set(first, need);
        self.next = first + need;
        Some(first)
    }

    /// Where `need` free units begin, from `from` on.
    fn search(&self, from: u32, need: u32) -> Option<u32> {
        let mut first = self.next_with(from, u64::MAX);
        while first.checked_add(need)? <= self.count {
            let end = self.next_with(first, 0);
            if end - first >= need {
                return Some(first);
            }
            first = self.next_with(end, u64::MAX);
        }
        None
    }

    /// Hands out the free units, those in a row together: the first one, and how many.
    pub(super) fn each_free(&self, mut take: impl FnMut(u32, u32)) {
        let mut first = self.next_with(0, u64::MAX);
        while first < self.count {
            let end = self.next_with(first, 0);
            take(first, end - first);
            first = self.next_with(end, u64::MAX);
        }
    }

    /// The first unit from `from` on that is taken, where `flip` is 0, or free, where it is all ones.
    fn next_with(&self, from: u32, flip: u64) -> u32 {
        let mut word = (from / u64::BITS) as usize;
        let mut mask = u64::MAX << (from % u64::BITS);
        while let Some(bits) = self.words.get(word) {
            let wanted = (bits ^ flip) & mask;
            if wanted != 0 {
                return (word as u32 * u64::BITS + wanted.trailing_zeros()).min(self.count);
            }
            (word, mask) = (word + 1, u64::MAX);
        }
        self.count
    }

    /// Takes these units. `false`, with nothing changed, when one of them is taken or is not there.
    pub(super) fn take_exactly(&mut self, first: u32, count: u32) -> bool {
        let is_free = first.checked_add(count).is_some_and(|end| end <= self.count)
            && self.next_with(first, 0) >= first + count;
        if is_free {
            self.set(first, count);
        }
        is_free
    }

    /// Takes all units, for ever.
    pub(super) fn take_all(&mut self) {
        self.set(0, self.count);
    }

    /// Frees units, those of them that are taken.
    pub(super) fn free(&mut self, first: u32, count: u32) {
        each_word(first, count.min(self.count.saturating_sub(first)), |word, mask| {
            self.used -= (self.words[word] & mask).count_ones();
            self.words[word] &= !mask;
        });
    }

    fn set(&mut self, first: u32, count: u32) {
        each_word(first, count, |word, mask| {
            self.used += (!self.words[word] & mask).count_ones();
            self.words[word] |= mask;
        });
    }
}

/// Calls `change` for each word that has some of these bits, with a mask of them.
fn each_word(first: u32, count: u32, mut change: impl FnMut(usize, u64)) {
    let (mut at, end) = (first, first + count);
    while at < end {
        let bits = (u64::BITS - at % u64::BITS).min(end - at);
        let mask = u64::MAX >> (u64::BITS - bits) << (at % u64::BITS);
        change((at / u64::BITS) as usize, mask);
        at += bits;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_taken_once_and_found_again() {
        for count in [1, 5, 63, 64, 65, 130, 200] {
            let mut units = Units::new(count);
            let mut taken = Vec::new();
            while let Some(first) = units.take(1 + taken.len() as u32 % 7) {
                taken.push((first, 1 + taken.len() as u32 % 7));
            }
            let mut seen = vec![false; count as usize];
            for (first, count) in &taken {
                for unit in *first..first + count {
                    assert!(!std::mem::replace(&mut seen[unit as usize], true));
                }
            }
            assert_eq!(units.used(), taken.iter().map(|(_, count)| count).sum::<u32>());
            for (first, count) in taken.iter().step_by(2) {
                units.free(*first, *count);
                assert!(units.take_exactly(*first, *count));
                assert!(!units.take_exactly(*first, *count));
            }
            for (first, count) in &taken {
                units.free(*first, *count);
            }
            assert_eq!((units.used(), units.take(count)), (0, Some(0)));
            assert_eq!(units.take(1), None);
        }
    }

    #[test]
    fn what_is_not_there_is_not_taken() {
        let mut units = Units::new(70);
        assert!(!units.take_exactly(70, 1) && !units.take_exactly(69, 2));
        assert!(!units.take_exactly(u32::MAX, 2));
        assert!(units.take_exactly(60, 10));
        assert_eq!((units.take(61), units.take(60)), (None, Some(0)));
        units.free(60, 500);
        assert_eq!((units.used(), units.take(10)), (60, Some(60)));
    }
}
