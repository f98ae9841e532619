//! Steps that change an image, from the input; and the steps that the store will be used with.

use super::damage_log as log;
use super::format::{
    AREA_AT, AREA_WORDS, COPY_STRIDE, TOTALS_AT, USED_BLOCKS_AT, checked_word, checked_word_at,
};
use super::image::{Image, SUPERBLOCK, Slot, segment_name, set_word};
use super::input::Input;

/// What is done with the store once it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// What is done with the key of this number.
    Key {
        number: u8,
        change: Change,
    },
    /// Blocks of which so much is free, in percent, are emptied, and the end of the pool is given back.
    Compact {
        percent: u8,
    },
    Export,
    /// Verify, list and inspect.
    Look,
    Reopen,
}

/// What is done with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Put { version: u64 },
    Delete,
    Update { version: u64 },
    Add { at: u16, delta: u64 },
    Swap { version: u64 },
}

/// Longest file that is made, in bytes.
const FILE_BYTES_MAX: usize = 64 << 10;

/// Which checks stay as the steps leave them.
#[derive(Clone, Copy)]
struct Wrong(u8);

impl Wrong {
    fn has(self, bit: u8) -> bool {
        self.0 >> bit & 1 == 1
    }
}

/// Carries the rest of the input out on the image. Then checks are put right, but for those that the
/// input says, so that what is behind them is reached.
pub(super) fn damage(image: &mut Image, input: &mut Input<'_>) -> Vec<Step> {
    let wrong = Wrong(input.byte());
    let mut steps = Vec::new();
    while !input.is_empty() {
        let kind = input.byte();
        if kind < 128 {
            damage_once(image, input, kind);
        } else {
            steps.push(step(input, kind));
        }
    }
    if !wrong.has(0) {
        image.fix_superblock();
    }
    if !wrong.has(1) {
        image.fix_headers();
    }
    if let Some(shape) = image.shape() {
        image.fix_pages(&shape, !wrong.has(2), !wrong.has(3));
    }
    steps
}

fn step(input: &mut Input<'_>, kind: u8) -> Step {
    let number = input.byte();
    let change = match kind % 16 {
        6 => return Step::Compact { percent: number },
        7 => return Step::Export,
        8 => return Step::Look,
        9 => return Step::Reopen,
        0 | 1 | 10 | 11 => Change::Put { version: input.number() },
        2 | 12 => Change::Delete,
        3 | 13 => Change::Update { version: input.number() },
        4 | 14 => Change::Add { at: input.number16() % 1024, delta: input.number() },
        _ => Change::Swap { version: input.number() },
    };
    Step::Key { number, change }
}

fn damage_once(image: &mut Image, input: &mut Input<'_>, kind: u8) {
    match kind % 16 {
        0 => superblock_word(image, input),
        1 => used_blocks(image, input),
        2 => records(image, input),
        3 => page_word(image, input),
        4 => raw_bytes(image, input),
        5 => header_word(image, input),
        6 => length(image, input),
        7 => names(image, input),
        8 => copy(image, input),
        9 => whole_block(image, input),
        10 => log::lengths(image, input),
        11 => log::descriptor(image, input),
        12 => log::chunk(image, input),
        13 => log::version(image, input),
        14 => log::flags(image, input),
        _ => log::entry(image, input),
    }
}

fn superblock_word(image: &mut Image, input: &mut Input<'_>) {
    let which = input.byte();
    // The totals are left out: what is in them is no other than any number.
    let (copies, word) = (which >> 6, usize::from(which) % (TOTALS_AT + AREA_WORDS));
    let word = if word < TOTALS_AT { word } else { word - TOTALS_AT + AREA_AT };
    let half = which >> 4 & 3;
    let value = input.number();
    let Some(bytes) = image.files.get_mut(SUPERBLOCK) else { return };
    for copy in (0..2).filter(|copy| copies != 1 + *copy as u8) {
        let at = copy * COPY_STRIDE + 8 * word;
        if at + 8 > bytes.len() {
            continue;
        }
        match half {
            1 => bytes[at..at + 4].copy_from_slice(&(value as u32).to_le_bytes()),
            2 => bytes[at + 4..at + 8].copy_from_slice(&(value as u32).to_le_bytes()),
            _ => set_word(bytes, at, value),
        }
    }
}

fn used_blocks(image: &mut Image, input: &mut Input<'_>) {
    let number = input.number();
    let Some(bytes) = image.files.get_mut(SUPERBLOCK) else { return };
    let length = bytes.len();
    for at in USED_BLOCKS_AT.into_iter().filter(|at| at + 8 <= length) {
        let is_whole = u32::try_from(number).is_ok();
        set_word(bytes, at, if is_whole { checked_word_at(number as u32, at) } else { number });
    }
}

