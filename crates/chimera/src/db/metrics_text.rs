//! The metrics of a store as OpenMetrics text. docs/METRICS.md lists them.

use chimera_pmem::Pmem;
use chimera_pmem::journal::{JournalFigures, PageFigures};

use super::Inner;
use crate::engine::Stats;
use crate::metrics::Kind::{Counter, Gauge, Histogram, Info};
use crate::metrics::{Exposition, Totals, seconds};
use crate::types::operations::{OperationStats, Timed};
use crate::types::order::OrderStats;
use crate::types::scrub::ScrubStats;
use crate::types::stats::{ReclaimStats, RecoveryStats};

impl<P: Pmem> Inner<P> {
    /// See [`Db::metrics_text`](super::Db::metrics_text).
    pub(super) fn metrics_text(&self) -> String {
        let totals = self.metrics.totals();
        let operations = totals.stats();
        let stats = self.stats();
        let mut text = Exposition::default();
        self.write_store(&mut text, &stats);
        write_operations(&mut text, &operations);
        write_latencies(&mut text, &totals, self.metrics.every());
        let (open, opened) = self.metrics.session_counts();
        text.single("chimera_sessions", Gauge, "Sessions that are open.", open);
        let help = "Sessions opened since the store was.";
        text.single("chimera_sessions_opened", Counter, help, opened);
        write_sizes(&mut text, &stats);
        self.engine.write_metrics(&mut text);
        write_reclaim(&mut text, &stats.reclaim);
        write_scrub(&mut text, &stats.scrub);
        write_recovery(&mut text, &stats.recovery);
        if let Some(order) = &stats.order {
            write_order(&mut text, order);
        }
        if let Some(journal) = &stats.journal {
            write_journal(&mut text, journal);
        }
        if let Some(pages) = &stats.pages {
            write_pages(&mut text, pages);
        }
        if let Some(counts) = stats.persistence {
            let help = "Cache lines flushed.";
            text.single("chimera_flushed_lines", Counter, help, counts.lines_flushed);
            text.single("chimera_fences", Counter, "Fences.", counts.fences);
        }
        text.finish()
    }

    fn write_store(&self, text: &mut Exposition, stats: &Stats) {
        let environment = self.engine.core().environment();
        let process = environment.process_id().to_string();
        text.family("chimera_store", Info, "What kind of store it is, and who has it open.")
            .sample(
                &[
                    ("engine", &stats.engine.to_string()),
                    ("medium", &stats.medium.to_string()),
                    ("durability", &stats.durability.to_string()),
                    ("flush_instruction", &stats.flush_instruction),
                    ("verify_reads", stats.verify_reads.name()),
                    ("version", env!("CARGO_PKG_VERSION")),
                    ("process", &process),
                ],
                true,
            );
        let uptime_ns = environment.now_ns().saturating_sub(self.opened_ns);
        let help = "Time since the store was opened.";
        text.single("chimera_uptime_seconds", Gauge, help, seconds(uptime_ns));
        if let Some(every) = self.published_every {
            let help = "Time between two publications of these metrics.";
            text.single("chimera_publish_interval_seconds", Gauge, help, every.as_secs_f64());
        }
        let help = "Whether writes are refused after a failure.";
        let is_poisoned = self.engine.core().poison.failure().is_some();
        text.single("chimera_poisoned", Gauge, help, is_poisoned);
    }
}

