//! Table 4 of the paper: entries of a node, and what memory that takes for 50 million of them.
//!
//! The paper's rows do not all follow from each other. *Base* packs count, links and entries without any gap. *Aligned* gives
//! the first line to count and links. *With search structure* is Figure 2b, when the bitmap consists of words of 8 bytes: with
//! a bit for each entry, as the figure has it, a node of 2 KiB would hold 80 entries, and the table has 79.
//!
//! Its row of gigabytes with a search structure belongs to 38 and 78 entries at 1 and 2 KiB, where the row above it has 37 and
//! 79. The overheads of 8 and 6 % follow from these gigabytes; 37 and 79 entries make them 11 and 5 %.

/// Node sizes of the paper, in bytes.
pub const NODE_BYTES: [u32; 5] = [256, 512, 1024, 2048, 4096];
/// Entries that Table 4 is about.
pub const ENTRIES: u64 = 50_000_000;
/// Bytes of count and links, and of an entry.
const METADATA_BYTES: u32 = 8 + 16 + 16;
const ENTRY_BYTES: u32 = 8 + 16;
const LINE: u32 = 64;

/// Entries of a node without any gap.
pub fn base(node_bytes: u32) -> u32 {
    (node_bytes - METADATA_BYTES) / ENTRY_BYTES
}

/// Entries where count and links have the first line to themselves.
pub fn aligned(node_bytes: u32) -> u32 {
    (node_bytes - LINE) / ENTRY_BYTES
}

/// Entries with M + 1 slots and a bit for each entry in front: the arithmetic of Figure 2b.
pub fn by_figure_2(node_bytes: u32) -> u32 {
    let fits = |entries: &u32| {
        let front = entries + 1 + entries.div_ceil(8) + 32;
        front.next_multiple_of(LINE) + entries * ENTRY_BYTES <= node_bytes
    };
    (0..=aligned(node_bytes)).rev().find(fits).unwrap_or_default()
}

/// Gibibytes of a chain of nodes with [`ENTRIES`] entries, of which a node has so many.
pub fn chain_gib(node_bytes: u32, entries: u32) -> f64 {
    let nodes = ENTRIES as f64 / f64::from(entries);
    nodes * f64::from(node_bytes) / f64::from(1 << 30)
}

/// Percent of memory that a node of `entries` takes more than one of `base` does for the same entries.
pub fn overhead_percent(base: u32, entries: u32) -> f64 {
    (f64::from(base) - f64::from(entries)) * 100.0 / f64::from(entries)
}
