//! [`Harm`]: what is done to the files of a store.

use std::fmt;
use std::ops::Range;

use super::image::{Image, JOURNAL, SEGMENT, SUPERBLOCK};
use super::life::Subject;
use super::places::{Place, Places};
use crate::chance::Chance;

const PAGE_BYTES: usize = 4096;
/// Draws until one changes a byte.
const DRAWS_MAX: usize = 32;

/// How much is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unit {
    Nothing,
    Bit,
    Word,
    Line,
    Page,
    File,
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Act {
    Kept,
    Flipped,
    Zeroed,
    Random,
    /// With another of its kind.
    Exchanged,
    /// It has the bytes of another place as well.
    Repeated,
    /// As at an earlier moment.
    Older,
    Removed,
    Cut,
    /// Longer, by zeros.
    Extended,
    /// A file more.
    Added,
}

/// What is done, without where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kind {
    pub(crate) unit: Unit,
    pub(crate) act: Act,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:?} {:?}", self.unit, self.act).to_lowercase();
        f.pad(&text)
    }
}

/// Damaged files.
#[derive(Debug)]
pub(super) struct Harm {
    pub(super) kind: Kind,
    /// The structure that the damage was aimed at. More than a word reaches others as well.
    pub(super) structure: &'static str,
    /// Where, in words.
    pub(super) place: String,
    pub(super) image: Image,
}

impl Harm {
    /// None.
    pub(super) fn none(subject: &Subject) -> Self {
        Self {
            kind: Kind { unit: Unit::Nothing, act: Act::Kept },
            structure: "nothing",
            place: "nowhere".to_owned(),
            image: subject.image.clone(),
        }
    }

    /// Whether it changed a file whose name begins like this.
    pub(super) fn touches(&self, subject: &Subject, name: &str) -> bool {
        let (before, after) = (&subject.image.files, &self.image.files);
        let mut names = before.keys().chain(after.keys()).filter(|file| file.starts_with(name));
        names.any(|file| before.get(file) != after.get(file))
    }

    /// Whether salvage comes to each place that was damaged, and leaves out what was there: nothing is missing beside that. What
    /// is as it was at an earlier moment is right by its own checks, and a file is more than a place.
    pub(super) fn is_told_by_its_places(&self) -> bool {
        self.kind.act != Act::Older && self.kind.unit != Unit::File
    }

    /// Any; none where nothing that was tried changes a byte.
    pub(super) fn random(subject: &Subject, places: &Places, chance: &mut Chance) -> Option<Self> {
        (0..DRAWS_MAX).find_map(|_| {
            let harm = match chance.below(12) {
                0..2 => part(subject, places, chance, Unit::Bit),
                2..6 => part(subject, places, chance, Unit::Word),
                6..9 => part(subject, places, chance, Unit::Line),
                9..11 => part(subject, places, chance, Unit::Page),
                _ => file(subject, places, chance),
            };
            harm.filter(|harm| harm.image != subject.image)
        })
    }
}

/// The part of a file of which a word is, in units.
fn range(image: &Image, name: &str, at: usize, unit: Unit) -> Range<usize> {
    let bytes = match unit {
        Unit::Line => 64,
        Unit::Page => PAGE_BYTES,
        _ => 8,
    };
    let start = at / bytes * bytes;
    start..(start + bytes).min(image.files[name].len())
}

/// Damage of less than a file.
fn part(subject: &Subject, places: &Places, chance: &mut Chance, unit: Unit) -> Option<Harm> {
    let (structure, place) = if chance.below(5) < 3 {
        places.of_any_structure(chance)
    } else {
        places.of_any_use(chance)
    };
    let name = &places.files[place.file];
    // A page has many structures.
    let aimed_at = if unit == Unit::Page { page_name(name, place.at) } else { structure };
    let mut image = subject.image.clone();
    let here = range(&image, name, place.at, unit);
    let act = match (unit, chance.below(6)) {
        (Unit::Bit, _) => Act::Flipped,
        (_, 0 | 1) => Act::Zeroed,
        (_, 2) => Act::Random,
        (_, 3) => Act::Exchanged,
        (_, 4) => Act::Repeated,
        _ => Act::Older,
    };
    let mut text = format!("{name}, bytes {here:?}");
    match act {
        Act::Flipped => {
            let bit = chance.below(64) as usize;
            image.files.get_mut(name)?[place.at + bit / 8] ^= 1 << (bit % 8);
            text = format!("{text}, bit {bit}");
        }
        Act::Zeroed => image.files.get_mut(name)?[here].fill(0),
        Act::Random => {
            image.files.get_mut(name)?[here].fill_with(|| chance.next() as u8);
        }
        Act::Older => {
            let older = subject.older.files.get(name)?.get(here.clone())?;
            image.files.get_mut(name)?[here].copy_from_slice(older);
        }
        _ => {
            let other = other_place(places, structure, chance);
            let other_name = &places.files[other.file];
            let there = range(&image, other_name, other.at, unit);
            let (mine, other) = (bytes(&image, name, &here)?, bytes(&image, other_name, &there)?);
            if mine.len() != other.len() || (name, &here) == (other_name, &there) {
                return None;
            }
            text = format!("{text}, and {other_name}, bytes {there:?}");
            image.files.get_mut(name)?[here].copy_from_slice(&other);
            if act == Act::Exchanged {
                image.files.get_mut(other_name)?[there].copy_from_slice(&mine);
            }
        }
    }
    Some(Harm { kind: Kind { unit, act }, structure: aimed_at, place: text, image })
}