fn write_operations(text: &mut Exposition, counts: &OperationStats) {
    let outcomes = [
        ("get", "found", counts.get_hits),
        ("get", "missing", counts.get_misses),
        ("multi_get", "found", counts.multi_get_hits),
        ("multi_get", "missing", counts.multi_get_misses),
        ("put", "inserted", counts.inserts),
        ("put", "overwritten", counts.overwrites),
        ("update", "in_place", counts.updates_in_place),
        ("update", "rewritten", counts.updates),
        ("update", "unchanged", counts.updates_unchanged),
        ("update", "missing", counts.update_misses),
        ("update", "refused", counts.swaps_refused),
        ("delete", "deleted", counts.deletes),
        ("delete", "missing", counts.delete_misses),
    ];
    let help = "Operations by what came of them; for multi_get, keys.";
    let mut family = text.family("chimera_operations", Counter, help);
    for (operation, outcome, count) in outcomes {
        family.sample(&[("operation", operation), ("outcome", outcome)], count);
    }
    let errors = [
        ("argument", counts.errors_argument),
        ("pool_full", counts.errors_pool_full),
        ("corrupted", counts.errors_corrupted),
        ("read_only", counts.errors_read_only),
        ("poisoned", counts.errors_poisoned),
        ("other", counts.errors_other),
    ];
    let mut family = text.family("chimera_errors", Counter, "Operations that failed.");
    for (kind, count) in errors {
        family.sample(&[("kind", kind)], count);
    }
    let singles = [
        ("chimera_multi_get_calls", "Calls that get many keys at once.", counts.multi_gets),
        ("chimera_multi_put_calls", "Calls that put many records at once.", counts.multi_puts),
        ("chimera_batches", "Batches, each made as one.", counts.batches),
        ("chimera_listings", "Calls that list all records.", counts.listings),
        ("chimera_listed_records", "Records that such calls handed out.", counts.records_listed),
        ("chimera_scans", "Reads of keys in their order, of up to 128 at a time.", counts.scans),
        ("chimera_scanned_records", "Records that such calls handed out.", counts.records_scanned),
        ("chimera_value_read_bytes", "Bytes of values handed out.", counts.value_bytes_read),
        ("chimera_value_written_bytes", "Bytes of values written.", counts.value_bytes_written),
    ];
    for (name, help, count) in singles {
        text.single(name, Counter, help, count);
    }
}

fn write_latencies(text: &mut Exposition, totals: &Totals, every: u32) {
    let help = "One operation in so many is timed, on average; 0 for none.";
    text.single("chimera_latency_sampling_interval", Gauge, help, u64::from(every));
    let help = "How long operations took, of those that were timed.";
    let mut family = text.family("chimera_operation_latency_seconds", Histogram, help);
    for timed in Timed::ALL {
        family.latencies(&[("operation", timed.name())], &totals.latencies[timed as usize]);
    }
    let help =
        "Quantiles of the same since the store was opened, at most 1/32 above the true ones.";
    let mut family = text.family("chimera_operation_latency_quantile_seconds", Gauge, help);
    for timed in Timed::ALL {
        let stats = totals.latencies[timed as usize].stats();
        let quantiles = [
            ("0.5", stats.p50_ns),
            ("0.9", stats.p90_ns),
            ("0.99", stats.p99_ns),
            ("0.999", stats.p99_9_ns),
            ("1", stats.max_ns),
        ];
        for (quantile, ns) in quantiles.into_iter().filter(|_| stats.samples > 0) {
            let labels = [("operation", timed.name()), ("quantile", quantile)];
            family.sample(&labels, seconds(ns));
        }
    }
}

fn write_sizes(text: &mut Exposition, stats: &Stats) {
    let gauges = [
        ("chimera_records", "Live records.", stats.records),
        ("chimera_damaged_records", "Records left out as damaged at open.", stats.records_damaged),
        ("chimera_losses", "Places left out because of damage.", stats.losses.count),
        ("chimera_segments", "Segments mapped.", stats.segments),
        ("chimera_segment_bytes", "Size of a segment.", stats.segment_bytes),
        ("chimera_pmem_bytes", "Persistent memory of blocks in use.", stats.pmem_bytes),
        ("chimera_free_bytes", "Of these what holds no record, roughly.", stats.reclaim.debt_bytes),
    ];
    for (name, help, value) in gauges {
        text.single(name, Gauge, help, value);
    }
    text.family("chimera_blocks", Gauge, "Blocks in use, and ready to be used without growing.")
        .sample(&[("state", "used")], stats.blocks_used)
        .sample(&[("state", "ready")], stats.blocks_ready);
    text.family("chimera_dram_bytes", Gauge, "DRAM of the index, and of locks and block states.")
        .sample(&[("part", "index")], stats.dram_index_bytes)
        .sample(&[("part", "tables")], stats.dram_table_bytes);
    if let Some(user_bytes) = stats.user_bytes {
        let help = "Keys and values of live records, which all have the same size.";
        text.single("chimera_user_bytes", Gauge, help, user_bytes);
    }
    if let Some(ratio) = stats.space_amplification {
        let help = "Persistent memory in use over keys and values.";
        text.single("chimera_space_amplification_ratio", Gauge, help, ratio);
    }
    let help = "Processor time of the tasks that make blocks ready and reclaim space.";
    text.single("chimera_background_seconds", Counter, help, seconds(stats.background_ns));
}

