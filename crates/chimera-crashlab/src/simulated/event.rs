//! [`Event`]: one step of a run, as the simulated machine saw it.

use chimera_pmem::{Extent, Operation, Site};

use super::tree::FileChange;

/// In which order stores of one line reach media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// After every earlier store of the line: an atomic store.
    Ordered,
    /// In any order among its neighbours: a part of a copy.
    Unordered,
    /// As unordered, and no other store waits for it: past the cache.
    NonTemporal,
}

/// A place between two operations of the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// The store is open, after so many times before.
    Opened(u32),
    /// The process was killed; the machine lives on, and another process begins.
    Killed,
    /// Operation number so-and-so begins.
    Begin(u32),
    /// It has returned.
    End(u32),
}

/// One step of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A word was stored.
    Store { word: u32, value: u64, order: Order, thread: u8, site: Site },
    /// The store that follows makes `depends_on` reachable.
    Publish { depends_on: Extent, thread: u8, site: Site },
    /// Nothing in the range is reachable any more.
    Withdrawn { range: Extent },
    /// A line was flushed.
    Flush { line: u32, thread: u8, site: Site },
    /// What the thread flushed is durable.
    Fence { thread: u8, site: Site },
    /// Words were read.
    Read { first: u32, count: u32, thread: u8 },
    /// What the operation has read so far counts for nothing: it reads again.
    Reread { thread: u8 },
    /// A file that was just created was mapped: its words are zero.
    MapFresh { first: u32, count: u32 },
    /// Something happened to the files.
    File(FileChange),
    /// An operation began; they nest.
    Begin { thread: u8, operation: Operation },
    /// The innermost operation happens, whatever crash comes now: a log has it.
    Decided,
    /// The innermost operation was acknowledged.
    Acknowledge { thread: u8 },
    /// A place between two operations of the test.
    Mark(Mark),
    /// So many events of the threads' history have happened.
    History(u32),
}

impl Event {
    /// The site of a step that stores, flushes or fences.
    pub(crate) fn site(&self) -> Option<Site> {
        match self {
            Self::Store { site, .. } | Self::Flush { site, .. } | Self::Fence { site, .. } => {
                Some(*site)
            }
            _ => None,
        }
    }

    /// Whether a crash just before this event is worth trying: whenever something is about to become
    /// durable, has been promised, or has changed outside of memory.
    pub(crate) fn is_crash_point(&self) -> bool {
        matches!(self, Self::Fence { .. } | Self::File(_) | Self::Mark(_))
    }
}
