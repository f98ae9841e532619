//! [`CheckReport`]: what verifying a whole store found.

/// What verifying a whole store found.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct CheckReport {
    /// Blocks read.
    pub blocks: u64,
    /// Records read.
    pub records: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// Entries of the index.
    pub index_entries: u64,
    /// Words of 8 bytes that no checksum covers because they are updated in place: at most one of a record. Everything
    /// else of these records was verified.
    pub words_unchecked: u64,
    /// How much is wrong.
    pub damages: u64,
    /// The first damage by position.
    pub first_damage: Option<Damage>,
}

impl CheckReport {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.damages == 0
    }

    pub(crate) fn damage(&mut self, at: u64, what: String) {
        self.damages += 1;
        if self.first_damage.as_ref().is_none_or(|first| at < first.at) {
            self.first_damage = Some(Damage { at, what });
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Damage {
    /// Offset in the pool, in bytes.
    pub at: u64,
    /// What is wrong there.
    pub what: String,
}
