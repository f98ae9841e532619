//! Counts the instructions of single operations, exactly, with no other tool: the program runs itself again as a
//! child, and single-steps the child between two marks.
//!
//! `cargo run --release -p chimera-bench --example instructions -- [OPTIONS] [LAYOUT..]`
//!
//! - `LAYOUT`: count these only, for example `fixed-16+200`. Default: all.
//! - `--baseline FILE`: compare with the counts in FILE. Fail when one grew by more than 3 %. Where there is no
//!   such file, write it and do not fail.
//! - `--record`: write the counts to the baseline in any case.
//! - `--json`: print the counts and what they consist of as JSON.
//!
//! Only instructions of the program are counted, none of the system's kernel. A string instruction with a repeat
//! prefix counts once. To compare two versions, run one with `--record --baseline FILE` and the other one with
//! `--baseline FILE`.
//!
//! Exit codes: 0 done, also where the system forbids single-stepping; 1 a count grew; 2 something failed.
#![forbid(unsafe_code)]

mod baseline;
mod child;
mod estimate;
mod goals;
mod report;
mod sampling;
mod stepper;
mod subject;

use std::path::PathBuf;
use std::process::ExitCode;

use estimate::Row;
use goals::LAYOUTS;

/// What went wrong.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What the child is called with, before the name of a layout.
const CHILD: &str = "--child";

#[derive(Default)]
struct Arguments {
    layouts: Vec<String>,
    baseline: Option<PathBuf>,
    record: bool,
    json: bool,
}

fn main() -> ExitCode {
    let mut given = std::env::args().skip(1);
    if let (Some(CHILD), Some(layout)) = (given.next().as_deref(), given.next()) {
        return child::run(&layout);
    }
    match parse().and_then(|arguments| parent(&arguments)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn parse() -> Result<Arguments, Failure> {
    let mut arguments = Arguments::default();
    let mut given = std::env::args().skip(1);
    while let Some(word) = given.next() {
        match &*word {
            "--baseline" => {
                let file = given.next().ok_or("--baseline needs a file")?;
                arguments.baseline = Some(file.into());
            }
            "--record" => arguments.record = true,
            "--json" => arguments.json = true,
            layout if LAYOUTS.iter().any(|known| known.name == layout) => {
                arguments.layouts.push(word);
            }
            _ => {
                let names: Vec<_> = LAYOUTS.iter().map(|layout| layout.name).collect();
                return Err(format!("unknown: `{word}`; layouts: {}", names.join(", ")).into());
            }
        }
    }
    if arguments.layouts.is_empty() {
        arguments.layouts = LAYOUTS.iter().map(|layout| layout.name.to_owned()).collect();
    }
    Ok(arguments)
}

/// Counts, prints and compares; whether no count grew.
fn parent(arguments: &Arguments) -> Result<bool, Failure> {
    let mut rows: Vec<Row> = Vec::new();
    for outcome in stepper::count_all(&arguments.layouts)? {
        match outcome {
            stepper::Outcome::Counted(counted) => rows.extend(estimate::rows(&counted)?),
            stepper::Outcome::Forbidden(why) => {
                let text = format!("not counted here: the system forbids single-stepping ({why})");
                eprintln!("{text}");
                if arguments.json {
                    println!("{}", serde_json::json!({ "not_counted": why }));
                }
                return Ok(true);
            }
        }
    }
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
    } else {
        report::print(&rows);
    }
    match &arguments.baseline {
        Some(file) => baseline::compare(&rows, file, arguments.record),
        None => Ok(true),
    }
}
