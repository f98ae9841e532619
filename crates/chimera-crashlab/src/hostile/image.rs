//! [`Image`]: the files of a small store, valid by docs/FORMAT.md.

use std::collections::BTreeMap;

use super::format::{
    AREA_AT, AREA_LENGTH_AT, AREA_WORDS, CHECKSUM_AT, COPY_STRIDE, PIECE_BYTES_MAX, Page,
    SEGMENT_END_BYTES, SEGMENT_WORDS, SEQUENCE_AT, SUPERBLOCK_BYTES, SUPERBLOCK_WORDS, Shape,
    TOTALS_AT, USED_BLOCKS_AT, area_checksum, checked_word_at, checksum, colliding_key, key_check,
    key_hash, value_check,
};

pub(super) const SUPERBLOCK: &str = "superblock";
const HASH_SEED: u64 = 0x5eed;
const POOL_ID: u64 = 0x1d;

/// What an image begins as.
#[derive(Clone, Copy, Debug)]
pub(super) struct Base {
    pub(super) shape: Shape,
    segments: usize,
    used_blocks: usize,
    pub(super) records: u64,
}

const fn shape(
    pages: (usize, usize, usize),
    segment_bytes: usize,
    is_checked: bool,
    sizes: (usize, usize),
) -> Shape {
    Shape {
        hash_seed: HASH_SEED,
        segment_bytes,
        page_bytes: pages.0,
        pages_per_block: pages.1,
        block_shift_bytes: pages.2,
        is_checked,
        key_bytes: sizes.0,
        value_bytes: sizes.1,
    }
}

const fn base(shape: Shape, segments: usize, used_blocks: usize, records: u64) -> Base {
    Base { shape, segments, used_blocks, records }
}

/// Several geometries and sizes; the second half has records of any size. Order and number are part of
/// the corpus.
pub(super) const BASES: [Base; 16] = [
    base(shape((256, 2, 0), 8192, true, (8, 8)), 1, 2, 5),
    base(shape((256, 2, 0), 8192, false, (8, 8)), 1, 2, 5),
    base(shape((256, 1, 64), 8192, true, (16, 24)), 2, 16, 12),
    base(shape((512, 3, 0), 12_288, true, (32, 0)), 1, 3, 8),
    base(shape((4096, 6, 0), 28_672, true, (16, 200)), 1, 1, 6),
    base(shape((1024, 8, 512), 16_384, true, (1, 600)), 1, 1, 3),
    base(shape((256, 2, 0), 16_384, false, (32, 8)), 1, 20, 10),
    base(shape((256, 2, 0), 8192, true, (8, 8)), 0, 0, 0),
    base(shape((256, 2, 0), 12_288, true, ANY), 1, 14, 9),
    base(shape((256, 1, 64), 16_384, true, ANY), 1, 40, 8),
    base(shape((512, 3, 0), 20_480, true, ANY), 1, 9, 8),
    base(shape((4096, 6, 0), 28_672, true, ANY), 3, 3, 6),
    base(shape((1024, 8, 512), 24_576, true, ANY), 3, 6, 7),
    base(shape((256, 8, 0), 16_384, true, ANY), 2, 12, 16),
    base(shape((8832, 8, 0), 77_824, true, ANY), 2, 2, 5),
    base(shape((256, 2, 0), 8192, true, ANY), 0, 0, 0),
];

/// Bytes of the keys and values of a store for records of any size.
const ANY: (usize, usize) = (0, 0);
/// Bytes of keys by 16 of their numbers, where they have any size; those of 32 have one hash.
const KEY_BYTES: [usize; 16] = [8, 16, 1, 24, 9, 100, 192, 64, 8, 33, 32, 32, 32, 32, 32, 32];

