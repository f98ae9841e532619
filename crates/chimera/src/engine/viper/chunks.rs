//! Values that are spilled: chunks first, then a record that tells where they are.
//!
//! A chunk is live while its record is. It names the record, and both have the same random name, so a record that comes to
//! lie at that place later does not make it live. A chunk's lengths are stored with the rest of the chunk, so a crash may leave
//! it torn. That is never taken for damage: the lengths are one word, which is there or zero, and a chunk without a live
//! record is not read.
//!
//! A session holds the blocks of its chunks until the record is live, so nobody looks for room in them. Their pages are sealed
//! after that, because only the record's fence makes the chunks durable. If the record is not written, a fence of its own comes
//! first.

use chimera_pmem::{Extent, Pmem};

use super::write::NewValue;
use super::{Client, Viper, steps};
use crate::pool::Location;
use crate::records::chunks::{Chunk, Descriptor};
use crate::records::vpage::{LogPages, Pages, Place, Stored, sites};
use crate::types::error::Result;

/// A block that was in use before is taken for chunks when one in so many of its bytes is free.
const REUSED_PART: u32 = 4;

impl<P: Pmem, V: Pages> Viper<P, V> {
    /// Writes the value of a record at `place` to chunks, and has `write` write the record with their
    /// descriptor.
    ///
    /// # Cost
    /// The lines of the value and up to two more for each of its chunks, beside what a short record costs;
    /// no fence more but for the blocks that are taken and left.
    #[cold]
    pub(super) fn write_in_chunks<T>(
        &self,
        client: &mut Client,
        place: &Place,
        value: NewValue<'_>,
        write: impl FnOnce(&mut Client, &Stored<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut chunks = Vec::new();
        if !self.core.pool.pmem.skips(steps::HOLD_BLOCKS) {
            client.hold_blocks();
        }
        let descriptor = self.write_chunks(client, place, value.bytes, &mut chunks);
        let written = descriptor
            .and_then(|descriptor| write(client, &value.stored(&descriptor.to_bytes(), &chunks)));
        if written.is_err() && !chunks.is_empty() {
            // The record that would have waited for them was not written, and their pages may be sealed now.
            self.core.pool.pmem.fence(sites::SEAL);
        }
        client.release_blocks(self);
        written
    }

    /// Writes and flushes the chunks of a value, the last one first, so that each can tell where the next
    /// one is. Returns the descriptor of the record at `place`.
    fn write_chunks(
        &self,
        client: &mut Client,
        place: &Place,
        value: &[u8],
        chunks: &mut Vec<Extent>,
    ) -> Result<Descriptor> {
        let (record, name) = (place.location(), self.core.pool.environment.random_u64());
        let need = self.pages.units_per_block() / REUSED_PART;
        let (mut next, mut end, mut position) = (None, value.len(), 0);
        while end > 0 {
            let point = client.point_for_chunk(self, need)?;
            // Each begins at a whole word of the value.
            let start = end.saturating_sub(LogPages::room_for_chunk(point)).next_multiple_of(8);
            let chunk = Chunk { record, name, next, position, bytes: &value[start..end] };
            let (location, all) = LogPages::write_chunk(&self.core.pool, point, &chunk);
            chunks.push(all);
            (next, end, position) = (Some(location), start, position + 1);
        }
        Ok(Descriptor { first: next.map_or(0, Location::raw), name, bytes: value.len() as u32 })
    }
}
