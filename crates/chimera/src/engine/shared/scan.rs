//! Scans: the records of keys that the order of a store has.

use chimera_pmem::Pmem;

use super::settle;
use crate::engine::contract::engine::Engine;
use crate::ordered::{Cursor, Direction};
use crate::types::error::Result;

/// Keys whose cache misses overlap.
const TOGETHER: usize = 16;
/// Bytes of a value from which on records are read one by one: they might not be wanted.
const LARGE_BYTES: usize = 16 << 10;

/// Hands the records of the next keys of a range to `take`, of `most` keys at the most, until it says `false`: then
/// the keys behind stay in the range. Leaves out keys that are not there any more. `false` when there are no keys left.
///
/// # Errors
/// As a get.
pub(crate) fn next_records<P: Pmem, E: Engine<P>>(
    engine: &E,
    client: &mut E::Client,
    cursor: &mut Cursor,
    direction: Direction,
    most: usize,
    mut take: impl FnMut(&[u8], &[u8]) -> bool,
) -> Result<bool> {
    let order = engine.core().order()?;
    // Where every key of a page was deleted meanwhile, the next page may have records.
    loop {
        let page = cursor.read(order, direction, most);
        if page.is_empty() {
            return Ok(false);
        }
        let (mut done, mut handed, mut goes_on) = (0, false, true);
        let mut together = TOGETHER;
        while goes_on && done < page.len() {
            let count = (page.len() - done).min(together);
            let mut keys = [&[][..]; TOGETHER];
            for (number, key) in keys[..count].iter_mut().enumerate() {
                *key = page.key(done + number);
            }
            let mut taken = 0;
            let read = settle::multi_get_with(engine, client, &keys[..count], |number, value| {
                if let (true, Some(value)) = (goes_on, value) {
                    (handed, taken) = (true, number + 1);
                    goes_on = take(keys[number], value);
                    if value.len() > LARGE_BYTES {
                        together = 1;
                    }
                }
            });
            // What lies behind the last record that is wanted is nobody's concern.
            if goes_on {
                read?;
            }
            done += if goes_on { count } else { taken };
        }
        if done < page.len() {
            let last = page.key(done - 1).to_vec();
            cursor.put_back_behind(&last, direction);
        }
        if handed {
            return Ok(true);
        }
    }
}
