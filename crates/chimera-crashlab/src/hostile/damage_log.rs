//! Steps that change logs and chunks of an image, from the input.

use super::format::{Shape, checked_word, checked_word_at};
use super::image::{Image, segment_name, set_word, word};
use super::input::Input;
use super::log::{CHUNK_NAME_AT, CHUNK_NEXT_AT, CHUNK_POSITION_AT, CHUNK_RECORD_AT, Entry};

/// Numbers that lengths can have and must not, or just must.
const LENGTHS: [u32; 6] = [0, 8, 24, 65_520, 65_521, 65_535];

/// One of those entries that are so.
fn chosen(
    image: &Image,
    shape: &Shape,
    input: &mut Input<'_>,
    is: fn(&Entry) -> bool,
) -> Option<Entry> {
    let mut entries = image.entries(shape);
    entries.retain(is);
    entries.get(input.below(entries.len())).copied()
}

/// Where something is, or nearly, or anything at all.
fn location(image: &Image, shape: &Shape, input: &mut Input<'_>) -> u64 {
    match input.byte() {
        near @ 0..192 => {
            let found = chosen(image, shape, input, |_| true);
            // Beside where it begins, in every fourth case.
            let words = if near < 48 { u64::from(near) } else { 0 };
            found.map_or(0, |entry| entry.location()) + words
        }
        _ => input.number(),
    }
}

/// The word in front of a record or chunk: whether it counts, the bytes of its key, of its value.
pub(super) fn lengths(image: &mut Image, input: &mut Input<'_>) {
    let Some(shape) = image.shape().filter(Shape::is_variable) else { return };
    let Some(entry) = chosen(image, &shape, input, |_| true) else { return };
    let (part, value) = (input.byte(), input.number() as u32);
    let lengths = match part % 6 {
        0 => entry.lengths ^ 1,
        1 => entry.lengths & !0xfffe | value << 1 & 0xfffe,
        2 => entry.lengths & 0xffff | value << 16,
        3 => entry.lengths & 0xffff | LENGTHS[value as usize % LENGTHS.len()] << 16,
        4 => entry.lengths.wrapping_add(value << 16),
        _ => value,
    };
    let torn = if part < 128 { 0 } else { 1 << (32 + part % 32) };
    let word = checked_word_at(lengths, entry.place(&shape)) ^ torn;
    set_word(image.bytes_of(&entry), 0, word);
}

/// What a record says of its chunks.
pub(super) fn descriptor(image: &mut Image, input: &mut Input<'_>) {
    let Some(shape) = image.shape().filter(Shape::is_variable) else { return };
    let Some(record) = chosen(image, &shape, input, Entry::is_in_chunks) else { return };
    let part = input.byte();
    let value = match part % 4 {
        0 => location(image, &shape, input),
        1 => input.number(),
        2 => checked_word(input.number() as u32),
        // A little more or less than there is.
        _ => {
            let bytes = word(image.bytes_of(&record), record.beside_at() + 16) as u32;
            checked_word(bytes.wrapping_add(input.number() as u32))
        }
    };
    let field = 8 * usize::from(part % 4).min(2);
    set_word(image.bytes_of(&record), record.beside_at() + field, value);
}

/// A field of a chunk: another number, another place, or that of another chunk.
pub(super) fn chunk(image: &mut Image, input: &mut Input<'_>) {
    let Some(shape) = image.shape().filter(Shape::is_variable) else { return };
    let Some(chunk) = chosen(image, &shape, input, Entry::is_chunk) else { return };
    let part = input.byte();
    let field =
        [CHUNK_NAME_AT, CHUNK_RECORD_AT, CHUNK_NEXT_AT, CHUNK_POSITION_AT][usize::from(part % 4)];
    let value = match (part / 4 % 3, field) {
        (0, CHUNK_POSITION_AT) => checked_word(input.number() as u32),
        (0, CHUNK_NAME_AT) | (2, _) => input.number(),
        (0, _) => location(image, &shape, input),
        _ => {
            let other = chosen(image, &shape, input, Entry::is_chunk).unwrap_or(chunk);
            word(image.bytes_of(&other), field)
        }
    };
    set_word(image.bytes_of(&chunk), field, value);
}

/// The version of a record.
pub(super) fn version(image: &mut Image, input: &mut Input<'_>) {
    let Some(shape) = image.shape().filter(Shape::is_variable) else { return };
    let Some(record) = chosen(image, &shape, input, |entry| !entry.is_chunk()) else { return };
    let version = input.number();
    set_word(image.bytes_of(&record), 16, version);
}

/// The flags of a block, and nothing else: those of free and large blocks over what it holds.
pub(super) fn flags(image: &mut Image, input: &mut Input<'_>) {
    let Some(shape) = image.shape() else { return };
    let (segment, block_at) = shape.block(input.below(32));
    let (is_whole, flags) = (input.byte() < 192, input.byte());
    let Some(bytes) = image.files.get_mut(&segment_name(segment)) else { return };
    if block_at + 8 <= bytes.len() {
        let flags = u32::from(if is_whole { flags % 32 } else { flags });
        set_word(bytes, block_at, checked_word_at(flags, shape.place(segment, block_at)));
    }
}

/// The bytes of an entry over those of another, or behind it, as far as they have room.
pub(super) fn entry(image: &mut Image, input: &mut Input<'_>) {
    let Some(shape) = image.shape().filter(Shape::is_variable) else { return };
    let Some(from) = chosen(image, &shape, input, |_| true) else { return };
    let Some(to) = chosen(image, &shape, input, |_| true) else { return };
    let is_behind = input.byte() < 128;
    let content = image.bytes_of(&from).to_vec();
    let at = to.at() + if is_behind { to.span() } else { 0 };
    let Some(bytes) = image.files.get_mut(&to.file()) else { return };
    let room = bytes.len().saturating_sub(at);
    for (byte, new) in bytes.iter_mut().skip(at).zip(content.iter().take(room)) {
        *byte = *new;
    }
}
