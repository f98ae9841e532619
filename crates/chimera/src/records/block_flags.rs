//! The flags of a block of pages, in the pool's [word of the block](crate::pool::BlockWord): each block is a
//! single one.

use chimera_pmem::Pmem;

use crate::pool::{BlockWord, Pool};
use crate::types::error::{Error, Result};

/// A session writes new records into the block.
pub(crate) const OWNED: u32 = 1;
/// The block is one page.
pub(crate) const LARGE: u32 = 8;
/// The block has been emptied: there is nothing to be found in it.
pub(crate) const FREE: u32 = 16;
/// Every flag there is.
pub(crate) const KNOWN: u32 = OWNED | LARGE | FREE;

/// The sites of flags.
pub(crate) mod sites {
    chimera_pmem::sites! {
        /// The flags of a block.
        FLAGS = "block.flags";
    }
}

/// Checks that a tool can leave out.
pub(crate) mod steps {
    chimera_pmem::steps! {
        /// The check of a block's flags.
        FLAGS_CHECK = "block.step.flags_check";
    }
}

/// The flags of a block.
///
/// # Errors
/// `Corrupted` when their word is damaged.
pub(crate) fn read<P: Pmem>(pool: &Pool<P>, block: u64) -> Result<u32> {
    let at = pool.map.block_at(block);
    let found = pool.pmem.load_u64(at);
    BlockWord::decode(found)
        .map(BlockWord::number)
        .filter(|flags| flags & !KNOWN == 0)
        .or_else(|| pool.pmem.skips(steps::FLAGS_CHECK).then_some(found as u32))
        .ok_or_else(|| Error::corrupted(format!("the flags of block {block} are damaged"), at))
}

/// Sets and clears flags of a block durably: 1 line, 1 fence.
///
/// # Errors
/// `Corrupted` when their word is damaged.
pub(crate) fn change<P: Pmem>(pool: &Pool<P>, block: u64, set: u32, clear: u32) -> Result<()> {
    let at = pool.map.block_at(block);
    let encode = |flags| BlockWord::single(flags).encode();
    loop {
        let flags = read(pool, block)?;
        let (old, new) = (encode(flags), encode(flags & !clear | set));
        if pool.pmem.cas_u64(at, old, new, sites::FLAGS).is_ok() {
            break;
        }
    }
    pool.pmem.flush(pool.extent(at, 8), sites::FLAGS);
    pool.pmem.fence(sites::FLAGS);
    Ok(())
}

/// Makes `flags` the flags of a block that was never in use, durably, whatever the file had there.
pub(crate) fn set_fresh<P: Pmem>(pool: &Pool<P>, block: u64, flags: u32) {
    pool.store_block_word(block, BlockWord::single(flags), sites::FLAGS);
    pool.pmem.fence(sites::FLAGS);
}
