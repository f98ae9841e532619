//! What became of each mutant, kept as soon as it is known.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// What became of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Fate {
    /// It does not compile.
    Unviable,
    /// A test failed.
    Noticed,
    /// A test took far too long.
    Timeout,
    /// All tests that reach it pass.
    Missed,
    /// No test reaches it.
    Unreached,
}

impl Fate {
    pub(crate) const ALL: [Self; 5] =
        [Self::Unviable, Self::Noticed, Self::Timeout, Self::Missed, Self::Unreached];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Unviable => "unviable",
            Self::Noticed => "noticed",
            Self::Timeout => "timeout",
            Self::Missed => "missed",
            Self::Unreached => "unreached",
        }
    }

    /// Whether the tests do not see it.
    pub(crate) fn survives(self) -> bool {
        matches!(self, Self::Missed | Self::Unreached)
    }
}

/// A line of the file of outcomes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) id: u32,
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) what: String,
    pub(crate) fate: Fate,
    /// The test that noticed.
    pub(crate) by: Option<String>,
    pub(crate) seconds: f64,
    /// Whether the tests of whole stores were asked.
    pub(crate) wide: bool,
}

/// The outcomes so far, by the mutant: the last one of each.
pub(crate) fn read(path: &Path) -> io::Result<BTreeMap<u32, Outcome>> {
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        read => read?,
    };
    // The last line may have been cut off.
    let all = text.lines().filter_map(|line| serde_json::from_str::<Outcome>(line).ok());
    Ok(all.map(|outcome| (outcome.id, outcome)).collect())
}

/// The file of outcomes, to add to.
pub(crate) fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

/// Adds a line at once.
pub(crate) fn append(mut file: &File, outcome: &Outcome) -> io::Result<()> {
    file.write_all(format!("{}\n", serde_json::to_string(outcome)?).as_bytes())
}
