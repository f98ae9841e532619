//! [`Cursor`]: where the next record of a session goes.

use chimera_pmem::{Fenced, Pmem};

use super::page_map::PageMap;
use super::{Codec, Place, Room};
use crate::pool::Pool;
use crate::sync::VersionGuard;

/// Kinds of pages that a session writes to, each with an insert point of its own.
pub(crate) const PAGE_KINDS: usize = 2;

/// Where the next record of a session goes: a block, a page of it, and the part of the page in hand.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InsertPoint {
    pub(crate) block: Option<u64>,
    /// The block was in use before.
    pub(super) is_reused: bool,
    /// When nothing was left in the block, under a journal and where that is known.
    pub(crate) emptied: Option<Fenced>,
    /// Pages of the block to come after this one.
    pub(super) pages_left: u64,
    pub(crate) page: u64,
    pub(super) page_at: u64,
    /// Free space in the pages of the block when the session went on from them; none where no account is
    /// kept, or once it is wrong.
    pub(crate) left: Option<Room>,
    /// The part in hand of a page with slots.
    pub(super) slots: FreeSlots,
    /// The part in hand of a log.
    pub(super) log: LogEnd,
}

/// Free slots for new records.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FreeSlots {
    /// A word of the bitset, and the free slots in it, known to be durably free.
    pub(super) word: u32,
    pub(super) free: u64,
}

/// The end of a log.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LogEnd {
    /// From the start of the page to where the log ends, and to where it must.
    pub(super) tail: u64,
    pub(super) end: u64,
    /// The page is open: whoever leaves it seals it.
    pub(super) is_open: bool,
}

impl InsertPoint {
    /// Goes on to the next page of the block; `false` when each was passed.
    pub(super) fn next_page(&mut self, map: &PageMap, pages_per_block: u64) -> bool {
        if self.pages_left == 0 {
            return false;
        }
        self.pages_left -= 1;
        self.page = (self.page + 1) % pages_per_block;
        self.page_at = map.page_at(self.block.unwrap_or_default(), self.page);
        true
    }
}

/// Why a record that was begun at a point is not completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Abandoned {
    /// The record will not be committed.
    Begun,
    /// The word that would make records live is damaged.
    Damaged,
}

/// How sessions go through the pages of blocks.
pub(crate) trait Cursor: Codec {
    /// Flags of a block for each kind of page.
    const KIND_FLAGS: [u32; PAGE_KINDS];

    /// All flags that tell the kinds of pages apart.
    const KIND_MASK: u32;

    /// Which kind of page a record goes to.
    fn kind_of(&self, key_bytes: usize, beside_bytes: usize) -> usize;

    /// A point before the first page of a block to be filled with pages of a kind, not entered yet. `chance`
    /// chooses the page, so that sessions do not all begin at the same address bits.
    fn begin(&self, block: u64, is_reused: bool, kind: usize, chance: u64) -> InsertPoint;

    /// Looks at where the point is now, a page or a part of it, and makes it ready for records. Takes `lock`,
    /// the page's, where that changes bytes: readers with an old location may look at them.
    fn enter<'a, P: Pmem>(
        &self,
        pool: &Pool<P>,
        kind: usize,
        point: &mut InsertPoint,
        lock: impl FnOnce() -> VersionGuard<'a>,
    );

    /// The place for a record, if it fits where the point is.
    fn room(&self, point: &InsertPoint, key_bytes: usize, beside_bytes: usize) -> Option<Place>;

    /// The place that [`room`](Self::room) gave is in use.
    fn consume(&self, point: &mut InsertPoint, key_bytes: usize, beside_bytes: usize);

    /// The place that [`room`](Self::room) gave will not be in use, although bytes may lie there.
    fn abandon(&self, point: &mut InsertPoint, cause: Abandoned);

    /// Goes on to the next part of the page, or to the next page of the block, to be entered; `false` when the
    /// session has gone through the block. All that lies in the page is durable.
    ///
    /// # Durability
    /// Where a page that is left ends is durable with the caller's next fence.
    fn advance<P: Pmem>(&self, pool: &Pool<P>, point: &mut InsertPoint) -> bool;

    /// Gives a point up, before the block is given up. All that lies in the page is durable. The room in the block, if
    /// it is known without looking: as it was when the session went through each page.
    ///
    /// # Durability
    /// As of [`advance`](Self::advance).
    fn leave<P: Pmem>(&self, pool: &Pool<P>, point: InsertPoint) -> Option<Room>;

    /// Starts loading lines that the session comes to soon, after a record of this size.
    fn prefetch_next<P: Pmem>(
        &self,
        pool: &Pool<P>,
        point: &InsertPoint,
        key_bytes: usize,
        beside_bytes: usize,
    );

    /// Starts loading the lines that the next record shares with the one before.
    fn prefetch_shared<P: Pmem>(&self, pool: &Pool<P>, point: &InsertPoint);
}
