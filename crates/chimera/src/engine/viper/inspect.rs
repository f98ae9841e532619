//! What an open store is made of: blocks, pages, index.

use chimera_pmem::Pmem;

use super::blocks::Whose;
use super::{IndexReport, Inspect, Viper};
use crate::records::block_flags;
use crate::records::vpage::Pages;
use crate::types::progress::Progress;

impl<P: Pmem, V: Pages> Viper<P, V> {
    /// Looks at every block. Other sessions may go on.
    pub(super) fn inspect_blocks(&self, progress: Option<&Progress>) -> Inspect {
        let used = self.core.pool.used_blocks();
        let mut report = Inspect { index: self.inspect_index(), ..Inspect::default() };
        for block in 0..used {
            self.inspect_block(block, &mut report);
            if let (Some(progress), 0) = (progress, block % 64) {
                progress(block, used);
            }
        }
        if let Some(progress) = progress {
            progress(used, used);
        }
        report
    }

    fn inspect_block(&self, block: u64, report: &mut Inspect) {
        let blocks = &mut report.blocks;
        blocks.used += 1;
        let Ok(flags) = block_flags::read(&self.core.pool, block) else {
            return blocks.damaged += 1;
        };
        match flags {
            flags if flags & block_flags::LARGE != 0 => blocks.large += 1,
            _ => blocks.paged += 1,
        }
        match self.blocks.whose(block) {
            Whose::Session => blocks.owned += 1,
            Whose::Queue => blocks.queued += 1,
            Whose::Nobody => blocks.resting += 1,
        }
        let usage = self.pages.usage(&self.core.pool, block);
        blocks.empty += u64::from(usage.live_bytes == 0);
        report.fill.add(usage.live_bytes, self.core.pool.map.block_bytes);
        report.records += usage.live_records;
        report.pages.pages += usage.pages;
        report.pages.filled += usage.pages_filled;
        report.pages.damaged += usage.pages_damaged;
        report.bytes.live += usage.live_bytes;
        report.bytes.dead += usage.dead_bytes;
        report.bytes.room += usage.room_bytes;
        let known = usage.live_bytes + usage.dead_bytes + usage.room_bytes;
        report.bytes.overhead += self.core.pool.map.block_bytes.saturating_sub(known);
    }

    fn inspect_index(&self) -> IndexReport {
        let shape = self.index.shape();
        let slots = shape.segments * u64::from(shape.slots_per_segment);
        let entries = self.index.len();
        IndexReport {
            entries,
            overflow: shape.overflow,
            segments: shape.segments,
            slots,
            load: entries as f64 / slots.max(1) as f64,
            directory_depth: shape.directory_depth,
            bytes: self.index.bytes(),
        }
    }
}
