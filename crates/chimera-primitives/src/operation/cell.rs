//! [`Cell`]: one bar of one figure; [`cells`]: all of them.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::atomicity::FailureAtomicity;
use crate::layout::{LayoutKind, Search, table4};

/// An experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum Experiment {
    /// Searching for a key within a node (Figure 5).
    E1,
    /// Traversing a tree without search (Figure 6).
    E2,
    /// Iterating through a chain of nodes (Figure 7).
    E3,
    /// Inserting into a node (Figure 8).
    E4,
    /// Splitting a node (Figure 9).
    E5,
    /// Moving data from DRAM to a run (Figure 10).
    E6,
    /// Merging the runs of a level (Figure 11).
    E7,
    /// Erasing from a node (Figure 12).
    E8,
    /// Balancing two nodes (Figure 13).
    E9,
    /// Merging two nodes (Figure 14).
    E10,
    /// Recovering the nodes of a chain, which the paper left out.
    E11,
    /// Allocating and deallocating a node (I5).
    A1,
}

impl Experiment {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::E1,
        Self::E2,
        Self::E3,
        Self::E4,
        Self::E5,
        Self::E6,
        Self::E7,
        Self::E8,
        Self::E9,
        Self::E10,
        Self::E11,
        Self::A1,
    ];

    /// What is measured.
    pub fn title(self) -> &'static str {
        match self {
            Self::E1 => "Searching for a key within a node",
            Self::E2 => "Traversing a tree without search",
            Self::E3 => "Iterating through a chain of nodes",
            Self::E4 => "Inserting into a node",
            Self::E5 => "Splitting a node",
            Self::E6 => "Moving data from DRAM to a run",
            Self::E7 => "Merging four runs",
            Self::E8 => "Erasing from a node",
            Self::E9 => "Balancing two nodes",
            Self::E10 => "Merging two nodes",
            Self::E11 => "Recovering the nodes of a chain",
            Self::A1 => "Allocating a node",
        }
    }

    /// What one operation is.
    pub fn unit(self) -> &'static str {
        match self {
            Self::E2 => "level",
            Self::E3 | Self::E11 => "node",
            _ => "operation",
        }
    }

    /// What `size` of a cell is.
    pub fn size_is(self) -> &'static str {
        match self {
            Self::E2 => "inner levels",
            Self::E6 | Self::E7 => "bytes of a run",
            _ => "bytes of a node",
        }
    }
}

impl fmt::Display for Experiment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl FromStr for Experiment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|one| one.to_string().eq_ignore_ascii_case(text));
        named.ok_or_else(|| format!("unknown experiment `{text}`; there are E1 to E11 and A1"))
    }
}

/// Where in a node the key is that is looked for, inserted or erased; where balancing moves entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Position {
    /// It makes no difference.
    Any,
    /// The first key.
    First,
    /// The one in the middle.
    Middle,
    /// The last one.
    Last,
    /// To a node with smaller keys.
    ToSmaller,
    /// To a node with larger keys.
    ToLarger,
}

impl Position {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "",
            Self::First => "first",
            Self::Middle => "middle",
            Self::Last => "last",
            Self::ToSmaller => "to smaller keys",
            Self::ToLarger => "to larger keys",
        }
    }
}

/// What is compared in an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Contender {
    /// A layout that does it in its only way.
    Layout(LayoutKind),
    /// A layout that is searched in this way (E1).
    Searched(LayoutKind, Search),
    /// Slots instead of the bitmap (E3).
    BySlots,
    /// A layout that is split by copying the node (E5).
    Copied(LayoutKind),
    /// A split with the allocation of the new node, by itself or of a group (E5).
    Allocated(LayoutKind, bool),
    /// Inner nodes in DRAM, or in persistent memory (E2).
    Inner(bool),
    /// Whether the data is kept sorted in DRAM, and failure atomicity (E6).
    Moved(bool, FailureAtomicity),
    /// Filling the buffer in DRAM beforehand, sorted or not (E6): what keeping it sorted costs.
    Filled(bool),
    /// At once or by pairs, into a buffer or not, all keys alike or none, failure atomicity (E7).
    Merged(bool, bool, bool, FailureAtomicity),
    /// Whether nodes are allocated by groups, and whether one is given back instead (A1).
    Allocation(bool, bool),
}

