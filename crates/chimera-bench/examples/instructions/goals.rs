//! What is counted, and how many instructions each may take.

use serde::{Deserialize, Serialize};

/// A store that is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) name: &'static str,
    pub(crate) is_fixed: bool,
    pub(crate) key_bytes: u32,
    pub(crate) value_bytes: u32,
}

/// All of them.
pub(crate) const LAYOUTS: [Layout; 4] = [
    Layout { name: "fixed-16+200", is_fixed: true, key_bytes: 16, value_bytes: 200 },
    Layout { name: "fixed-8+8", is_fixed: true, key_bytes: 8, value_bytes: 8 },
    Layout { name: "any-16+200", is_fixed: false, key_bytes: 16, value_bytes: 200 },
    Layout { name: "any-8+8", is_fixed: false, key_bytes: 8, value_bytes: 8 },
];

/// The layout of this name.
pub(crate) fn layout(name: &str) -> Option<Layout> {
    LAYOUTS.into_iter().find(|layout| layout.name == name)
}

/// What is done between two marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Operation {
    /// The loop and the marks alone.
    Nothing,
    Get,
    /// The same gets by the engine, without what a session adds.
    GetByEngine,
    Update,
    Insert,
    Overwrite,
    Delete,
}

impl Operation {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Get => "get",
            Self::GetByEngine => "get-by-engine",
            Self::Update => "update",
            Self::Insert => "insert",
            Self::Overwrite => "overwrite",
            Self::Delete => "delete",
        }
    }
}

/// What a session may add to a get of its engine.
pub(crate) const SESSION_GOAL: f64 = 40.0;

/// Stores for records of any size may take so many times the instructions.
const ANY_SIZE_FACTOR: f64 = 1.25;

/// The most instructions that an operation is to take, where there is a goal.
pub(crate) fn goal(layout: Layout, operation: Operation) -> Option<f64> {
    let (large, small) = match operation {
        Operation::Get => (320.0, 220.0),
        Operation::Update => (400.0, 350.0),
        Operation::Insert => (900.0, 750.0),
        Operation::Overwrite => (1200.0, 1000.0),
        Operation::Delete => (450.0, 400.0),
        Operation::Nothing | Operation::GetByEngine => return None,
    };
    let fixed = if layout.value_bytes > 8 { large } else { small };
    Some(if layout.is_fixed { fixed } else { fixed * ANY_SIZE_FACTOR })
}
