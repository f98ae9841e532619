//! Hostile files: any bytes are made into the files of a store, whose checksums are put right so that
//! it gets past the superblock, and the store is opened and used. Nothing may panic, hang or take
//! memory out of proportion, and what a store that opened acknowledges must be there.
//!
//! A coverage-guided fuzzer calls [`run`] (`scripts/fuzz`); a test calls it with the corpus.
//!
//! # Rooms
//! - `input`: bytes as a program: numbers, and steps.
//! - `format`: docs/FORMAT.md once more, written from the document and not from the engine.
//! - `image`: the files of a small store, valid by that document.
//! - `log`: pages of records of any size, and values in chunks, by that document.
//! - `damage`: steps that change the image, `damage_log` those that change logs; then checks are put right.
//! - `exercise`: opening and using the store.

mod damage;
mod damage_log;
mod exercise;
mod format;
mod image;
mod input;
mod log;
#[cfg(test)]
mod tests;

use input::Input;

/// Makes a store of `bytes`, opens and uses it.
///
/// # Panics
/// When the store does something it must not.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let setting = exercise::Setting::new(&mut input);
    let base = image::BASES[usize::from(input.byte()) % image::BASES.len()];
    let mut image = image::Image::new(&base);
    let steps = damage::damage(&mut image, &mut input);
    exercise::exercise(setting, &image, &steps);
}

/// Where things are in a page of records of one size.
pub(crate) struct SlotLayout {
    pub(crate) is_variable: bool,
    pub(crate) page_bytes: u64,
    pub(crate) slots: u64,
    pub(crate) slots_per_word: u64,
    pub(crate) first_slot: u64,
    pub(crate) slot_bytes: u64,
    pub(crate) key_at: u64,
    pub(crate) value_at: u64,
}

/// The pages of a store of Viper, by the words of its superblock; `None` where these sizes cannot be worked with.
pub(crate) fn slots(superblock: &[u64]) -> Option<SlotLayout> {
    let shape = format::Shape::from_superblock(superblock)?;
    let is_variable = shape.is_variable();
    let page = (!is_variable).then(|| shape.page());
    let part = |of: fn(format::Page) -> usize| page.map_or(0, of) as u64;
    Some(SlotLayout {
        is_variable,
        page_bytes: shape.page_bytes as u64,
        slots: part(|page| page.slots),
        slots_per_word: part(|page| page.slots_per_word),
        first_slot: part(|page| page.first_slot),
        slot_bytes: part(|page| page.slot_bytes),
        key_at: part(|page| page.key_at),
        value_at: part(|page| page.value_at),
    })
}
