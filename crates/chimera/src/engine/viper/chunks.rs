//! Values that no block has room for: chunks first, then a record that tells where they are.

use chimera_pmem::{Extent, Pmem};

use super::read::Existing;
use super::{Client, Viper, steps};
use crate::pool::checked_word;
use crate::records::vpage::{Chunk, DESCRIPTOR_BYTES, Pages, Place, Stored};
use crate::types::error::Result;

/// A block that was in use before is taken for chunks when one in so many of its bytes is free.
const REUSED_PART: u32 = 4;

impl<P: Pmem, V: Pages> Viper<P, V> {
    /// Writes a record at `place` whose value lies in chunks elsewhere; as [`write`](Self::write).
    ///
    /// # Cost
    /// The lines of the value and up to two more for each of its chunks, beside what a short record costs;
    /// no fence more but for the blocks that are taken and left.
    #[cold]
    pub(super) fn write_in_chunks(
        &self,
        client: &mut Client,
        place: &Place,
        hash: u64,
        key: &[u8],
        value: &[u8],
        known: Option<Existing>,
    ) -> Result<Option<Existing>> {
        let mut chunks = Vec::new();
        if !self.core.pool.pmem.skips(steps::HOLD_BLOCKS) {
            client.hold_blocks();
        }
        let written = self.write_chunks(client, place, value, &mut chunks).and_then(|descriptor| {
            let stored = Stored { value, beside: &descriptor, chunks: &chunks };
            self.write_at(client, place, hash, key, &stored, known)
        });
        client.release_blocks(self);
        written
    }

    /// Writes and flushes the chunks of a value, the last one first, so that each can tell where the next
    /// one is. Returns the record's descriptor.
    fn write_chunks(
        &self,
        client: &mut Client,
        record: &Place,
        value: &[u8],
        chunks: &mut Vec<Extent>,
    ) -> Result<[u8; DESCRIPTOR_BYTES]> {
        let name = self.core.pool.environment.random_u64();
        let (mut next, mut end, mut position) = (None, value.len(), 0);
        while end > 0 {
            let point = client.point_for_chunk(self, self.pages.units_per_block() / REUSED_PART)?;
            // Each begins at a whole word of the value.
            let start = end.saturating_sub(self.pages.room_for_chunk(point)).next_multiple_of(8);
            let bytes = &value[start..end];
            let chunk = Chunk { record, name, next, position, bytes };
            let (location, all) = self.pages.write_chunk(&self.core.pool, point, &chunk);
            chunks.push(all);
            (next, end, position) = (Some(location), start, position + 1);
        }
        let first = next.map_or(0, crate::pool::Location::raw);
        let words = [first, name, checked_word::encode(value.len() as u32)];
        let mut descriptor = [0; DESCRIPTOR_BYTES];
        for (bytes, word) in descriptor.chunks_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        Ok(descriptor)
    }
}
