//! What an open store is made of: blocks, pages, index.

use chimera_pmem::Pmem;

use super::blocks::Whose;
use super::records::Records;
use super::{IndexReport, Inspect};
use crate::index::volatile::extendible_hash::ExtendibleHash;
use crate::records::block_flags;
use crate::records::vpage::Pages;
use crate::types::progress::Progress;

/// Looks at every block. Other sessions may go on.
pub(super) fn inspect<P: Pmem, V: Pages>(
    records: &Records<P, V>,
    progress: Option<&Progress>,
) -> Inspect {
    let used = records.pool().used_blocks();
    let mut report = Inspect { index: inspect_index(records.index()), ..Inspect::default() };
    for block in 0..used {
        inspect_block(records, block, &mut report);
        if let (Some(progress), 0) = (progress, block % 64) {
            progress(block, used);
        }
    }
    if let Some(progress) = progress {
        progress(used, used);
    }
    report
}

fn inspect_block<P: Pmem, V: Pages>(records: &Records<P, V>, block: u64, report: &mut Inspect) {
    let (pool, blocks) = (records.pool(), &mut report.blocks);
    blocks.used += 1;
    let Ok(flags) = block_flags::read(pool, block) else {
        return blocks.damaged += 1;
    };
    match flags {
        flags if flags & block_flags::LARGE != 0 => blocks.large += 1,
        _ => blocks.paged += 1,
    }
    match records.space().blocks().whose(block) {
        Whose::Session => blocks.owned += 1,
        Whose::Queue => blocks.queued += 1,
        Whose::Nobody => blocks.resting += 1,
    }
    if flags & block_flags::BATCH != 0 {
        report.bytes.overhead += pool.map.block_bytes;
        return;
    }
    let usage = records.pages().usage(pool, block);
    blocks.empty += u64::from(usage.live_bytes == 0);
    report.fill.add(usage.live_bytes, pool.map.block_bytes);
    report.records += usage.live_records;
    report.pages.pages += usage.pages;
    report.pages.filled += usage.pages_filled;
    report.pages.damaged += usage.pages_damaged;
    report.bytes.live += usage.live_bytes;
    report.bytes.dead += usage.dead_bytes;
    report.bytes.room += usage.room_bytes;
    let known = usage.live_bytes + usage.dead_bytes + usage.room_bytes;
    report.bytes.overhead += pool.map.block_bytes.saturating_sub(known);
}

fn inspect_index(index: &ExtendibleHash) -> IndexReport {
    let shape = index.shape();
    let slots = shape.segments * u64::from(shape.slots_per_segment);
    let entries = index.len();
    IndexReport {
        entries,
        overflow: shape.overflow,
        segments: shape.segments,
        slots,
        load: entries as f64 / slots.max(1) as f64,
        directory_depth: shape.directory_depth,
        bytes: index.bytes(),
    }
}