/// The key with this number; those from 128 on have one hash where keys have 32 bytes.
pub(super) fn key_of(shape: &Shape, number: u8) -> Vec<u8> {
    let key_bytes =
        if shape.is_variable() { KEY_BYTES[usize::from(number >> 4)] } else { shape.key_bytes };
    if key_bytes == 32 && number >= 128 {
        return colliding_key(shape.hash_seed, u64::from(number)).to_vec();
    }
    let mut key: Vec<u8> = (0..key_bytes).map(|at| 0xa0 ^ at as u8).collect();
    if let Some(first) = key.first_mut() {
        *first = number;
    }
    key
}

/// A value that follows from the number of its key and a version. Where it may have any size, that is one
/// for a page with many records, a page with one, a block, and one that needs several.
pub(super) fn value_of(shape: &Shape, number: u8, version: u64) -> Vec<u8> {
    let word = version.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(number);
    let value_bytes = match version & 7 {
        _ if !shape.is_variable() => shape.value_bytes,
        0 => 0,
        1 => 8,
        2 => 24,
        3 => 13,
        4 => shape.page_bytes / 2 + 20,
        5 => shape.page_bytes + 44,
        6 => (shape.block_bytes() + 188).min(PIECE_BYTES_MAX + 188),
        _ => (3 * shape.block_bytes() + 5).min(PIECE_BYTES_MAX + 700),
    };
    word.to_le_bytes().into_iter().cycle().take(value_bytes).collect()
}

/// Files by name.
pub(super) struct Image {
    pub(super) files: BTreeMap<String, Vec<u8>>,
}

/// A slot by its numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) block: usize,
    pub(super) page: usize,
    pub(super) number: usize,
}

impl Image {
    pub(super) fn new(base: &Base) -> Self {
        let shape = &base.shape;
        let mut image = Self { files: BTreeMap::new() };
        image.files.insert("lock".to_owned(), Vec::new());
        image.files.insert(SUPERBLOCK.to_owned(), superblock(base));
        for number in 0..base.segments {
            let mut bytes = vec![0; shape.segment_bytes];
            let header = shape.segment_bytes - SEGMENT_END_BYTES;
            set_word(&mut bytes, header, u64::from_le_bytes(*b"CHIMSEG1"));
            set_word(&mut bytes, header + 8, POOL_ID);
            set_word(&mut bytes, header + 16, number as u64);
            image.files.insert(segment_name(number), bytes);
        }
        image.fix_headers();
        image.format_blocks(shape);
        if shape.is_variable() {
            for number in 0..base.records {
                image.append(shape, number as u8, 1 + number);
            }
            image.seal_logs(shape);
            return image;
        }
        let slots = shape.page().slots;
        for number in 0..base.records {
            let at = number as usize;
            // In one page after the other, so that some are full of holes.
            let page = at % (base.used_blocks * shape.pages_per_block);
            let slot = Slot {
                block: page / shape.pages_per_block,
                page: page % shape.pages_per_block,
                number: at % slots,
            };
            image.write_record(shape, slot, number as u8, 1 + number);
        }
        image
    }

    /// Makes all blocks empty ones, those that are not in use, too: the number of used blocks may be changed.
    fn format_blocks(&mut self, shape: &Shape) {
        let words = if shape.is_variable() || !shape.is_checked {
            1
        } else {
            let page = shape.page();
            1 + page.slots.div_ceil(page.slots_per_word)
        };
        for block in 0..self.files.len() * shape.blocks_per_segment() {
            for page in 0..shape.pages_per_block {
                let slot = Slot { block, page, number: 0 };
                let Some((bytes, at, place)) = self.page_of(shape, slot) else { continue };
                for word in 0..words {
                    let empty = checked_word_at(0, place + 8 * word as u64);
                    set_word(bytes, at + 8 * word, empty);
                }
            }
        }
    }

