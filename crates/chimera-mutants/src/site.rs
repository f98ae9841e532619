//! What is mutated, and how the text that holds all its mutants reads.

use std::ops::Range;

/// Stands for the number of a site's first mutant in the text of an edit.
pub(crate) const NUMBER: &str = "{N}";

/// Where an edit stands among those at the same byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// Behind what ends here.
    Close,
    /// In front of what begins here.
    Open,
    /// Instead of what begins here.
    Instead,
}

/// A text that takes the place of a range of bytes of the original, which is empty unless `place` is `Instead`.
#[derive(Clone, Debug)]
pub(crate) struct Edit {
    pub(crate) place: Place,
    pub(crate) range: Range<usize>,
    pub(crate) text: String,
}

impl Edit {
    pub(crate) fn open(at: usize, text: impl Into<String>) -> Self {
        Self { place: Place::Open, range: at..at, text: text.into() }
    }

    pub(crate) fn close(at: usize, text: impl Into<String>) -> Self {
        Self { place: Place::Close, range: at..at, text: text.into() }
    }

    pub(crate) fn instead(range: Range<usize>, text: impl Into<String>) -> Self {
        Self { place: Place::Instead, range, text: text.into() }
    }
}

/// One way to write a site. The first form of a site has all its mutants, a later one perhaps fewer.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    pub(crate) edits: Vec<Edit>,
    /// How many of the site's mutants it has: the first ones.
    pub(crate) mutants: u32,
}

/// A single change of the source.
#[derive(Clone, Debug)]
pub(crate) struct Mutant {
    pub(crate) line: usize,
    /// From 1, in characters.
    pub(crate) column: usize,
    pub(crate) what: String,
    /// What stands in the place of which bytes when the mutant is written by hand.
    pub(crate) shown: (Range<usize>, String),
}

/// A place whose mutants are chosen by one piece of code.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// Bytes of the original that the site holds.
    pub(crate) range: Range<usize>,
    /// The body of the function around it.
    pub(crate) function: Range<usize>,
    pub(crate) mutants: Vec<Mutant>,
    /// From the one that is tried first to the one that is tried when none of the others compiles.
    pub(crate) forms: Vec<Form>,
    /// Whether it is inserted only, and says nothing about the text around it.
    pub(crate) is_insertion: bool,
}
