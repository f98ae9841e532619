//! The states that a crash can leave, as patches of what is durable.

use std::sync::Arc;

use super::{LINE_WORDS, Line, Media, Pending, word_hash};
use crate::chance::Chance;
use crate::simulated::{Order, Tree};

/// Most lines of which every subset is tried.
const ALL_SUBSETS_MAX: usize = 5;
/// Most combinations of parts of lines that are all tried.
const PRODUCT_MAX: usize = 128;
/// Subsets by chance, where there are more.
const CHANCES: usize = 32;

/// One state: what differs from what is durable for certain.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patch {
    /// Words and what is in them; each word at most once.
    pub(crate) words: Vec<(u32, u64)>,
    pub(crate) tree: Arc<Tree>,
    /// Of memory and files.
    pub(crate) hash: u64,
}

/// Which of a line's stores survive.
#[derive(Clone, Copy, Debug)]
enum Part {
    All,
    /// The first so many, and of the others none.
    Prefix(usize),
    /// The first so many and this one.
    PrefixAnd(usize, usize),
    /// Those before the second number, but not the first.
    PrefixWithout(usize, usize),
}

/// Hands out every state worth trying at one point of a trace.
pub(crate) struct States<'a> {
    media: &'a Media,
    patch: Patch,
}

impl<'a> States<'a> {
    pub(crate) fn new(media: &'a Media) -> Self {
        Self { media, patch: Patch::default() }
    }

    /// Calls `visit` with each state, some more than once.
    pub(crate) fn for_each(mut self, chance: &mut Chance, visit: &mut dyn FnMut(&Patch)) {
        let lines = &self.media.lines;
        let count = lines.len();
        let trees = self.media.files.states();
        let everything = mask(count);
        let Some((tree, others)) = trees.split_last() else { return };
        // Each state of the files with no line, and with all; every other state with all their changes.
        for tree in others {
            self.subset(0, tree, visit);
            self.subset(everything, tree, visit);
        }
        if count <= ALL_SUBSETS_MAX {
            (0..=everything).for_each(|subset| self.subset(subset, tree, visit));
        } else {
            self.subset(0, tree, visit);
            self.subset(everything, tree, visit);
            for line in 0..count.min(64) {
                self.subset(1 << line, tree, visit);
                self.subset(everything & !(1 << line), tree, visit);
            }
            for _ in 0..CHANCES {
                self.subset(chance.next() & everything, tree, visit);
            }
        }
        self.cuts(tree, visit);
        self.products(tree, visit);
        for (number, line) in lines.iter().enumerate() {
            for part in parts(line) {
                self.with_part(number, part, false, tree, visit);
                if count > 1 {
                    self.with_part(number, part, true, tree, visit);
                }
            }
        }
    }

    /// All stores up to any one, as if nothing were reordered; and the same without any one line.
    fn cuts(&mut self, tree: &(Arc<Tree>, u64), visit: &mut dyn FnMut(&Patch)) {
        let stores = self.media.lines.iter().flat_map(|line| &line.stores);
        let sequences: Vec<u32> = stores.map(|store| store.sequence).collect();
        for last in sequences {
            let without = (0..self.media.lines.len()).map(Some).chain([None]);
            for without in without {
                self.patch.words.clear();
                for (number, line) in self.media.lines.iter().enumerate() {
                    if Some(number) != without {
                        let length = line.stores.partition_point(|store| store.sequence <= last);
                        self.add(line, Part::Prefix(length));
                    }
                }
                self.visit(tree, visit);
            }
        }
    }

    /// Every combination of parts of lines, where there are few.
    fn products(&mut self, tree: &(Arc<Tree>, u64), visit: &mut dyn FnMut(&Patch)) {
        let lines = &self.media.lines;
        let choices: Vec<Vec<Part>> = lines
            .iter()
            .map(|line| [Part::Prefix(0), Part::All].into_iter().chain(parts(line)).collect())
            .collect();
        let product = choices.iter().try_fold(1, |product: usize, choices| {
            product.checked_mul(choices.len()).filter(|product| *product <= PRODUCT_MAX)
        });
        for mut number in 0..product.unwrap_or(0) {
            self.patch.words.clear();
            for (line, choices) in lines.iter().zip(&choices) {
                self.add(line, choices[number % choices.len()]);
                number /= choices.len();
            }
            self.visit(tree, visit);
        }
    }

