//! [`Places`]: which structure each word of a store's files belongs to, by docs/FORMAT.md.
//!
//! Names are for the reader of a table, and for choosing a structure: they need not be right to a word for the oracle to be.

mod blocks;
mod pages;
mod pool;
mod runs;
mod tables;

use std::collections::BTreeMap;
use std::ops::Range;

use super::image::Image;
use crate::chance::Chance;

/// A word of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The number of the file's name.
    pub(super) file: usize,
    pub(super) at: usize,
}

/// Words by the name of their structure.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Names of files.
    pub(super) files: Vec<String>,
    groups: BTreeMap<&'static str, Vec<Place>>,
    /// Words that mean something.
    used: Vec<Place>,
}

/// Parts of the names of structures whose bytes mean nothing now.
const UNUSED: [&str; 5] = ["unused", "not in use", "behind", "free", "line of the pool"];

/// The words of a store.
struct Map<'a> {
    image: &'a Image,
    places: Places,
}

impl Places {
    /// Of the files of a store that was not damaged.
    pub(super) fn of(image: &Image) -> Self {
        let files = image.files.keys().cloned().collect();
        let places = Self { files, ..Self::default() };
        let mut map = Map { image, places };
        pool::mark(&mut map);
        let mut places = map.places;
        let used = |(name, _): &(&&str, _)| !UNUSED.iter().any(|part| name.contains(part));
        let words = places.groups.iter().filter(used).flat_map(|(_, words)| words);
        places.used = words.copied().collect();
        places
    }

    /// A word of any structure, each as often, and the structure's name.
    pub(super) fn of_any_structure(&self, chance: &mut Chance) -> (&'static str, Place) {
        let number = chance.below(self.groups.len() as u64) as usize;
        let (name, words) = self.groups.iter().nth(number).expect("every store has a superblock");
        (name, words[chance.below(words.len() as u64) as usize])
    }

    /// Any word that means something, and the name of its structure.
    pub(super) fn of_any_use(&self, chance: &mut Chance) -> (&'static str, Place) {
        let place = self.used[chance.below(self.used.len() as u64) as usize];
        let found = self.groups.iter().find(|(_, words)| words.contains(&place));
        (found.map_or("anything", |(name, _)| name), place)
    }

    /// A word of a structure.
    pub(super) fn of_structure(&self, name: &str, chance: &mut Chance) -> Place {
        let words = &self.groups[name];
        words[chance.below(words.len() as u64) as usize]
    }
}

impl Map<'_> {
    fn word(&self, file: &str, at: u64) -> u64 {
        self.image.word(file, at)
    }

    /// The words of this part of a file are of a structure, as far as the file goes.
    fn mark(&mut self, name: &'static str, file: &str, range: Range<u64>) {
        let Some(number) = self.places.files.iter().position(|it| it == file) else { return };
        let end = range.end.min(self.image.files[file].len() as u64 & !7);
        let places = (range.start..end).step_by(8);
        let places = places.map(|at| Place { file: number, at: at as usize });
        if range.start < end {
            self.places.groups.entry(name).or_default().extend(places);
        }
    }
}

#[cfg(test)]
mod tests {
    use chimera::EngineKind;

    use super::*;
    use crate::damage::life::Subject;

    /// A manifest has a word for each shard, which says which of its two copies is in force. There is none before the first table.
    #[test]
    fn a_manifest_has_two_copies_for_each_shard() {
        let mut in_force_in_all = 0;
        for seed in 1..=12 {
            let subject = Subject::new(EngineKind::Chameleon, seed).expect("a store");
            let places = Places::of(&subject.image);
            let words = |name| places.groups.get(name).map_or(0, Vec::len);
            let shards = words("manifest: current word");
            let in_force = words("manifest: copy in force");
            assert!(shards.is_power_of_two(), "{shards} shards, seed {seed}");
            assert_eq!(in_force + words("manifest: other copy"), 64 * shards, "seed {seed}");
            assert!(in_force <= 32 * shards, "{in_force} words, seed {seed}");
            in_force_in_all += in_force;
        }
        assert!(in_force_in_all > 0);
    }
}
