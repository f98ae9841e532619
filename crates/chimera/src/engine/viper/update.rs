//! Updates: in place where one aligned word changes, else by writing the record anew.

use chimera_pmem::{Operation, Pmem, prefetch_read};

use super::read::{Existing, Unsound};
use super::{Client, Viper, steps};
use crate::engine::shared::client::Written;
use crate::records::block_flags;
use crate::records::checksum::Summed;
use crate::records::vpage::{Pages, Place, Record, sites};
use crate::types::error::{Error, Result};
use crate::types::swap::Swap;

impl<P: Pmem, V: Pages> Viper<P, V> {
    /// `verify` where the caller has not read the value as `expected`: a damaged value that
    /// happens to be alike must not be confirmed.
    pub(super) fn replace(
        &self,
        client: &mut Client,
        hash: u64,
        key: &[u8],
        expected: &[u8],
        new: &[u8],
        verify: bool,
    ) -> Result<Swap> {
        let booked = self.core.book(Operation::Update, client.shared.number);
        self.index.prefetch_to_change(hash);
        let _key = self.keys.lock(hash, &self.core.poison)?;
        let prefetch =
            |place: &Place| self.core.pool.pmem.prefetch(self.pages.whole(&self.core.pool, place));
        let existing = self.find_locked(hash, key, prefetch)?;
        let Some(existing) = existing else { return Ok(Swap::Missing) };
        let Existing { record, .. } = &existing;
        if !self.pages.value_is(&self.core.pool, record, expected) {
            return Ok(Swap::Different);
        }
        let summed = || self.as_written(&record.place, Summed::of(expected));
        if verify && record.verify(hash, summed()).is_err() {
            return Err(Unsound { at: record.place.record_at }.into_error());
        }
        client.shared.written = match Change::between(expected, new) {
            Change::None => Written::Nothing,
            Change::Word { at, word } => {
                booked.is(Operation::UpdateInPlace);
                let at = self.word_at(record, at)?;
                self.store_word(client, &record.place, at, word)?;
                Written::InPlace
            }
            Change::More => {
                self.write(client, hash, key, new, Some(existing))?;
                Written::Anew
            }
        };
        Ok(Swap::Swapped)
    }

    /// Applies `change` to the 8 bytes at `at` of the value of `key`, little-endian; returns the
    /// number before. `change` answers `None` to leave it.
    pub(super) fn update_word(
        &self,
        client: &mut Client,
        key: &[u8],
        at: usize,
        change: impl Fn(u64) -> Option<u64>,
    ) -> Result<Option<u64>> {
        if let Some(value_bytes) = self.pages.fixed_value_bytes()
            && at.checked_add(8).is_none_or(|end| end > value_bytes)
        {
            return Err(Error::FieldOutOfRange { at, value_bytes });
        }
        let _booked = self.core.book(Operation::UpdateInPlace, client.shared.number);
        let hash = self.core.hash.of(key);
        self.index.prefetch(hash);
        let _key = self.keys.lock(hash, &self.core.poison)?;
        let prefetch = |place: &Place| {
            prefetch_read(self.page_lock(place));
            if let Some(word_at) = self.pages.expected_word(place, key.len(), at) {
                self.core.pool.pmem.prefetch_write(self.core.pool.extent(word_at, 8));
            }
        };
        let Some(existing) = self.find_locked(hash, key, prefetch)? else { return Ok(None) };
        let Existing { record, .. } = &existing;
        let word_at = self.word_at(record, at)?;
        let previous = self.core.pool.pmem.load_u64(word_at);
        client.shared.written = Written::Nothing;
        if let Some(new) = change(previous) {
            self.store_word(client, &record.place, word_at, new)?;
            client.shared.written = Written::InPlace;
        }
        Ok(Some(previous))
    }

    /// Offset of the word with bytes `at..at + 8` of a value.
    fn word_at(&self, record: &Record, at: usize) -> Result<u64> {
        self.pages.value_word(&self.core.pool, record, at).ok_or_else(|| {
            let value_bytes = self.pages.value_bytes(&self.core.pool, record);
            Error::FieldOutOfRange { at, value_bytes }
        })
    }

    /// Stores a word of the value of the record at `place`, in place.
    ///
    /// # Durability
    /// Durable on return, and nobody sees it before.
    ///
    /// # Cost
    /// 1 line, 1 fence; once per block 1 of each more.
    #[inline]
    fn store_word(&self, client: &Client, place: &Place, at: u64, word: u64) -> Result<()> {
        let pool = &*self.core.pool;
        self.allow_in_place(client, place)?;
        let _page = self.page_lock(place).lock(&*pool.environment);
        pool.pmem.store_u64(at, word, sites::VALUE_WORD);
        pool.pmem.flush(pool.extent(at, 8), sites::VALUE_WORD);
        pool.pmem.fence(sites::VALUE_WORD);
        Ok(())
    }

    /// Makes durable that values of the record's block are updated in place.
    #[inline]
    fn allow_in_place(&self, client: &Client, place: &Place) -> Result<()> {
        if !self.pages.is_checked() || self.page_lock(place).has_mark() {
            return Ok(());
        }
        let _booked = self.core.book(Operation::BlockMark, client.shared.number);
        let block = place.block;
        if self.blocks.is_damaged(block) {
            // The flag would end the checks that keep what is damaged from being served.
            let what =
                "its block holds damage, so a value cannot be updated in place: put it whole";
            return Err(Error::corrupted(what, place.record_at));
        }
        if !self.core.pool.pmem.skips(steps::MARK_BLOCK) {
            block_flags::change(&self.core.pool, block, block_flags::IN_PLACE, 0)?;
        }
        self.mark_pages(block, true);
        Ok(())
    }

    /// Tells readers whether the checksums of values in a block apply.
    pub(super) fn mark_pages(&self, block: u64, in_place: bool) {
        for page in 0..self.pages.pages_per_block() {
            let lock = self.blocks.page_lock(self.pages.page_number(block, page));
            lock.lock(&*self.core.pool.environment).set_mark(in_place);
        }
    }
}

/// How two values differ.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    None,
    /// In the aligned word at this position only.
    Word {
        at: usize,
        word: u64,
    },
    More,
}

impl Change {
    fn between(old: &[u8], new: &[u8]) -> Self {
        if old.len() != new.len() {
            return Self::More;
        }
        let differs = |number: &usize| {
            let end = (number * 8 + 8).min(old.len());
            old[number * 8..end] != new[number * 8..end]
        };
        let mut different = (0..old.len().div_ceil(8)).filter(differs);
        let Some(first) = different.next() else { return Self::None };
        if different.next().is_some() {
            return Self::More;
        }
        match new.get(first * 8..first * 8 + 8).and_then(|word| word.try_into().ok()) {
            Some(word) => Self::Word { at: first * 8, word: u64::from_le_bytes(word) },
            None => Self::More,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_within_one_aligned_word_is_recognised() {
        let old = [0; 20];
        let changed = |positions: &[usize]| {
            let mut new = old;
            for at in positions {
                new[*at] = 1;
            }
            Change::between(&old, &new)
        };
        assert_eq!(changed(&[]), Change::None);
        assert_eq!(changed(&[8]), Change::Word { at: 8, word: 1 });
        assert_eq!(changed(&[0, 7]), Change::Word { at: 0, word: 1 | 1 << 56 });
        assert_eq!(changed(&[7, 8]), Change::More);
        assert_eq!(changed(&[17]), Change::More, "the last word is not whole");
        assert_eq!(Change::between(&[], &[]), Change::None);
        assert_eq!(Change::between(&[0; 8], &[0; 9]), Change::More);
    }
}
