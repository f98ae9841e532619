//! [`Dirty`]: the lines of a node that an operation has stored to, so that each is flushed once.

use chimera_pmem::{CACHE_LINE, Extent, Pmem, Site};

use super::shape::NODE_BYTES_MAX;

const WORDS: usize = (NODE_BYTES_MAX / CACHE_LINE / 64) as usize;

/// Lines of one node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dirty {
    /// Where the node begins: at a line.
    node_at: u64,
    lines: [u64; WORDS],
}

impl Dirty {
    /// Nothing of the node at this offset.
    pub(crate) fn of(node_at: u64) -> Self {
        Self { node_at, lines: [0; WORDS] }
    }

    /// Notes a range of the node, by its offset from the start.
    #[inline]
    pub(crate) fn add(&mut self, from: u64, bytes: u64) {
        let mut line = from / CACHE_LINE;
        while line * CACHE_LINE < from + bytes {
            self.lines[(line / 64) as usize] |= 1 << (line % 64);
            line += 1;
        }
    }

    /// Flushes every line noted, once, and waits for them.
    ///
    /// # Durability
    /// What was stored to them survives a power loss once the call returns.
    ///
    /// # Cost
    /// A flush for each line, one fence; nothing where no line was noted.
    #[inline]
    pub(crate) fn persist<P: Pmem>(&self, pmem: &P, site: Site) {
        if self.flush(pmem, site) {
            pmem.fence(site);
        }
    }

    /// The same without the fence; whether there was anything.
    #[inline]
    pub(crate) fn flush<P: Pmem>(&self, pmem: &P, site: Site) -> bool {
        let mut any = false;
        for (number, mut lines) in self.lines.into_iter().enumerate() {
            let word_at = self.node_at + number as u64 * 64 * CACHE_LINE;
            while lines != 0 {
                let first = u64::from(lines.trailing_zeros());
                let count = u64::from((lines >> first).trailing_ones());
                let at = word_at + first * CACHE_LINE;
                pmem.flush(Extent::new_checked(at, count * CACHE_LINE), site);
                any = true;
                lines = if first + count == 64 {
                    0
                } else {
                    lines >> (first + count) << (first + count)
                };
            }
        }
        any
    }
}
