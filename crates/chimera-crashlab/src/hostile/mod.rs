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
//! - `memory`: the persistence seam over files in memory.
//! - `exercise`: opening and using the store.

mod damage;
mod damage_log;
mod exercise;
mod format;
mod image;
mod input;
mod log;
mod memory;
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
