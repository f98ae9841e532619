//! From the steps of windows to instructions per operation.

use serde::{Deserialize, Serialize};

use crate::Failure;
use crate::goals::{Operation, SESSION_GOAL, goal, layout};
use crate::sampling::Class;

/// A window that the child went through.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Done {
    pub(crate) operation: Operation,
    pub(crate) class: Class,
    pub(crate) length: usize,
}

/// How many operations of a sequence are of which class.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Described {
    pub(crate) operation: Operation,
    pub(crate) classes: Vec<(Class, usize)>,
}

/// What the child says of its windows.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Told {
    pub(crate) layout: String,
    pub(crate) windows: Vec<Done>,
    pub(crate) totals: Vec<Described>,
}

/// What the child said, and the steps of each window.
pub(crate) struct Counted {
    pub(crate) told: Told,
    pub(crate) instructions: Vec<u64>,
}

/// A class's part in an operation.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Part {
    pub(crate) class: Class,
    /// Share of all operations.
    pub(crate) share: f64,
    /// Operations that were stepped.
    pub(crate) stepped: usize,
    /// Instructions of one, on average.
    pub(crate) instructions: f64,
}

/// Instructions of an operation.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) layout: String,
    pub(crate) operation: String,
    pub(crate) instructions: f64,
    pub(crate) goal: Option<f64>,
    pub(crate) parts: Vec<Part>,
}

impl Row {
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.layout, self.operation)
    }
}

/// The rows of a layout.
pub(crate) fn rows(counted: &Counted) -> Result<Vec<Row>, Failure> {
    let Counted { told, instructions } = counted;
    if told.windows.len() != instructions.len() {
        return Err("the child went through other windows than were stepped".into());
    }
    let layout = layout(&told.layout).ok_or("a layout that was not asked for")?;
    let windows: Vec<_> = told.windows.iter().zip(instructions).collect();
    let empty = |length: usize| {
        let is_empty = |done: &Done| done.operation == Operation::Nothing && done.length == length;
        let found = windows.iter().find(|(done, _)| is_empty(done));
        found.map(|(_, count)| **count).ok_or("there is no empty window of this length")
    };
    let mut rows = Vec::new();
    for Described { operation, classes } in &told.totals {
        let all: usize = classes.iter().map(|(_, count)| count).sum();
        let mut parts = Vec::new();
        for (class, count) in classes {
            let (mut stepped, mut steps) = (0, 0);
            for (done, count) in &windows {
                if done.operation == *operation && done.class == *class {
                    stepped += done.length;
                    steps += count.saturating_sub(empty(done.length)?);
                }
            }
            if stepped == 0 {
                return Err(format!("of {} nothing {class:?} was stepped", operation.name()).into());
            }
            let share = *count as f64 / all as f64;
            let instructions = steps as f64 / stepped as f64;
            parts.push(Part { class: *class, share, stepped, instructions });
        }
        let instructions = parts.iter().map(|part| part.share * part.instructions).sum();
        let goal = goal(layout, *operation);
        let (layout, operation) = (told.layout.clone(), operation.name().to_owned());
        rows.push(Row { layout, operation, instructions, goal, parts });
    }
    let of = |operation: Operation| {
        let found = rows.iter().find(|row| row.operation == operation.name());
        found.map(|row| row.instructions).ok_or("an operation was not counted")
    };
    let added = of(Operation::Get)? - of(Operation::GetByEngine)?;
    rows.retain(|row| row.operation != Operation::GetByEngine.name());
    rows.push(Row {
        layout: told.layout.clone(),
        operation: "session".to_owned(),
        instructions: added,
        goal: Some(SESSION_GOAL),
        parts: Vec::new(),
    });
    Ok(rows)
}
