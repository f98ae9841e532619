//! Listings: every record, in the order of [positions](super::part).

use chimera_pmem::Pmem;

use super::Index;
use super::part::{DAMAGED_SLOT, Part};
use crate::engine::chameleon::records::DAMAGED_RECORD;
use crate::engine::contract::listed::{Listed, hand_out};
use crate::pool::Held;
use crate::types::error::Result;

/// See [`Engine::list`](crate::engine::Engine::list). Hashes that were there when the listing came to their part are
/// looked up one after the other; a key that is gone by then is left out. `buffer` is for values.
pub(crate) fn list_from<P: Pmem>(
    index: &Index<P>,
    buffer: &mut Vec<u8>,
    from: u64,
    mut take: impl FnMut(&Listed<'_>) -> bool,
) -> Result<()> {
    let (mut part, mut next) = (Part::default(), Some(from));
    while let Some(from) = next {
        verify_tables_from(index, from)?;
        index.gather_part(from, &mut part)?;
        next = part.next;
        for at in &part.damages {
            index.records.pass_over(DAMAGED_SLOT, *at)?;
        }
        for position in &part.positions {
            if !list_position(index, buffer, *position, &mut take)? {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Verifies the tables of the shard that begins with this position, if one does: a listing sees slots one by one, and would
/// not miss one.
///
/// # Errors
/// `Corrupted` for damage, unless the store salvages.
fn verify_tables_from<P: Pmem>(index: &Index<P>, position: u64) -> Result<()> {
    let Some(number) = index.shard_at(position) else { return Ok(()) };
    let work = index.lock_work(number);
    for (place, owner) in index.shards.tables_of(number, &work.current.tables) {
        match index.verify_table(place, owner) {
            Err(error) if index.records.salvages() => {
                index.core().pool.note_lost_of(Held::Nothing, &error, place.at);
            }
            verified => verified?,
        }
    }
    Ok(())
}

/// Hands the records of all keys at a position to `take`, as long as it says `true`.
fn list_position<P: Pmem>(
    index: &Index<P>,
    buffer: &mut Vec<u8>,
    position: u64,
    take: &mut impl FnMut(&Listed<'_>) -> bool,
) -> Result<bool> {
    let hash = index.shards.shape().hash_at(position);
    let mut damages = Vec::new();
    let records = index.read_same_hash(buffer, hash, |at| damages.push(at))?;
    damages.into_iter().try_for_each(|at| index.records.pass_over(DAMAGED_RECORD, at))?;
    Ok(hand_out(position, records, buffer, take))
}
