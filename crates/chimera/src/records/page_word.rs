//! [`PageWord`]: the first word of a page of records, in the form of the pool's
//! [word of a single block](crate::pool::BlockWord).
//!
//! ```text
//! bits of the number   what
//!  0..8                flags of the block, in its first page; else zero
//! 12..32               where the log of the page ends, in words from the start of the page; 0 = the page is open
//! ```
//! Each page of a block in use has such a word. It depends on its place and is never zero, so a page that was lost
//! is damage, and so is a page that is a copy of another one.
//!
//! A page with a log is *sealed* when nobody appends to it: the word says where the log ends. A log that ends anywhere
//! else has lost records. While a session appends, the page is *open*.

use chimera_pmem::{Pmem, Site};

use crate::pool::{BlockWord, Pool};

/// Checks that a tool can leave out.
pub(crate) mod steps {
    chimera_pmem::steps! {
        /// The check of a page's first word.
        WORD_CHECK = "page.step.word_check";
    }
}

/// What the first word of a page says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageWord {
    /// Of the block; only the first page has any.
    pub(crate) flags: u32,
    /// From the start of the page to where its log ends; 0 while the page is open.
    pub(crate) end: u64,
}

impl PageWord {
    /// Of an open page.
    pub(crate) fn open(flags: u32) -> Self {
        Self { flags, end: 0 }
    }

    #[inline]
    fn decode(word: u64, at: u64) -> Option<Self> {
        BlockWord::decode(word, at).filter(|word| word.is_single()).map(Self::of)
    }

    /// What the word `found` at offset `at` of the pool says, unless it is damaged.
    #[inline]
    pub(crate) fn check<P: Pmem>(pool: &Pool<P>, found: u64, at: u64) -> Option<Self> {
        let unchecked = || Self::of(BlockWord::decode_unchecked(found));
        Self::decode(found, at).or_else(|| pool.pmem.skips(steps::WORD_CHECK).then(unchecked))
    }

    fn of(word: BlockWord) -> Self {
        Self { flags: word.flags(), end: 8 * u64::from(word.number()) }
    }

    /// For offset `at` of the pool.
    #[inline]
    pub(crate) fn encode(self, at: u64) -> u64 {
        BlockWord::single(self.flags, (self.end / 8) as u32).encode(at)
    }

    /// The word at offset `at`, unless it is damaged.
    #[inline]
    pub(crate) fn load<P: Pmem>(pool: &Pool<P>, at: u64) -> Option<Self> {
        Self::check(pool, pool.pmem.load_u64(at), at)
    }

    /// Stores the word at offset `at`. The caller flushes.
    pub(crate) fn store<P: Pmem>(self, pool: &Pool<P>, at: u64, site: Site) {
        pool.pmem.store_u64(at, self.encode(at), site);
    }

    /// Says where the log of the page at `at` ends, 0 for an open one, and starts writing that back. The flags stay as
    /// they are, also beside others who change them. Nothing where the word is damaged or says so already.
    /// Whether anything was stored.
    ///
    /// # Durability
    /// After the caller's next fence.
    ///
    /// # Cost
    /// 1 line.
    pub(crate) fn set_end<P: Pmem>(pool: &Pool<P>, at: u64, end: u64, site: Site) -> bool {
        let mut found = pool.pmem.load_u64(at);
        loop {
            let Some(word) = Self::check(pool, found, at).filter(|word| word.end != end) else {
                return false;
            };
            let new = Self { end, ..word }.encode(at);
            match pool.pmem.cas_u64(at, found, new, site) {
                Ok(_) => break,
                Err(now) => found = now,
            }
        }
        pool.pmem.flush(pool.extent(at, 8), site);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_end_come_back_and_no_word_is_zero() {
        for flags in [0, 1, 25] {
            for end in [0, 8, 4096, 8 * 65_534] {
                let word = PageWord { flags, end };
                assert_ne!(word.encode(8192), 0);
                assert_eq!(PageWord::decode(word.encode(8192), 8192), Some(word));
                assert_eq!(PageWord::decode(word.encode(8192), 12_288), None);
            }
        }
        assert_eq!(PageWord::decode(0, 8192), None);
    }
}