/// What a damaged page is called.
fn page_name(file: &str, at: usize) -> &'static str {
    match file {
        SUPERBLOCK if at < PAGE_BYTES => "page: first one of the superblock",
        SUPERBLOCK => "page: second one of the superblock",
        JOURNAL if at < 2 * PAGE_BYTES => "page: header of the journal",
        JOURNAL => "page: entries of the journal",
        _ => "page: segment",
    }
}

fn bytes(image: &Image, name: &str, range: &Range<usize>) -> Option<Vec<u8>> {
    image.files.get(name)?.get(range.clone()).map(<[u8]>::to_vec)
}

/// Another place, mostly of the same structure.
fn other_place(places: &Places, structure: &str, chance: &mut Chance) -> Place {
    if chance.below(3) < 2 {
        places.of_structure(structure, chance)
    } else {
        places.of_any_use(chance).1
    }
}

/// Damage of a whole file.
fn file(subject: &Subject, places: &Places, chance: &mut Chance) -> Option<Harm> {
    let mut image = subject.image.clone();
    let name = places.files[chance.below(places.files.len() as u64) as usize].clone();
    let segments: Vec<_> = places.files.iter().filter(|file| file.starts_with(SEGMENT)).collect();
    let other = |chance: &mut Chance| {
        segments
            .get(chance.below(segments.len().max(1) as u64) as usize)
            .map(|file| (*file).clone())
    };
    let bytes = image.files[&name].clone();
    let (mut text, mut act) = (name.clone(), Act::Zeroed);
    match chance.below(9) {
        0 => image.files.get_mut(&name)?.fill(0),
        1 => {
            act = Act::Random;
            image.files.get_mut(&name)?.fill_with(|| chance.next() as u8);
        }
        2 | 3 => {
            let other = other(chance)?;
            let is_exchanged = chance.below(2) == 0;
            act = if is_exchanged { Act::Exchanged } else { Act::Repeated };
            text = format!("{text}, and {other}");
            let there = image.files.insert(other, bytes)?;
            if is_exchanged {
                image.files.insert(name.clone(), there);
            }
        }
        4 => {
            act = Act::Older;
            image.files.insert(name.clone(), subject.older.files.get(&name)?.clone());
        }
        5 => {
            act = Act::Removed;
            image.files.remove(&name);
        }
        6 => {
            act = Act::Cut;
            let length = chance.below(bytes.len() as u64 + 1) as usize;
            let length = if chance.below(2) == 0 { length } else { length & !(PAGE_BYTES - 1) };
            image.files.get_mut(&name)?.truncate(length);
            text = format!("{text}, to {length} bytes");
        }
        7 => {
            act = Act::Extended;
            let length = bytes.len() + PAGE_BYTES * (1 + chance.below(3) as usize);
            image.files.get_mut(&name)?.resize(length, 0);
        }
        _ => {
            act = Act::Added;
            let number = segments.len() as u64 + chance.below(2);
            let added = Image::segment(number);
            text = format!("{added}, with the bytes of {name}");
            image.files.insert(added, bytes);
        }
    }
    let structure = match name.as_str() {
        "superblock" => "file: superblock",
        "journal" => "file: journal",
        "lock" => "file: lock",
        _ => "file: segment",
    };
    Some(Harm { kind: Kind { unit: Unit::File, act }, structure, place: text, image })
}
