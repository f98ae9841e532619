//! [`Units`]: which units of a run are taken, and where an item begins.

/// Which units of a run are taken, and which are the first of an item: bitmaps; and the place where the next search begins.
#[derive(Debug)]
pub(super) struct Units {
    words: Vec<u64>,
    /// What is freed by a damaged length must not be a neighbour.
    firsts: Vec<u64>,
    count: u32,
    used: u32,
    next: u32,
}

impl Units {
    /// None of `count` is taken.
    pub(super) fn new(count: u32) -> Self {
        let words = vec![0; count.div_ceil(u64::BITS) as usize];
        Self { firsts: words.clone(), words, count, used: 0, next: 0 }
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    pub(super) fn used(&self) -> u32 {
        self.used
    }

    /// Bytes of DRAM.
    pub(super) fn bytes(&self) -> u64 {
        (size_of::<Self>() + 2 * size_of_val(&*self.words)) as u64
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
        let mut first = self.next_with(from, self.count, u64::MAX);
        while first.checked_add(need)? <= self.count {
            let end = self.next_with(first, first + need, 0);
            if end - first >= need {
                return Some(first);
            }
            first = self.next_with(end, self.count, u64::MAX);
        }
        None
    }

    /// Hands out the free units, those in a row together: the first one, and how many.
    pub(super) fn each_free(&self, mut take: impl FnMut(u32, u32)) {
        let mut first = self.next_with(0, self.count, u64::MAX);
        while first < self.count {
            let end = self.next_with(first, self.count, 0);
            take(first, end - first);
            first = self.next_with(end, self.count, u64::MAX);
        }
    }

    /// The first unit from `from` on that is taken, where `flip` is 0, or free, where it is all ones; `end` if there is
    /// none before it.
    fn next_with(&self, from: u32, end: u32, flip: u64) -> u32 {
        next_of(&self.words, from, end, flip)
    }

    /// The units that items begin with.
    pub(super) fn firsts(&self) -> Vec<u32> {
        let mut firsts = Vec::new();
        let mut at = next_of(&self.firsts, 0, self.count, 0);
        while at < self.count {
            firsts.push(at);
            at = next_of(&self.firsts, at + 1, self.count, 0);
        }
        firsts
    }

    /// Units of the largest item. Of items without free units between them each ends where the next one begins.
    pub(super) fn largest(&self) -> u32 {
        let end_of = |first: u32| {
            let next = next_of(&self.firsts, first + 1, self.count, 0);
            self.next_with(first, next, u64::MAX)
        };
        self.firsts().into_iter().map(|first| end_of(first) - first).max().unwrap_or(0)
    }

    /// Takes these units. `false`, with nothing changed, when one of them is taken or is not there.
    pub(super) fn take_exactly(&mut self, first: u32, count: u32) -> bool {
        let end = first.checked_add(count).filter(|end| *end <= self.count);
        let is_free = end.is_some_and(|end| self.next_with(first, end, 0) == end);
        if is_free {
            self.set(first, count);
        }
        is_free
    }

    /// Takes all units, for ever.
    pub(super) fn take_all(&mut self) {
        self.set(0, self.count);
    }

    /// Whether an item begins with this unit.
    pub(super) fn is_first(&self, first: u32) -> bool {
        let word = self.firsts.get((first / u64::BITS) as usize);
        word.is_some_and(|word| word >> (first % u64::BITS) & 1 == 1)
    }

    /// Frees the units of an item, as many as it has if it has fewer than `count`: never those of another one, and none
    /// where no item begins.
    pub(super) fn free(&mut self, first: u32, count: u32) {
        if !self.is_first(first) {
            return;
        }
        let end = first.saturating_add(count).min(self.count);
        let end = next_of(&self.firsts, (first + 1).min(end), end, 0);
        each_word(first, end.saturating_sub(first), |word, mask| {
            self.used -= (self.words[word] & mask).count_ones();
            self.words[word] &= !mask;
            self.firsts[word] &= !mask;
        });
    }

    fn set(&mut self, first: u32, count: u32) {
        if let Some(word) = self.firsts.get_mut((first / u64::BITS) as usize) {
            *word |= 1 << (first % u64::BITS);
        }
        each_word(first, count, |word, mask| {
            self.used += (!self.words[word] & mask).count_ones();
            self.words[word] |= mask;
        });
    }
}

/// The first bit from `from` on that is set, where `flip` is 0, or not set, where it is all ones; `end` if there is none
/// before it.
fn next_of(words: &[u64], from: u32, end: u32, flip: u64) -> u32 {
    let mut word = (from / u64::BITS) as usize;
    let mut mask = u64::MAX << (from % u64::BITS);
    while (word as u64) * u64::from(u64::BITS) < u64::from(end) {
        let Some(bits) = words.get(word) else { break };
        let wanted = (bits ^ flip) & mask;
        if wanted != 0 {
            return (word as u32 * u64::BITS + wanted.trailing_zeros()).min(end);
        }
        (word, mask) = (word + 1, u64::MAX);
    }
    end
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
    fn a_length_that_is_too_large_frees_no_neighbour() {
        for (first, count) in [(0, 3), (60, 10), (63, 1), (64, 64)] {
            let mut units = Units::new(200);
            assert!(units.take_exactly(first, count));
            assert!(units.take_exactly(first + count, 5));
            for claimed in [count, count + 1, 100, u32::MAX] {
                units.free(first, claimed);
                assert_eq!(units.used(), 5, "{claimed} units from {first} on");
                assert!(units.take_exactly(first, count));
            }
            units.free(first + count + 1, 3);
            assert_eq!(units.used(), count + 5, "no item begins there");
            units.free(first, count);
            units.free(first + count, 5);
            assert_eq!(units.used(), 0);
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
