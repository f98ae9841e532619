//! [`Stats`]: what the store, its engine and its sessions say, put together.

use chimera_pmem::Pmem;

use super::Inner;
use crate::engine::Stats;

impl<P: Pmem> Inner<P> {
    /// See [`Db::stats`](super::Db::stats).
    pub(super) fn stats(&self) -> Stats {
        let pool = &self.engine.core().pool;
        let superblock = pool.superblock();
        let (records, kind, figures) =
            (self.engine.records(), self.engine.kind(), self.engine.stats());
        let facts = self.hardware.map(|facts| facts(&pool.pmem));
        // In this order: in the other one there could be more used than ready ones.
        let blocks_used = pool.used_blocks();
        let ready_blocks = pool.ready_blocks();
        let pmem_bytes = blocks_used * pool.map.block_bytes;
        let record_bytes = u64::from(kind.key_bytes) + u64::from(kind.value_bytes);
        let user_bytes = kind.is_fixed().then_some(records * record_bytes);
        let order = self.engine.core().changes.order().map(|order| order.stats());
        let order_bytes = order.as_ref().map_or(0, |order| order.dram_bytes);
        let dram = self.engine.dram();
        let dram_table_bytes = dram.table_bytes + order_bytes;
        let dram_bytes = dram.index_bytes + dram_table_bytes;
        Stats {
            engine: self.kind,
            key_bytes: kind.key_bytes,
            value_bytes: kind.value_bytes,
            medium: pool.pmem.medium(),
            durability: self.durability,
            flush_instruction: facts
                .as_ref()
                .map_or_else(|| "unknown".to_owned(), |facts| facts.flush_instruction.clone()),
            huge_pages: facts.is_some_and(|facts| facts.huge_pages),
            records,
            records_damaged: self.recovery.records_damaged,
            losses: pool.losses(),
            segments: superblock.segments,
            segment_bytes: superblock.geometry.segment_bytes,
            block_bytes: pool.map.block_bytes,
            blocks_used,
            blocks_ready: ready_blocks.saturating_sub(blocks_used) + figures.blocks_free,
            pmem_bytes,
            user_bytes,
            space_amplification: user_bytes.map(|user_bytes| ratio(pmem_bytes, user_bytes)),
            dram_index_bytes: dram.index_bytes,
            dram_table_bytes,
            dram_bytes_per_key: ratio(dram_bytes, records),
            background_ns: pool.background_ns() + self.tasks_ns(),
            reclaim: self.engine.reclaim_stats(),
            verify_reads: self.engine.core().verify_reads,
            scrub: self.scrub_stats(),
            recovery: self.recovery.clone(),
            operations: self.metrics.totals().stats(),
            journal: pool.pmem.journal().map(|journal| journal.figures()),
            pages: pool.pmem.journal().map(|journal| journal.page_figures()),
            persistence: pool.pmem.persistence_counts(),
            order,
            details: figures.details,
        }
    }
}

/// `part / whole`, 0 for an empty whole.
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
