//! [`Record`]: a record in the pool, decoded once and passed on.

use super::Place;
use crate::records::checksum::Summed;
use crate::records::header::{Mismatch, RecordHeader};
use crate::records::lengths::Lengths;
use crate::records::unchecked_word::UncheckedWord;

/// What is known about a record beside its bytes: decoded once ([`Codec::decode`](super::Codec::decode)), so that
/// all that is asked about it is answered from the same words.
///
/// A record that is read without a lock may change meanwhile: then its words may not belong together, but all
/// of it lies in its block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) place: Place,
    pub(crate) lengths: Lengths,
    /// None in the published layout, which has no headers.
    pub(crate) header: Option<RecordHeader>,
}

impl Record {
    /// Zero in the published layout, which has no versions.
    #[inline(always)]
    pub(crate) fn version(&self) -> u64 {
        self.header.map_or(0, |header| header.version())
    }

    /// The word of the value that its checksum leaves out.
    pub(crate) fn unchecked(&self) -> UncheckedWord {
        self.header.map_or(UncheckedWord::NONE, |header| header.unchecked())
    }

    /// Whether no checksum covers bytes `at..at + 8` of the value, where `at` is a multiple of 8.
    #[inline]
    pub(crate) fn leaves_out(&self, at: usize) -> bool {
        self.header.is_none_or(|header| header.unchecked().is_at(at))
    }

    /// Whether the record is as it was written; see [`RecordHeader::verify`]. Without a header nothing speaks
    /// against it.
    ///
    /// # Errors
    /// The first part that does not match.
    #[inline(always)]
    pub(crate) fn verify(&self, key_hash: u64, value: Option<Summed<'_>>) -> Result<(), Mismatch> {
        match &self.header {
            Some(header) => header.verify(self.place.record_at, key_hash, value),
            None => Ok(()),
        }
    }
}