impl Contender {
    /// The layout, where it is about one.
    pub fn layout(self) -> Option<LayoutKind> {
        match self {
            Self::Layout(kind)
            | Self::Searched(kind, _)
            | Self::Copied(kind)
            | Self::Allocated(kind, _) => Some(kind),
            Self::BySlots => Some(LayoutKind::Indirection),
            _ => None,
        }
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pick = |which: bool, yes: &'static str, no: &'static str| if which { yes } else { no };
        match *self {
            Self::Layout(kind) => write!(f, "{kind}"),
            Self::Searched(kind, how) => write!(f, "{kind}, {}", how.name()),
            Self::BySlots => f.write_str("indirection, by slots"),
            Self::Copied(kind) => write!(f, "{kind}, copy"),
            Self::Allocated(kind, grouped) => {
                write!(f, "{kind}, node {}", pick(grouped, "of a group", "by itself"))
            }
            Self::Inner(dram) => write!(f, "inner nodes in {}", pick(dram, "DRAM", "PMem")),
            Self::Moved(sorted, kind) => {
                write!(f, "{} C0, {kind}", pick(sorted, "sorted", "unsorted"))
            }
            Self::Filled(sorted) => {
                write!(f, "filling a {} C0", pick(sorted, "sorted", "unsorted"))
            }
            Self::Merged(k_way, buffered, duplicates, kind) => write!(
                f,
                "{}, {}, {}, {kind}",
                pick(k_way, "K-way", "2-way"),
                pick(buffered, "buffered", "direct"),
                pick(duplicates, "100 % duplicates", "unique")
            ),
            Self::Allocation(grouped, free) => write!(
                f,
                "{} {}",
                pick(free, "deallocating", "allocating"),
                pick(grouped, "of a group", "by itself")
            ),
        }
    }
}

/// One bar of one figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cell {
    /// The experiment.
    pub experiment: Experiment,
    /// Who does it.
    pub contender: Contender,
    /// Bytes of a node or of a run, or the number of levels: see [`Experiment::size_is`].
    pub size: u32,
    /// Where.
    pub position: Position,
}

/// Bytes of runs in E6 and E7.
pub(crate) const RUN_BYTES: [u32; 4] = [1 << 10, 4 << 10, 16 << 10, 64 << 10];
/// Most inner levels of E2.
pub(crate) const LEVELS_MAX: u32 = 5;

/// Contenders of an experiment.
fn contenders(experiment: Experiment) -> Vec<Contender> {
    let layouts = || LayoutKind::ALL.map(Contender::Layout).to_vec();
    let mut all = Vec::new();
    match experiment {
        Experiment::E1 => {
            let ways = |kind| Search::ALL.map(|how| Contender::Searched(kind, how));
            all.extend(ways(LayoutKind::Sorted));
            all.extend(ways(LayoutKind::Indirection));
            all.retain(|one| *one != Contender::Searched(LayoutKind::Indirection, Search::Linear));
            let by_themselves = [
                LayoutKind::Unsorted,
                LayoutKind::Hashing,
                LayoutKind::Bitmap,
                LayoutKind::HashingCounted,
            ];
            all.extend(by_themselves.map(Contender::Layout));
        }
        Experiment::E2 => all.extend([true, false].map(Contender::Inner)),
        Experiment::E3 => {
            all = layouts();
            all.push(Contender::BySlots);
        }
        Experiment::E5 => {
            all = layouts();
            let bitmaps = LayoutKind::ALL.into_iter().filter(|kind| kind.has_bitmap());
            all.extend(bitmaps.map(Contender::Copied));
            for kind in [LayoutKind::Sorted, LayoutKind::Hashing] {
                all.extend([false, true].map(|grouped| Contender::Allocated(kind, grouped)));
            }
        }
        Experiment::E6 => {
            for sorted in [true, false] {
                all.extend(FailureAtomicity::ALL.map(|kind| Contender::Moved(sorted, kind)));
            }
            all.extend([true, false].map(Contender::Filled));
        }
        Experiment::E7 => {
            for kind in [FailureAtomicity::NoFa, FailureAtomicity::Transactional] {
                for way in 0..8 {
                    let bit = |number: u32| way >> number & 1 != 0;
                    all.push(Contender::Merged(bit(0), bit(1), bit(2), kind));
                }
            }
        }
        Experiment::A1 => {
            for free in [false, true] {
                all.extend([false, true].map(|grouped| Contender::Allocation(grouped, free)));
            }
        }
        Experiment::E4 | Experiment::E8 | Experiment::E9 | Experiment::E10 | Experiment::E11 => {
            all = layouts();
        }
    }
    all
}

/// Every cell of an experiment, by size, then by position, then by contender: those of one figure next to each other.
pub fn cells(experiment: Experiment) -> Vec<Cell> {
    use Position::{Any, First, Last, Middle, ToLarger, ToSmaller};
    let positions: &[Position] = match experiment {
        Experiment::E1 | Experiment::E4 | Experiment::E8 => &[First, Middle, Last],
        Experiment::E9 => &[ToSmaller, ToLarger],
        _ => &[Any],
    };
    let sizes: Vec<u32> = match experiment {
        Experiment::E2 => (1..=LEVELS_MAX).collect(),
        Experiment::E6 | Experiment::E7 => RUN_BYTES.to_vec(),
        _ => table4::NODE_BYTES.to_vec(),
    };
    let mut all = Vec::new();
    for size in sizes {
        for position in positions.iter().copied() {
            let cell = |contender| Cell { experiment, contender, size, position };
            all.extend(contenders(experiment).into_iter().map(cell));
        }
    }
    all
}
