//! ChameleonDB's manifest and tables.

use super::Map;
use super::blocks::Run;

const ALIGN: u64 = 256;
const MAGIC: u64 = u64::from_le_bytes(*b"CHIMTBL2");

/// The first multiple of 256 bytes of the pool from here on, as an offset in the file.
fn aligned(run: &Run, at: u64) -> u64 {
    (at + run.block.to_pool).next_multiple_of(ALIGN) - run.block.to_pool
}

pub(super) fn manifest(map: &mut Map<'_>, run: &Run, shards: u64) {
    let file = &run.block.file;
    let words = aligned(run, run.at);
    map.mark("manifest: unused", file, run.at..words);
    let copies = aligned(run, words + 64 * shards);
    for shard in 0..shards {
        let at = words + 64 * shard;
        let epoch = map.word(file, at) & 0xffff_ffff;
        map.mark("manifest: current word", file, at..at + 8);
        map.mark("manifest: line of a current word", file, at + 8..at + 64);
        for copy in 0..2 {
            let at = copies + (2 * shard + copy) * ALIGN;
            if epoch != 0 && epoch % 2 == copy {
                map.mark("manifest: copy in force", file, at..at + ALIGN);
            } else {
                map.mark("manifest: other copy", file, at..at + ALIGN);
            }
        }
    }
    map.mark("manifest: unused", file, copies + 2 * shards * ALIGN..run.end);
}

pub(super) fn tables(map: &mut Map<'_>, run: &Run) {
    let file = &run.block.file;
    let mut at = aligned(run, run.at);
    map.mark("table: unused", file, run.at..at);
    while at + ALIGN <= run.end && map.word(file, at) == MAGIC {
        let slots = map.word(file, at + 8) & 0xffff_ffff;
        map.mark("table: header", file, at..at + 40);
        map.mark("table: zeros of a header", file, at + 40..at + ALIGN);
        let mut slot = at + ALIGN;
        let next = (slot + 16 * slots).min(run.end);
        while slot < next {
            let is_empty = map.word(file, slot) == 0 && map.word(file, slot + 8) == 0;
            let name = if is_empty { "table: empty slot" } else { "table: slot" };
            map.mark(name, file, slot..slot + 16);
            slot += 16;
        }
        at = next.next_multiple_of(ALIGN);
    }
    map.mark("table: unused", file, at..run.end);
}