/// One or many records with right checks; keys of 128 and above can have one hash.
fn records(image: &mut Image, input: &mut Input<'_>) {
    let Some(shape) = image.shape() else { return };
    let (first, count) = (input.byte(), input.byte());
    let version = input.number();
    if shape.is_variable() {
        for more in 0..=count % 32 {
            image.append(&shape, first.wrapping_add(more), version);
        }
        return;
    }
    let start = input.below(1 << 12);
    let slots = shape.page().slots;
    for more in 0..=count {
        let at = start + usize::from(more);
        let page = at / slots;
        let slot = Slot {
            block: page / shape.pages_per_block,
            page: page % shape.pages_per_block,
            number: at % slots,
        };
        image.write_record(&shape, slot, first.wrapping_add(more), version);
    }
}

/// The flags or a word of bits of a page.
fn page_word(image: &mut Image, input: &mut Input<'_>) {
    let Some(shape) = image.shape() else { return };
    let (segment, block_at) = shape.block(input.below(64));
    let page = input.below(shape.pages_per_block);
    let at = block_at + page * shape.page_bytes + 8 * input.below(4);
    let value = input.number();
    if let Some(bytes) = image.files.get_mut(&segment_name(segment))
        && at + 8 <= bytes.len()
    {
        set_word(bytes, at, checked_word(value as u32) ^ value >> 32 << 32);
    }
}

/// The name of one of the files.
fn name(image: &Image, input: &mut Input<'_>) -> Option<String> {
    let which = usize::from(input.byte()) % image.files.len().max(1);
    image.files.keys().nth(which).cloned()
}

fn raw_bytes(image: &mut Image, input: &mut Input<'_>) {
    let Some(name) = name(image, input) else { return };
    let bytes = image.files.get_mut(&name).expect("it was just found");
    let (at, count, fill) = (input.below(bytes.len()), 1 + input.number16() % 600, input.byte());
    for byte in bytes.iter_mut().skip(at).take(usize::from(count)) {
        *byte = match fill {
            0 => 0,
            1 => 0xff,
            2 => *byte ^ input.byte(),
            _ => fill,
        };
    }
}

fn header_word(image: &mut Image, input: &mut Input<'_>) {
    let Some(name) = name(image, input) else { return };
    let bytes = image.files.get_mut(&name).expect("it was just found");
    let (word, value) = (input.below(8), input.number());
    if let Some(end) = bytes.len().checked_sub(4096) {
        set_word(bytes, end + 8 * word, value);
    }
}

fn length(image: &mut Image, input: &mut Input<'_>) {
    let Some(name) = name(image, input) else { return };
    let bytes = image.files.get_mut(&name).expect("it was just found");
    let length = usize::try_from(input.number()).unwrap_or(usize::MAX);
    // In pages, mostly: other lengths are refused at once.
    let length = if input.byte() < 128 { length.saturating_mul(4096) } else { length };
    bytes.resize(length.min(FILE_BYTES_MAX), 0);
}

/// A file less, or a segment twice, or under another name.
fn names(image: &mut Image, input: &mut Input<'_>) {
    let Some(from) = name(image, input) else { return };
    let to = segment_name(input.below(4));
    match input.byte() % 3 {
        0 => {
            image.files.remove(&from);
        }
        1 => {
            let bytes = image.files[&from].clone();
            image.files.insert(to, bytes);
        }
        _ => {
            let bytes = image.files.remove(&from).expect("it was just found");
            image.files.insert(to, bytes);
        }
    }
}

/// Words, lines, pages over others.
fn copy(image: &mut Image, input: &mut Input<'_>) {
    let Some(name) = name(image, input) else { return };
    let bytes = image.files.get_mut(&name).expect("it was just found");
    let unit = [8, 24, 64, 256, 512, 4096][input.below(6)];
    let units = bytes.len() / unit;
    if units > 0 {
        let (from, to) = (input.below(units) * unit, input.below(units) * unit);
        bytes.copy_within(from..from + unit, to);
    }
}

/// Flags of a block by their checked word, and all bits of its pages.
fn whole_block(image: &mut Image, input: &mut Input<'_>) {
    let Some(shape) = image.shape() else { return };
    let (segment, block_at) = shape.block(input.below(32));
    let (flags, bits) = (input.byte(), input.number());
    let Some(bytes) = image.files.get_mut(&segment_name(segment)) else { return };
    for page in 0..shape.pages_per_block {
        let page_at = block_at + page * shape.page_bytes;
        if page_at + 16 > bytes.len() {
            return;
        }
        if page == 0 {
            set_word(bytes, page_at, checked_word(u32::from(flags)));
        }
        if flags & 128 == 0 {
            let word = if shape.is_checked { checked_word(bits as u32) } else { bits };
            set_word(bytes, page_at + 8, word);
        }
    }
}
