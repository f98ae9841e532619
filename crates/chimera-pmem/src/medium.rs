//! [`Medium`]: what a pool lies on.

use std::fmt;

/// What a pool lies on, and so what a cache-line flush means there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Medium {
    /// A file on a DAX file system mapped with `MAP_SYNC`: flush and fence make stores durable.
    FsDax,
    /// A DAX character device: flush and fence make stores durable.
    DevDax,
    /// An ordinary file: the page cache stands between memory and the device.
    File,
    /// A file in memory: survives the process, not the machine.
    Tmpfs,
    /// Anonymous memory: survives nothing.
    Anonymous,
    /// The crash lab's simulated medium.
    Simulated,
}

impl Medium {
    /// Whether flush and fence make a store survive a power loss.
    pub fn is_persistent_memory(self) -> bool {
        matches!(self, Self::FsDax | Self::DevDax | Self::Simulated)
    }
}

impl fmt::Display for Medium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FsDax => "fsdax",
            Self::DevDax => "devdax",
            Self::File => "file",
            Self::Tmpfs => "tmpfs",
            Self::Anonymous => "anonymous",
            Self::Simulated => "simulated",
        })
    }
}