    /// Whole lines: those whose bits are set; of more than 64 each bit stands for several.
    fn subset(&mut self, lines: u64, tree: &(Arc<Tree>, u64), visit: &mut dyn FnMut(&Patch)) {
        self.patch.words.clear();
        for (number, line) in self.media.lines.iter().enumerate() {
            if lines >> (number % 64) & 1 != 0 {
                self.add(line, Part::All);
            }
        }
        self.visit(tree, visit);
    }

    /// A part of one line, with all other lines or with none.
    fn with_part(
        &mut self,
        which: usize,
        part: Part,
        others: bool,
        tree: &(Arc<Tree>, u64),
        visit: &mut dyn FnMut(&Patch),
    ) {
        self.patch.words.clear();
        for (number, line) in self.media.lines.iter().enumerate() {
            if number == which {
                self.add(line, part);
            } else if others {
                self.add(line, Part::All);
            }
        }
        self.visit(tree, visit);
    }

    /// Adds what survives of a line.
    fn add(&mut self, line: &Line, part: Part) {
        let start = self.patch.words.len();
        let mut add = |store: &Pending| {
            let words = &mut self.patch.words;
            match words[start..].iter_mut().find(|(word, _)| *word == store.word) {
                Some((_, value)) => *value = store.value,
                None => words.push((store.word, store.value)),
            }
        };
        let stores = &line.stores;
        match part {
            Part::All => stores.iter().for_each(add),
            Part::Prefix(end) => stores[..end].iter().for_each(add),
            Part::PrefixAnd(end, one) => {
                stores[..end].iter().for_each(&mut add);
                add(&stores[one]);
            }
            Part::PrefixWithout(one, end) => {
                let others = stores[..end].iter().enumerate().filter(|(number, _)| *number != one);
                others.for_each(|(_, store)| add(store));
            }
        }
    }

    fn visit(&mut self, tree: &(Arc<Tree>, u64), visit: &mut dyn FnMut(&Patch)) {
        let durable = &self.media.durable;
        self.patch.words.retain(|(word, value)| durable.peek(*word) != *value);
        let mut hash = self.media.hash();
        for (word, value) in &self.patch.words {
            let old = word_hash(*word, durable.peek(*word));
            hash = hash.wrapping_sub(old).wrapping_add(word_hash(*word, *value));
        }
        let (tree, tree_hash) = tree;
        self.patch.hash = hash ^ tree_hash;
        if !Arc::ptr_eq(&self.patch.tree, tree) {
            self.patch.tree = tree.clone();
        }
        visit(&self.patch);
    }
}

fn mask(count: usize) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

/// The ways in which a line can survive in part: every prefix of its stores in order; of stores
/// without an order among them, each one alone and all but each one, after everything before them.
fn parts(line: &Line) -> Vec<Part> {
    let stores = &line.stores;
    let mut parts = Vec::new();
    let mut at = 0;
    while at < stores.len() {
        if stores[at].order == Order::Ordered {
            if at > 0 {
                parts.push(Part::Prefix(at));
            }
            at += 1;
            continue;
        }
        let end = stores[at..]
            .iter()
            .position(|store| store.order == Order::Ordered)
            .map_or(stores.len(), |length| at + length);
        if at > 0 {
            parts.push(Part::Prefix(at));
        }
        for one in at..end {
            parts.push(Part::PrefixAnd(at, one));
            parts.push(Part::PrefixWithout(one, end));
            if stores[one].order == Order::NonTemporal {
                // Not even what is ordered waits for it.
                parts.extend((end + 1..=stores.len()).map(|end| Part::PrefixWithout(one, end)));
            }
        }
        at = end;
    }
    debug_assert!(stores.iter().all(|store| store.word / LINE_WORDS == line.number));
    parts
}