    /// The shape that the superblock in force says, as far as it can be worked with.
    pub(super) fn shape(&self) -> Option<Shape> {
        let bytes = self.files.get(SUPERBLOCK)?;
        let copy = |at: usize| -> Option<Vec<u64>> {
            let words = bytes.get(at..at + 8 * SUPERBLOCK_WORDS)?.chunks(8);
            Some(words.map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes"))).collect())
        };
        let (first, second) = (copy(0)?, copy(COPY_STRIDE)?);
        Shape::from_superblock(
            if (first[SEQUENCE_AT].wrapping_sub(second[SEQUENCE_AT]) as i64) > 0 {
                &first
            } else {
                &second
            },
        )
    }

    /// Writes a record with right checks, and sets its bit. Nothing where there is no such slot.
    pub(super) fn write_record(&mut self, shape: &Shape, slot: Slot, number: u8, version: u64) {
        let (key, value) = (key_of(shape, number), value_of(shape, number, version));
        let page = shape.page();
        if slot.number >= page.slots {
            return;
        }
        let Some((bytes, page_at, pool_at)) = self.page_of(shape, slot) else { return };
        let at = page_at + page.first_slot + slot.number * page.slot_bytes;
        set_bytes(bytes, at + page.key_at, &key);
        set_bytes(bytes, at + page.value_at, &value);
        let place = pool_at + (at - page_at) as u64;
        if shape.is_checked {
            set_word(bytes, at + 8, version);
            fix_record(bytes, shape, &page, at, place);
        }
        let word_at = page_at + 8 + 8 * (slot.number / page.slots_per_word);
        let bits = word(bytes, word_at) | 1 << (slot.number % page.slots_per_word);
        let checked = checked_word_at(bits as u32, pool_at + (word_at - page_at) as u64);
        set_word(bytes, word_at, if shape.is_checked { checked } else { bits });
    }

    /// The file of a slot's page, where in the file the page begins, and where in the pool.
    fn page_of(&mut self, shape: &Shape, slot: Slot) -> Option<(&mut Vec<u8>, usize, u64)> {
        let (segment, block_at) = shape.block(slot.block);
        let page_at = block_at + slot.page * shape.page_bytes;
        let pool_at = SUPERBLOCK_BYTES + segment * shape.segment_bytes + page_at;
        let bytes = self.files.get_mut(&segment_name(segment))?;
        let is_there = page_at + shape.page_bytes <= bytes.len();
        is_there.then_some((bytes, page_at, pool_at as u64))
    }

    /// Makes the checksums of both superblock copies right.
    pub(super) fn fix_superblock(&mut self) {
        let Some(bytes) = self.files.get_mut(SUPERBLOCK) else { return };
        for copy in [0, COPY_STRIDE] {
            if copy + 8 * SUPERBLOCK_WORDS > bytes.len() {
                continue;
            }
            let end = copy + 8 * CHECKSUM_AT;
            let sum = checksum(&bytes[copy..end]);
            set_word(bytes, end, sum);
            let length = word(bytes, copy + 8 * AREA_LENGTH_AT);
            let words = length.min((SUPERBLOCK_WORDS - AREA_AT) as u64) as usize;
            let covered = copy + 8 * TOTALS_AT..copy + 8 * (AREA_AT + words);
            let sum = area_checksum(&bytes[covered], sum, words as u64);
            set_word(bytes, copy + 8 * (AREA_LENGTH_AT + 1), sum);
        }
    }

    /// Makes the checksums of segments' headers right.
    pub(super) fn fix_headers(&mut self) {
        for (_, bytes) in self.files.iter_mut().filter(|(name, _)| name.starts_with("segment-")) {
            if let Some(header) = bytes.len().checked_sub(SEGMENT_END_BYTES) {
                let end = header + 8 * (SEGMENT_WORDS - 1);
                let sum = checksum(&bytes[header..end]);
                set_word(bytes, end, sum);
            }
        }
    }

    /// Makes the checks of the flags and bits right, or those of records whose bits are set.
    pub(super) fn fix_pages(&mut self, shape: &Shape, words: bool, records: bool) {
        if shape.is_variable() {
            return self.fix_logs(shape, words, records);
        }
        let page = shape.page();
        let blocks = self.files.len() * shape.blocks_per_segment();
        for block in 0..blocks {
            for number in 0..shape.pages_per_block {
                let slot = Slot { block, page: number, number: 0 };
                let Some((bytes, page_at, pool_at)) = self.page_of(shape, slot) else { continue };
                if words {
                    let first = checked_word_at(word(bytes, page_at) as u32, pool_at);
                    set_word(bytes, page_at, first);
                }
                for slot in 0..page.slots {
                    let word_at = page_at + 8 + 8 * (slot / page.slots_per_word);
                    let bits = word(bytes, word_at);
                    if words && shape.is_checked && slot.is_multiple_of(page.slots_per_word) {
                        let place = pool_at + (word_at - page_at) as u64;
                        set_word(bytes, word_at, checked_word_at(bits as u32, place));
                    }
                    if records && shape.is_checked && bits >> (slot % page.slots_per_word) & 1 == 1
                    {
                        let inside = page.first_slot + slot * page.slot_bytes;
                        fix_record(bytes, shape, &page, page_at + inside, pool_at + inside as u64);
                    }
                }
            }
        }
    }
}

pub(super) fn segment_name(number: usize) -> String {
    format!("segment-{number:06}")
}

fn superblock(base: &Base) -> Vec<u8> {
    let Base { shape, segments, used_blocks, .. } = *base;
    let pair = |low: usize, high: usize| low as u64 | (high as u64) << 32;
    let mut bytes = vec![0; SUPERBLOCK_BYTES];
    for sequence in [1, 2] {
        let words = [
            u64::from_le_bytes(*b"CHIMERA1"),
            pair(4, 1),
            POOL_ID,
            shape.hash_seed,
            shape.segment_bytes as u64,
            pair(shape.block_bytes(), shape.block_shift_bytes),
            sequence,
            segments as u64,
            // Open: what a closed store must have is compared, and no change of the image would be looked at.
            2,
        ];
        let area = [
            pair(shape.page_bytes, shape.pages_per_block),
            pair(shape.key_bytes, shape.value_bytes),
            if shape.is_checked { 1 } else { 2 },
        ];
        let copy = (sequence % 2) as usize * COPY_STRIDE;
        for (number, word) in words.into_iter().enumerate() {
            set_word(&mut bytes, copy + 8 * number, word);
        }
        set_word(&mut bytes, copy + 8 * AREA_LENGTH_AT, AREA_WORDS as u64);
        for (number, word) in area.into_iter().enumerate() {
            set_word(&mut bytes, copy + 8 * (AREA_AT + number), word);
        }
    }
    for at in USED_BLOCKS_AT {
        set_word(&mut bytes, at, checked_word_at(used_blocks as u32, at as u64));
    }
    let mut image = Image { files: BTreeMap::from([(SUPERBLOCK.to_owned(), bytes)]) };
    image.fix_superblock();
    image.files.remove(SUPERBLOCK).expect("just put there")
}

/// Makes the checks of the record at `at`, whose place in the pool is `place`, right.
fn fix_record(bytes: &mut [u8], shape: &Shape, page: &Page, at: usize, place: u64) {
    let key = &bytes[at + page.key_at..][..shape.key_bytes];
    let value = &bytes[at + page.value_at..][..shape.value_bytes];
    let hash = key_hash(shape.hash_seed, key);
    let version_word = word(bytes, at + 8);
    let check = u64::from(key_check(place, version_word, hash))
        | u64::from(value_check(place, version_word, value)) << 32;
    set_word(bytes, at, check);
}

pub(super) fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

pub(super) fn set_word(bytes: &mut [u8], at: usize, word: u64) {
    set_bytes(bytes, at, &word.to_le_bytes());
}

pub(super) fn set_bytes(bytes: &mut [u8], at: usize, new: &[u8]) {
    bytes[at..at + new.len()].copy_from_slice(new);
}