fn write_reclaim(text: &mut Exposition, reclaim: &ReclaimStats) {
    let counters = [
        ("chimera_reclaim_passes", "Passes of space reclamation.", reclaim.passes),
        ("chimera_reclaim_moved_records", "Records moved.", reclaim.moved_records),
        ("chimera_reclaim_moved_bytes", "Keys and values moved.", reclaim.moved_bytes),
        ("chimera_reclaim_freed_blocks", "Blocks emptied.", reclaim.blocks_freed),
        ("chimera_reclaim_returned_blocks", "Blocks given back.", reclaim.blocks_given_back),
    ];
    for (name, help, count) in counters {
        text.single(name, Counter, help, count);
    }
}

fn write_scrub(text: &mut Exposition, scrub: &ScrubStats) {
    let counters = [
        ("chimera_scrub_passes", "Full passes over the store that ended.", scrub.passes),
        ("chimera_scrub_records", "Records verified by passes.", scrub.records),
        ("chimera_scrub_verified_bytes", "Keys and values verified by passes.", scrub.bytes),
        ("chimera_scrub_damages", "Damage found by passes.", scrub.damages),
    ];
    for (name, help, count) in counters {
        text.single(name, Counter, help, count);
    }
    let last = scrub.last_pass.clone().unwrap_or_default();
    let help = "When the last full pass ended, since the Unix epoch; 0 before the first one has.";
    text.single("chimera_scrub_last_pass_end_seconds", Gauge, help, last.ended_unix_seconds);
    let gauges = [
        ("chimera_scrub_last_pass_records", "Records that it verified.", last.records),
        ("chimera_scrub_last_pass_bytes", "Their keys and values.", last.bytes),
        ("chimera_scrub_last_pass_damages", "Damage that it found.", last.damages),
    ];
    for (name, help, value) in gauges {
        text.single(name, Gauge, help, value);
    }
    if let Some(done) = scrub.pass_done_ratio {
        let help = "How far the pass in the background is.";
        text.single("chimera_scrub_pass_done_ratio", Gauge, help, done);
    }
}

fn write_recovery(text: &mut Exposition, recovery: &RecoveryStats) {
    let help = "Time from the call to the open store.";
    let duration = seconds(recovery.duration_ns);
    text.single("chimera_recovery_duration_seconds", Gauge, help, duration);
    let help = "Whether the store had been closed in order.";
    text.single("chimera_recovery_clean", Gauge, help, recovery.clean);
    let gauges = [
        ("chimera_recovery_records", "Live records found at open.", recovery.records),
        ("chimera_recovery_blocks", "Blocks scanned at open.", recovery.blocks_scanned),
        (
            "chimera_recovery_duplicates",
            "Second copies of a key, left by interrupted overwrites and cleared at open.",
            recovery.duplicates_cleared,
        ),
        (
            "chimera_recovery_batches",
            "Batches that were cut off, and made at open.",
            recovery.batches_made,
        ),
        (
            "chimera_recovery_batches_taken_back",
            "Batches that were cut off, and taken back at open for lack of room.",
            recovery.batches_taken_back,
        ),
        ("chimera_recovery_threads", "Threads that scanned.", recovery.threads as u64),
    ];
    for (name, help, value) in gauges {
        text.single(name, Gauge, help, value);
    }
}

