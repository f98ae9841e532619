//! What a store holds, added up over the entries of its index.

use crate::index::persistent::buckets::Batch;
use crate::types::totals::Totals;

/// All entries that `list` hands out, from the first hash on, batch by batch.
pub(crate) fn of_entries(mut list: impl FnMut(u64, &mut Batch)) -> Totals {
    let (mut totals, mut batch, mut next) = (Totals::default(), Batch::default(), Some(0));
    while let Some(from) = next {
        list(from, &mut batch);
        batch.entries.iter().for_each(|&(hash, at)| totals.add(hash, at));
        next = batch.next;
    }
    totals
}
