//! Failure atomicity, as the paper names its kinds (DaMoN'20, section 4.2 and Figure 4).
//!
//! - [`NoFa`](FailureAtomicity::NoFa): data goes to a free place and is flushed; then one word of 8 bytes says that it is there.
//!   The word is atomic by itself, and nothing else has to be.
//! - [`Individual`](FailureAtomicity::Individual): the same, with that word in a transaction.
//! - [`Transactional`](FailureAtomicity::Transactional): everything that is stored to is snapshot to an undo log first.
//! - PMwCAS (BzTree), which swaps several words at once, is listed by the paper and measured by neither.
//!
//! `undo_log` is the transaction. [`GuardedNode`] makes any operation on a node atomic by any of these. [`Runs`] are the
//! runs of an LSM tree that data is moved to (E6) and merged in (E7).

mod guarded;
mod run;
mod runs;
pub mod sites;
mod undo_log;

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use guarded::GuardedNode;
pub use run::{RunBuffer, RunGeometry};
pub use runs::{L0_RUNS, Merge, MergeInto, Runs};
pub use undo_log::{Transaction, UndoLog};

/// The kind of failure atomicity. PMwCAS is named in [`PMWCAS`] and has no implementation here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureAtomicity {
    /// A word of 8 bytes after the data.
    NoFa,
    /// The same word in a transaction.
    Individual,
    /// Everything in a transaction.
    Transactional,
}

/// What the paper lists and nobody measured: several words that are compared and swapped as one.
pub const PMWCAS: &str = "pmwcas";

impl FailureAtomicity {
    /// Those that are implemented.
    pub const ALL: [Self; 3] = [Self::NoFa, Self::Individual, Self::Transactional];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoFa => "no-fa",
            Self::Individual => "individual",
            Self::Transactional => "transactional",
        }
    }
}

impl fmt::Display for FailureAtomicity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for FailureAtomicity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == text);
        found.ok_or_else(|| match text {
            PMWCAS => {
                "pmwcas is listed by the paper, which does not measure it; it is not to be had here"
                    .to_owned()
            }
            _ => format!("unknown failure atomicity `{text}`"),
        })
    }
}
