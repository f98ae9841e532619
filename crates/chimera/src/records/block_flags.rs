//! The flags of a block of pages, in the [first word](super::page_word) of its first page: each block is a single
//! one.

use chimera_pmem::Pmem;

use super::page_word::PageWord;
use crate::pool::Pool;
use crate::types::error::{Error, Result};

/// A session writes new records into the block.
pub(crate) const OWNED: u32 = 1;
/// The block is one page.
pub(crate) const LARGE: u32 = 8;
/// The block has been emptied: there is nothing to be found in it.
pub(crate) const FREE: u32 = 16;
/// The block is for records of batches, and has none of the store.
pub(crate) const BATCH: u32 = 32;
/// Every flag there is.
pub(crate) const KNOWN: u32 = OWNED | LARGE | FREE | BATCH;

/// The sites of flags.
pub(crate) mod sites {
    chimera_pmem::sites! {
        /// The flags of a block.
        FLAGS = "block.flags";
    }
}

/// The first word of a block, which holds `found`.
fn decode<P: Pmem>(pool: &Pool<P>, block: u64, found: u64) -> Result<PageWord> {
    let at = pool.map.block_at(block);
    PageWord::check(pool, found, at)
        .filter(|word| word.flags & !KNOWN == 0)
        .ok_or_else(|| Error::corrupted(format!("the flags of block {block} are damaged"), at))
}

/// The flags of a block.
///
/// # Errors
/// `Corrupted` when their word is damaged.
pub(crate) fn read<P: Pmem>(pool: &Pool<P>, block: u64) -> Result<u32> {
    let found = pool.pmem.load_u64(pool.map.block_at(block));
    decode(pool, block, found).map(|word| word.flags)
}

/// Whether a block is for records of batches.
pub(crate) fn is_for_batches<P: Pmem>(pool: &Pool<P>, block: u64) -> bool {
    matches!(read(pool, block), Ok(flags) if flags & BATCH != 0)
}

/// Sets and clears flags of a block durably, and leaves the rest of their word as it is: 1 line, 1 fence.
///
/// # Errors
/// `Corrupted` when their word is damaged.
pub(crate) fn change<P: Pmem>(pool: &Pool<P>, block: u64, set: u32, clear: u32) -> Result<()> {
    let at = pool.map.block_at(block);
    let mut found = pool.pmem.load_u64(at);
    loop {
        let word = decode(pool, block, found)?;
        let new = PageWord { flags: word.flags & !clear | set, ..word };
        match pool.pmem.cas_u64(at, found, new.encode(at), sites::FLAGS) {
            Ok(_) => break,
            Err(now) => found = now,
        }
    }
    // The bytes of a chunk begin in the next line, at the earliest.
    pool.pmem.flush_beside_new(pool.extent(at, 8), sites::FLAGS);
    pool.pmem.fence(sites::FLAGS);
    Ok(())
}
