//! The superblock, the journal, segments and their blocks.

use super::blocks::{BASE, COPY_WORDS, PAGE_BYTES, Pool, USED_BLOCKS_AT};
use super::{Map, pages, runs};
use crate::damage::image::{Image, JOURNAL, SUPERBLOCK};

const VIPER: u64 = 1;

/// Names of the words of a superblock copy.
const COMMON: [&str; 21] = [
    "superblock: magic",
    "superblock: version, engine",
    "superblock: pool id",
    "superblock: seed of the hash",
    "superblock: bytes of a segment",
    "superblock: bytes of a block",
    "superblock: sequence number",
    "superblock: segments",
    "superblock: closed or open",
    "superblock: boot id",
    "superblock: roots",
    "superblock: roots",
    "superblock: roots of a closed store",
    "superblock: roots of a closed store",
    "superblock: zero",
    "superblock: checksum",
    "superblock: length of the area",
    "superblock: check of the area",
    "superblock: totals of a closed store",
    "superblock: totals of a closed store",
    "superblock: totals of a closed store",
];
const JOURNAL_HEADER: [&str; 8] = [
    "journal: magic",
    "journal: version",
    "journal: pool id",
    "journal: journal id",
    "journal: capacity",
    "journal: start",
    "journal: closed or in use",
    "journal: checksum",
];

/// Marks everything.
pub(super) fn mark(map: &mut Map<'_>) {
    for copy in 0..2 {
        let at = copy * PAGE_BYTES;
        for (number, name) in (0..).zip(COMMON) {
            map.mark(name, SUPERBLOCK, at + 8 * number..at + 8 * number + 8);
        }
        let area = at + 8 * COMMON.len() as u64;
        map.mark("superblock: area of the engine", SUPERBLOCK, area..at + 8 * COPY_WORDS);
        map.mark(
            "superblock: used blocks",
            SUPERBLOCK,
            at + USED_BLOCKS_AT..at + USED_BLOCKS_AT + 8,
        );
        map.mark("superblock: unused", SUPERBLOCK, at + 8 * COPY_WORDS..at + USED_BLOCKS_AT);
        map.mark("superblock: unused", SUPERBLOCK, at + USED_BLOCKS_AT + 8..at + PAGE_BYTES);
    }
    journal(map);
    let Some(pool) = Pool::read(map.image) else { return };
    for segment in 0..pool.segments {
        let file = Image::segment(segment);
        let header = pool.segment_bytes - PAGE_BYTES;
        map.mark("segment: header", &file, header..header + 64);
        map.mark("segment: unused", &file, header + 64..pool.segment_bytes);
        let first = segment * pool.blocks_per_segment();
        let in_use = pool.used.saturating_sub(first).min(pool.blocks_per_segment());
        let end = pool.shift_bytes + in_use * pool.block_bytes;
        map.mark("block that is not in use", &file, end..header);
        map.mark("segment: unused", &file, 0..pool.shift_bytes);
    }
    match pool.engine {
        VIPER => pages::mark(map, &pool),
        _ => runs::mark(map, &pool),
    }
}

/// Headers, entries from the first one on, and what is left of others.
fn journal(map: &mut Map<'_>) {
    for copy in 0..2 {
        let at = copy * PAGE_BYTES;
        for (number, name) in (0..).zip(JOURNAL_HEADER) {
            map.mark(name, JOURNAL, at + 8 * number..at + 8 * number + 8);
        }
    }
    let start = |copy: u64| map.word(JOURNAL, copy * PAGE_BYTES + 40);
    let capacity = map.word(JOURNAL, 32).max(map.word(JOURNAL, PAGE_BYTES + 32));
    if capacity == 0 {
        return;
    }
    let first = start(0).max(start(1));
    let mut position = first;
    while position < first + capacity {
        let word = |number: u64| {
            let at = (position + 8 * number) % capacity;
            map.word(JOURNAL, BASE + at)
        };
        let (found, sizes) = (word(1), word(3));
        let bytes = sizes & 0xffff_ffff;
        if found != position || bytes < 32 || !bytes.is_multiple_of(8) {
            break;
        }
        let end_of_runs = 32 + 8 * (sizes >> 32);
        let parts = [
            ("journal: entry header", 0..32),
            ("journal: entry runs", 32..end_of_runs.min(bytes)),
            ("journal: entry lines", end_of_runs.min(bytes)..bytes),
        ];
        for (name, part) in parts {
            for inside in part.step_by(8) {
                let at = BASE + (position + inside) % capacity;
                map.mark(name, JOURNAL, at..at + 8);
            }
        }
        position += bytes;
    }
    while position < first + capacity {
        let at = BASE + position % capacity;
        map.mark("journal: behind the entries", JOURNAL, at..at + 8);
        position += 8;
    }
}
