//! Viper's blocks and pages.

use super::Map;
use super::blocks::{Block, Pool};
use crate::hostile::{self, SlotLayout};

const LARGE: u64 = 1 << 3;
const FREE: u64 = 1 << 4;
/// From a record of a log to its key; of a chunk, to its bytes.
const KEY_AT: u64 = 24;
const CHUNK_BYTES_AT: u64 = 40;
const SPILLED: u64 = 65_535;

pub(super) fn mark(map: &mut Map<'_>, pool: &Pool) {
    let Some(slots) = hostile::slots(&pool.words) else { return };
    for number in 0..pool.used {
        let Some(block) = pool.block(number) else { return };
        let flags = map.word(&block.file, block.at) & 0xffff_ffff;
        if flags & FREE != 0 {
            map.mark("viper: word of a block", &block.file, block.at..block.at + 8);
            let rest = block.at + 8..block.at + pool.block_bytes;
            map.mark("viper: free block", &block.file, rest);
            continue;
        }
        let is_large = flags & LARGE != 0;
        let bytes = if is_large { pool.block_bytes } else { slots.page_bytes };
        for page in 0..pool.block_bytes / bytes {
            let at = block.at + page * bytes;
            let name = if page == 0 { "viper: word of a block" } else { "viper: word of a page" };
            map.mark(name, &block.file, at..at + 8);
            if slots.is_variable {
                log(map, &block, at, bytes);
            } else {
                slotted(map, &block, at, &slots);
            }
        }
    }
}

fn slotted(map: &mut Map<'_>, block: &Block, at: u64, slots: &SlotLayout) {
    let first = at + slots.first_slot;
    map.mark("viper: bits of slots", &block.file, at + 8..first);
    for number in 0..slots.slots {
        let word = at + 8 + 8 * (number / slots.slots_per_word);
        let is_live = map.word(&block.file, word) >> (number % slots.slots_per_word) & 1 != 0;
        let slot = first + number * slots.slot_bytes;
        let end = slot + slots.slot_bytes;
        if is_live {
            let (key, value) = (slot + slots.key_at, slot + slots.value_at);
            map.mark("viper: header of a slot", &block.file, slot..key);
            map.mark("viper: key of a slot", &block.file, key..value);
            map.mark("viper: value of a slot", &block.file, value..end);
        } else {
            map.mark("viper: free slot", &block.file, slot..end);
        }
    }
}

fn log(map: &mut Map<'_>, block: &Block, page: u64, bytes: u64) {
    let (file, end) = (&block.file, page + bytes);
    let mut at = page + 8;
    while at + 8 <= end {
        let lengths = map.word(file, at) & 0xffff_ffff;
        if lengths == 0 {
            map.mark("viper: word that ends a log", file, at..at + 8);
            map.mark("viper: behind the end of a log", file, at + 8..end);
            return;
        }
        let (is_live, key, value) = (lengths & 1 != 0, lengths >> 1 & 0x7fff, lengths >> 16);
        let key_end = at + KEY_AT + key.next_multiple_of(8);
        map.mark("viper: lengths of a record", file, at..at + 8);
        let next = if key == 0 {
            map.mark("viper: header of a chunk", file, at + 8..at + CHUNK_BYTES_AT);
            let next = at + CHUNK_BYTES_AT + value.next_multiple_of(8);
            map.mark("viper: bytes of a chunk", file, at + CHUNK_BYTES_AT..next.min(end));
            next
        } else {
            let is_spilled = value == SPILLED;
            let next = key_end + if is_spilled { 24 } else { value.next_multiple_of(8) };
            let names = match (is_live, is_spilled) {
                (false, _) => ["viper: retired record"; 3],
                (true, true) => {
                    ["viper: header of a record", "viper: key of a record", "viper: descriptor"]
                }
                (true, false) => [
                    "viper: header of a record",
                    "viper: key of a record",
                    "viper: value of a record",
                ],
            };
            map.mark(names[0], file, at + 8..at + KEY_AT);
            map.mark(names[1], file, at + KEY_AT..key_end.min(end));
            map.mark(names[2], file, key_end.min(end)..next.min(end));
            next
        };
        at = next;
    }
}
