//! [`LayoutKind`]: the name of a layout, and what it has.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The name of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LayoutKind {
    /// [`Sorted`](super::Sorted).
    Sorted,
    /// [`Unsorted`](super::Unsorted).
    Unsorted,
    /// [`Indirection`](super::Indirection).
    Indirection,
    /// [`Hashing`](super::Hashing).
    Hashing,
    /// [`BitmapOnly`](super::BitmapOnly).
    Bitmap,
    /// [`HashingCounted`](super::HashingCounted).
    HashingCounted,
}

impl LayoutKind {
    /// The five of the paper, in its order, and the one that it names as untested.
    pub const ALL: [Self; 6] = [
        Self::Sorted,
        Self::Unsorted,
        Self::Indirection,
        Self::Hashing,
        Self::Bitmap,
        Self::HashingCounted,
    ];

    /// The name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sorted => "sorted",
            Self::Unsorted => "unsorted",
            Self::Indirection => "indirection",
            Self::Hashing => "hashing",
            Self::Bitmap => "bitmap",
            Self::HashingCounted => "hashing-counted",
        }
    }

    /// Whether a bitmap says which entries are there.
    pub fn has_bitmap(self) -> bool {
        matches!(self, Self::Indirection | Self::Hashing | Self::Bitmap)
    }

    /// Whether a count says how many entries are there.
    pub fn has_count(self) -> bool {
        !self.has_bitmap()
    }

    /// Whether slots keep the order of keys.
    pub fn has_slots(self) -> bool {
        self == Self::Indirection
    }

    /// Whether there is a hash of each key.
    pub fn has_hashes(self) -> bool {
        matches!(self, Self::Hashing | Self::HashingCounted)
    }
}

impl fmt::Display for LayoutKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for LayoutKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| {
            format!("unknown layout `{text}`; layouts: {}", Self::ALL.map(Self::name).join(", "))
        })
    }
}
