//! Runs of blocks, and what lies in those of each engine.

use super::blocks::{Pool, Run};
use super::{Map, tables};

const FREE: u64 = 15;
const LINE: u64 = 64;

const HIKV: u64 = 2;
const CHAMELEON: u64 = 3;
const PMEM_HASH: u64 = 4;
const DRAM_HASH: u64 = 5;

pub(super) fn mark(map: &mut Map<'_>, pool: &Pool) {
    let mut number = 0;
    while let Some(block) = pool.block(number) {
        let word = map.word(&block.file, block.at) & 0xffff_ffff;
        let (kind, blocks) = (word >> 8 & 15, ((word >> 12) + 1).min(block.left));
        let (at, end) = (block.at, block.at + blocks * pool.block_bytes);
        map.mark("run: word", &block.file, at..at + 8);
        map.mark("run: line of the pool", &block.file, at + 8..at + LINE);
        let run = Run { block, at: at + LINE, end };
        match (kind, pool.engine) {
            (FREE, _) => map.mark("free run", &run.block.file, run.at..run.end),
            (1, HIKV) | (2, PMEM_HASH | DRAM_HASH) => hash_segment(map, &run),
            (2, HIKV) => map.mark("hikv: items", &run.block.file, run.at..run.end),
            (3, HIKV) => dump(map, &run),
            (4, HIKV) => redo(map, &run, pool.area(1) >> 32),
            (1, CHAMELEON | PMEM_HASH | DRAM_HASH) => storage_log(map, &run),
            (2, CHAMELEON) => tables::manifest(map, &run, 1 << (pool.area(0) & 31)),
            (3 | 4, CHAMELEON) => tables::tables(map, &run),
            (3, _) => directory(map, &run),
            _ => locked_log(map, &run),
        }
        number += blocks;
    }
}

fn hash_segment(map: &mut Map<'_>, run: &Run) {
    let file = &run.block.file;
    map.mark("hash: word of a segment", file, run.at..run.at + 8);
    map.mark("hash: line of a segment", file, run.at + 8..run.at + LINE);
    let mut at = run.at + LINE;
    while at + 16 <= run.end {
        if map.word(file, at + 8) == 0 {
            map.mark("hash: empty slot", file, at..at + 16);
        } else {
            map.mark("hash: signature of a slot", file, at..at + 8);
            map.mark("hash: position of a slot", file, at + 8..at + 16);
        }
        at += 16;
    }
}

fn directory(map: &mut Map<'_>, run: &Run) {
    let file = &run.block.file;
    map.mark("directory: depth", file, run.at..run.at + 8);
    map.mark("directory: line", file, run.at + 8..run.at + LINE);
    map.mark("directory: places", file, run.at + LINE..run.end);
}

fn dump(map: &mut Map<'_>, run: &Run) {
    map.mark("dump: header", &run.block.file, run.at..run.at + LINE);
    map.mark("dump: keys", &run.block.file, run.at + LINE..run.end);
}

fn redo(map: &mut Map<'_>, run: &Run, area_bytes: u64) {
    let mut at = run.at;
    while area_bytes > 0 && at + area_bytes <= run.end {
        map.mark("redo log: header of a record", &run.block.file, at..at + 24);
        map.mark("redo log: bytes of a record", &run.block.file, at + 24..at + area_bytes);
        at += area_bytes;
    }
}

fn storage_log(map: &mut Map<'_>, run: &Run) {
    const WORDS: [&str; 5] = [
        "log: sequence number of a run",
        "log: state of a run",
        "log: flushed up to",
        "log: batch",
        "log: highest number",
    ];
    let file = &run.block.file;
    for (number, name) in (0..).zip(WORDS) {
        map.mark(name, file, run.at + 8 * number..run.at + 8 * number + 8);
    }
    map.mark("log: zeros of a header", file, run.at + 40..run.at + LINE);
    let use_number = map.word(file, run.at) & 0xffff_ffff;
    let mut at = run.at + LINE;
    while at + 24 <= run.end {
        let first = map.word(file, at);
        let used = first >> 45 | (map.word(file, at + 16) >> 51 & 0x1fff) << 19;
        let (value, key) = (first & 0x7fff_ffff, first >> 31 & 0x1fff);
        let key_end = at + 24 + key.next_multiple_of(8);
        let next = key_end + value.next_multiple_of(8);
        if key == 0 || used != use_number || next > run.end {
            break;
        }
        let is_tombstone = first >> 44 & 1 != 0;
        let name =
            if is_tombstone { "log: header of a tombstone" } else { "log: header of a record" };
        map.mark(name, file, at..at + 24);
        map.mark("log: key", file, at + 24..key_end);
        map.mark("log: value", file, key_end..next);
        at = next;
    }
    map.mark("log: behind the end of a run", file, at..run.end);
}

fn locked_log(map: &mut Map<'_>, run: &Run) {
    let file = &run.block.file;
    let mut at = run.at;
    while at + 24 <= run.end {
        let lengths = map.word(file, at) & 0xffff_ffff;
        let (key, value) = (lengths >> 1 & 0x7fff, lengths >> 16);
        let key_end = at + 24 + key.next_multiple_of(8);
        let next = key_end + value.next_multiple_of(8);
        if lengths == 0 || next > run.end {
            break;
        }
        map.mark("locked log: lengths", file, at..at + 8);
        map.mark("locked log: header of a record", file, at + 8..at + 24);
        map.mark("locked log: key", file, at + 24..key_end);
        map.mark("locked log: value", file, key_end..next);
        at = next;
    }
    map.mark("locked log: word that ends it", file, at..at + 8);
    map.mark("locked log: behind its end", file, at + 8..run.end);
}
