//! Updates: in place where one aligned word changes, else by writing the record anew.
//!
//! A record's header can name one word of the value, the [`UncheckedWord`]. No checksum covers the word; the key's checksum
//! covers its name. An update of this word is a store, a flush and a fence under the page lock. A crash leaves the old word
//! or the new one, and the record matches its checksums either way. Any other update of one word is an overwrite whose record
//! names the word, so the next update is in place. A put names no word. A word behind the 8191st is never named.
//!
//! Invariant: in every live record everything but the named word is as it was when the record became live. The header is
//! durable before the record is live, and never changes. An update stores under the key's lock, so no writer replaces the
//! record in between. Readers wait for the page lock, so none returns a word that is not durable. A value that does not match
//! its checksum is never written anew: it would get one that is right.

use chimera_pmem::{Operation, Pmem, prefetch_read};

use super::records::{Existing, Unsound};
use super::space::Client;
use super::steps;
use super::write::{NewValue, Writer};
use crate::engine::contract::client::Written;
use crate::records::checksum::Summed;
use crate::records::unchecked_word::UncheckedWord;
use crate::records::vpage::{Pages, Place, Record, sites};
use crate::types::error::{Error, Result};
use crate::types::swap::Swap;

impl<P: Pmem, V: Pages> Writer<P, V> {
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
        let (pool, pages) = (self.records().pool(), self.records().pages());
        let booked = self.records().core().book(Operation::Update, client.shared.number);
        self.records().index().prefetch_to_change(hash);
        let _key = self.records().lock_key_to_write(hash, client.shared.batch)?;
        let prefetch = |place: &Place| pool.pmem.prefetch(pages.whole(pool, place));
        let existing = self.records().find_locked(hash, key, prefetch)?;
        let Some(existing) = existing else { return Ok(Swap::Missing) };
        let Existing { record, .. } = &existing;
        if !pages.value_is(pool, record, expected) {
            return Ok(Swap::Different);
        }
        if verify && record.verify(hash, Some(Summed::of(expected))).is_err() {
            return Err(Unsound { at: record.place.record_at }.into_error());
        }
        let unchecked = match Change::between(expected, new) {
            Change::None => {
                client.shared.written = Written::Nothing;
                return Ok(Swap::Swapped);
            }
            Change::Word { at, word } if self.is_in_place(record, at) => {
                booked.is(Operation::UpdateInPlace);
                let at = self.word_at(record, at)?;
                self.store_word(&record.place, at, word);
                client.shared.written = Written::InPlace;
                return Ok(Swap::Swapped);
            }
            Change::Word { at, .. } => UncheckedWord::at(at),
            Change::More => UncheckedWord::NONE,
        };
        let unchecked = self.unchecked(unchecked);
        self.overwrite(client, hash, key, NewValue { bytes: new, unchecked }, existing)?;
        client.shared.written = Written::Anew;
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
        let (records, pool, pages) =
            (self.records(), self.records().pool(), self.records().pages());
        if let Some(value_bytes) = pages.fixed_value_bytes()
            && at.checked_add(8).is_none_or(|end| end > value_bytes)
        {
            return Err(Error::FieldOutOfRange { at, value_bytes });
        }
        let booked = records.core().book(Operation::UpdateInPlace, client.shared.number);
        let hash = records.core().hash.of(key);
        records.index().prefetch(hash);
        let _key = records.lock_key_to_write(hash, client.shared.batch)?;
        let prefetch = |place: &Place| {
            prefetch_read(records.page_lock(place));
            if let Some(word_at) = pages.expected_word(place, key.len(), at) {
                pool.pmem.prefetch_write(pool.extent(word_at, 8));
            }
        };
        let Some(existing) = records.find_locked(hash, key, prefetch)? else { return Ok(None) };
        let Existing { record, .. } = &existing;
        let word_at = self.word_at(record, at)?;
        client.shared.written = Written::Nothing;
        if !self.is_in_place(record, at) {
            booked.is(Operation::Update);
            return self.change_anew(client, hash, key, at, existing, change).map(Some);
        }
        let previous = pool.pmem.load_u64(word_at);
        if let Some(new) = change(previous) {
            self.store_word(&record.place, word_at, new);
            client.shared.written = Written::InPlace;
        }
        Ok(Some(previous))
    }

    /// Whether a word of a record's value is updated where it lies: no checksum covers it.
    #[inline]
    fn is_in_place(&self, record: &Record, at: usize) -> bool {
        record.leaves_out(at) || self.records().pool().pmem.skips(steps::UNCHECKED_WORD)
    }

    /// [`update_word`](Self::update_word) of a word that is in the checksum: writes the record anew, with a checksum
    /// that leaves the word out, so that the next update is in place.
    ///
    /// # Cost
    /// A `get` and an overwrite. A change that is left costs the `get`.
    #[cold]
    fn change_anew(
        &self,
        client: &mut Client,
        hash: u64,
        key: &[u8],
        at: usize,
        existing: Existing<'_>,
        change: impl Fn(u64) -> Option<u64>,
    ) -> Result<u64> {
        let (pool, record) = (self.records().pool(), &existing.record);
        let mut value = std::mem::take(&mut client.shared.changed);
        // A damaged value must not get a checksum that is right.
        let read = self.records().pages().read_value(pool, record, &mut value);
        let is_sound = read.is_some_and(|value| {
            record.verify(hash, Some(value)).is_ok() || pool.pmem.skips(steps::ANEW_CHECK)
        });
        let Some(field) = value.get_mut(at..at + 8).filter(|_| is_sound) else {
            return Err(Unsound { at: record.place.record_at }.into_error());
        };
        let previous = u64::from_le_bytes((&*field).try_into().expect("8 bytes"));
        if let Some(new) = change(previous) {
            field.copy_from_slice(&new.to_le_bytes());
            let unchecked = self.unchecked(UncheckedWord::at(at));
            let new = NewValue { bytes: &value, unchecked };
            self.overwrite(client, hash, key, new, existing)?;
            client.shared.written = Written::Anew;
        }
        client.shared.changed = value;
        Ok(previous)
    }

    /// Offset of the word with bytes `at..at + 8` of a value.
    ///
    /// # Errors
    /// `FieldOutOfRange` for a word that the value does not have, `Corrupted` for one that it has and that cannot be
    /// found.
    fn word_at(&self, record: &Record, at: usize) -> Result<u64> {
        let word = self.records().pages().value_word(self.records().pool(), record, at);
        word.ok_or_else(|| self.no_word(record, at))
    }

    #[cold]
    fn no_word(&self, record: &Record, at: usize) -> Error {
        match self.records().pages().value_bytes(self.records().pool(), record) {
            Some(value_bytes) if at.checked_add(8).is_none_or(|end| end > value_bytes) => {
                Error::FieldOutOfRange { at, value_bytes }
            }
            _ => Unsound { at: record.place.record_at }.into_error(),
        }
    }

    /// Stores a word of the value of the record at `place`, in place.
    ///
    /// # Durability
    /// Durable on return, and nobody sees it before.
    ///
    /// # Cost
    /// 1 line, 1 fence.
    #[inline]
    fn store_word(&self, place: &Place, at: u64, word: u64) {
        let pool = self.records().pool();
        let _page = self.records().page_lock(place).lock(&*pool.environment);
        pool.pmem.store_u64(at, word, sites::VALUE_WORD);
        pool.pmem.flush(pool.extent(at, 8), sites::VALUE_WORD);
        pool.pmem.fence(sites::VALUE_WORD);
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
