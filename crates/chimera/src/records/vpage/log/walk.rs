//! Going through a log, from one length to the next.

use chimera_pmem::Pmem;

use super::part::Part;
use super::seal::Head;
use super::{LOG_AT, LogPages, chunk_span};
use crate::pool::Pool;
use crate::records::block_flags;
use crate::records::lengths::Entry;

/// What a page holds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Walked {
    /// Where the log ends; none when it is damaged before.
    pub(super) tail: Option<u64>,
    pub(super) live_records: u32,
    /// Bytes of live records and chunks.
    pub(super) live_bytes: u64,
}

impl LogPages {
    /// The pages of a block with these flags.
    pub(super) fn parts<P: Pmem>(
        &self,
        pool: &Pool<P>,
        block: u64,
        flags: u32,
    ) -> impl Iterator<Item = Part> + use<P> {
        let is_whole = flags & block_flags::LARGE != 0;
        let page_bytes = self.map.page_bytes;
        let length = if is_whole { pool.map.block_bytes } else { page_bytes };
        let count = if is_whole { 1 } else { self.pages_per_block };
        let start = pool.map.block_at(block);
        (0..count).map(move |number| Part { number, at: start + number * page_bytes, length })
    }

    /// As [`parts`](Self::parts), whatever the block is; none when its flags are damaged.
    pub(super) fn parts_of<P: Pmem>(
        &self,
        pool: &Pool<P>,
        block: u64,
    ) -> impl Iterator<Item = Part> + use<P> {
        let flags = block_flags::read(pool, block).ok();
        flags.map(|flags| self.parts(pool, block, flags)).into_iter().flatten()
    }

    /// Goes through a page by its lengths alone. Returns where its log ends, unless it is damaged before, or ends
    /// elsewhere than the seal of the page says.
    pub(super) fn for_entries<P: Pmem>(
        &self,
        pool: &Pool<P>,
        part: Part,
        mut visit: impl FnMut(u64, Entry),
    ) -> Option<u64> {
        let head = Head::of(pool, part);
        let mut at = LOG_AT;
        while at < part.length {
            let entry = Entry::decode(pool.pmem.load_u64(part.at + at), part.at + at)?;
            if entry == Entry::End {
                break;
            }
            let bytes = self.span_inside(part, at, entry)?;
            visit(at, entry);
            at += bytes;
        }
        (!head.is_damaged() && head.allows_end(pool, part, at)).then_some(at)
    }

    /// Bytes of a record or chunk, if one of that size can lie there.
    pub(super) fn span_inside(&self, part: Part, at: u64, entry: Entry) -> Option<u64> {
        let bytes = match entry {
            Entry::End => 0,
            Entry::Record { lengths, .. } if lengths.key_bytes as usize > self.key_bytes_max => {
                return None;
            }
            Entry::Record { lengths, .. } => lengths.span(),
            Entry::Chunk { bytes } => chunk_span(u64::from(bytes)),
        };
        (at + bytes <= part.length).then_some(bytes)
    }

    /// What of a page is live, and where its log ends.
    pub(super) fn walk<P: Pmem>(&self, pool: &Pool<P>, part: Part) -> Walked {
        let mut walked = Walked::default();
        let tail = self
            .for_entries(pool, part, |at, entry| self.add_live(pool, part, at, entry, &mut walked));
        Walked { tail, ..walked }
    }

    /// Adds what is found at `at`, if it is live.
    pub(super) fn add_live<P: Pmem>(
        &self,
        pool: &Pool<P>,
        part: Part,
        at: u64,
        entry: Entry,
        walked: &mut Walked,
    ) {
        match entry {
            Entry::Record { is_live: true, lengths } => {
                walked.live_records += 1;
                walked.live_bytes += lengths.span();
            }
            Entry::Chunk { bytes }
                if self.record_of_chunk(pool, part.at + at).is_some_and(|(_, is_live)| is_live) =>
            {
                walked.live_bytes += chunk_span(u64::from(bytes));
            }
            _ => {}
        }
    }
}
