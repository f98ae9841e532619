//! Which operations are stepped. Stepping is slow, and few inserts make the index grow, but those few take a
//! hundred times as long. So a sequence of operations is rehearsed on a store of its own, which tells the class of
//! each one; some of each class are stepped; each class weighs as much as it has members.

use serde::{Deserialize, Serialize};

/// What an operation makes grow. An operation that makes several things grow is of the last class of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Class {
    /// Nothing.
    Plain,
    /// A block was taken or given back.
    Block,
    /// Memory was got ready for the index.
    IndexMemory,
    /// A segment of the index was split.
    IndexSplit,
}

impl Class {
    const ALL: [Self; 4] = [Self::Plain, Self::Block, Self::IndexMemory, Self::IndexSplit];

    /// Windows of this class, and operations of each.
    fn sample(self) -> (usize, usize) {
        match self {
            Self::Plain => (WINDOWS, WINDOW_MAX),
            Self::Block => (8, 1),
            Self::IndexMemory | Self::IndexSplit => (4, 1),
        }
    }
}

/// Windows of operations that make nothing grow.
const WINDOWS: usize = 20;
/// Most operations of a window.
pub(crate) const WINDOW_MAX: usize = 8;

/// Operations that follow one another and are stepped together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) class: Class,
    pub(crate) start: usize,
    pub(crate) length: usize,
}

/// How many operations of a sequence are of which class.
pub(crate) fn totals(classes: &[Class]) -> Vec<(Class, usize)> {
    let count = |class| classes.iter().filter(|&&other| other == class).count();
    Class::ALL.into_iter().map(|class| (class, count(class))).filter(|it| it.1 > 0).collect()
}

/// Windows spread evenly over a sequence of operations, in its order.
pub(crate) fn windows(classes: &[Class]) -> Vec<Window> {
    let mut windows = Vec::new();
    for (class, _) in totals(classes) {
        let (most, length) = class.sample();
        // Where as many operations of this class as a window has follow one another.
        let starts: Vec<_> = (0..(classes.len() + 1).saturating_sub(length))
            .filter(|&at| classes[at..at + length].iter().all(|&other| other == class))
            .collect();
        // Odd, so that windows fall into no step with pages and blocks.
        let stride = (starts.len() / most).max(1);
        let stride = if stride > WINDOW_MAX { (stride - 1) | 1 } else { stride };
        let chosen = starts.iter().step_by(stride).take(most);
        let mut free = 0;
        for &start in chosen {
            if start >= free {
                windows.push(Window { class, start, length });
                free = start + length;
            }
        }
    }
    windows.sort_by_key(|window| window.start);
    windows
}