fn write_order(text: &mut Exposition, order: &OrderStats) {
    let gauges = [
        ("chimera_order_keys", "Keys in the ordered index.", order.keys),
        ("chimera_order_waiting_changes", "Changes that it has not seen yet.", order.waiting),
        ("chimera_order_ready", "Whether it has all keys.", order.is_ready.into()),
        ("chimera_order_gathered_keys", "Keys that were gathered for it.", order.keys_gathered),
        ("chimera_order_dram_bytes", "DRAM of the ordered index and its queues.", order.dram_bytes),
        (
            "chimera_order_working_threads",
            "Background threads that apply changes, by the last decision.",
            order.threads_working as u64,
        ),
        (
            "chimera_order_apply_nanoseconds",
            "Time that a background thread took for a change, in the last sampling window.",
            order.last_window.apply_ns,
        ),
    ];
    for (name, help, value) in gauges {
        text.single(name, Gauge, help, value);
    }
    let help = "Whether leaves of the ordered index are changed in hardware transactions.";
    text.single("chimera_order_transactions", Gauge, help, order.transactions);
    let counters = [
        (
            "chimera_order_aborted_transactions",
            "Hardware transactions that were aborted, and whose work was done without.",
            order.transactions_aborted,
        ),
        ("chimera_order_changes", "Changes queued for the ordered index.", order.changes),
        (
            "chimera_order_helped_changes",
            "Changes that scans, and writers that found a queue full, made themselves.",
            order.helped,
        ),
        (
            "chimera_order_decisions",
            "Decisions how many background threads apply changes.",
            order.decisions,
        ),
    ];
    for (name, help, count) in counters {
        text.single(name, Counter, help, count);
    }
}

fn write_journal(text: &mut Exposition, journal: &JournalFigures) {
    let help = "Bytes of entries appended to the journal.";
    text.single("chimera_journal_appended_bytes", Counter, help, journal.appended_bytes);
    let help = "Bytes of records that were written to their place alone.";
    text.single("chimera_journal_direct_bytes", Counter, help, journal.direct_bytes);
    let help = "Syncs that made entries of the journal durable.";
    text.single("chimera_journal_syncs", Counter, help, journal.syncs);
    let gauges = [
        ("chimera_journal_capacity_bytes", "Bytes the journal holds.", journal.capacity_bytes),
        (
            "chimera_journal_unsynced_bytes",
            "Bytes of entries that no sync has covered yet.",
            journal.unsynced_bytes,
        ),
        (
            "chimera_journal_pending_bytes",
            "Bytes of entries that a checkpoint has yet to write back.",
            journal.pending_bytes,
        ),
    ];
    for (name, help, value) in gauges {
        text.single(name, Gauge, help, value);
    }
}

fn write_pages(text: &mut Exposition, pages: &PageFigures) {
    let gauges = [
        (
            "chimera_memory_budget_bytes",
            "Bytes of memory that the store may take.",
            pages.budget_bytes,
        ),
        (
            "chimera_memory_needed_bytes",
            "Bytes of memory that the store cannot do without.",
            pages.needed_bytes,
        ),
        (
            "chimera_pages_limit_bytes",
            "Bytes of dirty pages at which writers wait.",
            pages.limit_bytes,
        ),
        (
            "chimera_pages_dirty_bytes",
            "Bytes of pages in memory that were stored to.",
            pages.private_bytes,
        ),
    ];
    for (name, help, value) in gauges {
        text.single(name, Gauge, help, value);
    }
    let counters = [
        (
            "chimera_pages_written_back_bytes",
            "Bytes of lines that checkpoints wrote to the data files.",
            pages.written_back_bytes,
        ),
        (
            "chimera_pages_given_back_bytes",
            "Bytes of pages that memory gave back to the data files.",
            pages.given_back_bytes,
        ),
        ("chimera_pages_waits", "Times that a writer waited for that.", pages.waits),
    ];
    for (name, help, count) in counters {
        text.single(name, Counter, help, count);
    }
    let help = "How long writers waited for that.";
    text.single("chimera_pages_wait_seconds", Counter, help, seconds(pages.wait_ns));
}
