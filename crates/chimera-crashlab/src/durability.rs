//! Which acknowledged writes may be missing after which end: [`End`], [`Loss`]. Every oracle of the lab
//! asks what it tests, and judges by the answer.

/// How a store came to its end without being closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Its process was killed; the machine lives on.
    Kill,
    /// The machine lost its power.
    PowerLoss,
}

/// Which acknowledged writes may be missing after an end. What a sync, the end of a session or closing
/// has covered is never among them. A store that loses a write loses every later write of the same
/// group, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Loss {
    /// None.
    #[default]
    Nothing,
    /// The last ones of all sessions, in the order in which they were acknowledged: what an unsynced
    /// window of `Group` holds.
    Suffix,
    /// The last ones of each session, at most so many: what a session that acknowledges in batches has not
    /// written yet.
    SuffixOfEachSession {
        /// Most operations of a session.
        operations_max: u32,
    },
}

impl Loss {
    /// Most acknowledged writes of a group that may be missing.
    pub(crate) fn operations_max(self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Suffix => usize::MAX,
            Self::SuffixOfEachSession { operations_max } => operations_max as usize,
        }
    }

    /// The group of a session's writes: a later write of a group never survives an earlier one.
    pub(crate) fn group(self, session: usize) -> usize {
        match self {
            Self::Nothing | Self::SuffixOfEachSession { .. } => session,
            Self::Suffix => 0,
        }
    }
}
