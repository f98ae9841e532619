//! [`IndexWritten`]: what was written to tables, and why.

use chimera_pmem::Site;

use super::sites;

/// Tables of one cause, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TablesWritten {
    /// Tables.
    pub tables: u64,
    /// Their bytes on media, headers included.
    pub bytes: u64,
}

/// What was written since the store was opened, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct IndexWritten {
    /// MemTables that became tables of the first level.
    pub flushes: TablesWritten,
    /// Compactions into a level above the last one.
    pub upper: TablesWritten,
    /// Compactions into the last level.
    pub last: TablesWritten,
    /// Dumps of bypass indexes.
    pub dumps: TablesWritten,
    /// Changes of the manifest.
    pub manifest: TablesWritten,
    /// MemTables that went to a bypass index alone. Nothing is written.
    pub absorbed: u64,
}

impl TablesWritten {
    pub(super) fn add(&mut self, bytes: u64) {
        self.tables += 1;
        self.bytes += bytes;
    }
}

impl IndexWritten {
    /// A table of so many bytes was written.
    pub(super) fn wrote(&mut self, cause: Cause, bytes: u64) {
        let written = match cause {
            Cause::Flush => &mut self.flushes,
            Cause::Upper => &mut self.upper,
            Cause::Last => &mut self.last,
            Cause::Dump => &mut self.dumps,
        };
        written.add(bytes);
    }

    /// Bytes of all tables, without the manifest.
    pub fn table_bytes(&self) -> u64 {
        let causes = [self.flushes, self.upper, self.last, self.dumps];
        causes.iter().map(|written| written.bytes).sum()
    }
}

/// Why a table was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    Flush,
    Upper,
    Last,
    Dump,
}

impl Cause {
    /// Where it is written.
    pub(super) fn site(self) -> Site {
        match self {
            Self::Flush => sites::FLUSH,
            Self::Upper => sites::UPPER,
            Self::Last => sites::LAST,
            Self::Dump => sites::DUMP,
        }
    }
}
