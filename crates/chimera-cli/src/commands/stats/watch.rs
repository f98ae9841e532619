//! `chimera stats --watch`: what a store does, again and again.
//!
//! Only what is published is read. The store is never opened, nor its lock touched: a process that is
//! about to open it must not find it locked.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use serde::Serialize;

use super::published::Publication;
use super::text;
use crate::commands::Context;
use crate::failure::Failure;
use crate::paths;

/// Moves to the top of the screen and clears it.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// That no process has the store open.
#[derive(Serialize)]
struct Closed<'a> {
    #[serde(flatten, serialize_with = "paths::fields")]
    path: &'a Path,
    process: Option<&'a str>,
}

/// Reads an interval.
///
/// # Errors
/// With what an interval is.
pub(super) fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.01..=86_400.0).contains(seconds));
    seconds.ok_or_else(|| "a number of seconds from 0.01 to 86400".to_owned())
}

/// Shows the store's figures every so often, `rounds` times or until interrupted: first since the store
/// was opened, then since the time before.
///
/// # Errors
/// When nothing is published at first; when the reader of the output has gone.
pub(super) fn run(
    context: &mut Context,
    path: &Path,
    every: f64,
    rounds: Option<u64>,
) -> Result<(), Failure> {
    let mut last: Option<Publication> = None;
    let mut is_first = true;
    let mut left = rounds;
    while left != Some(0) {
        if !is_first {
            thread::sleep(Duration::from_secs_f64(every));
        }
        let publication = Publication::read(path)?;
        if is_first && publication.is_none() {
            return Err(Failure::Unpublished { path: PathBuf::from(path), holder: None });
        }
        is_first = false;
        last = show(context, path, last, publication)?;
        context.output.finish()?;
        left = left.map(|left| left - 1);
    }
    Ok(())
}

/// Shows one look; gives back what the next one is compared with.
fn show(
    context: &mut Context,
    path: &Path,
    last: Option<Publication>,
    now: Option<Publication>,
) -> Result<Option<Publication>, Failure> {
    let is_screen = io::stdout().is_terminal() && !context.json;
    let Some(now) = now else {
        if context.json {
            context.output.json(&Closed { path, process: None })?;
        } else {
            let clear = if is_screen { CLEAR } else { "" };
            context.output.line(format!("{clear}{}: closed", path.display()))?;
        }
        return Ok(None);
    };
    let earlier = last.as_ref().filter(|last| now.follows(last));
    // Another look at the same figures says nothing about the time since.
    let is_same = earlier.is_some_and(|earlier| now.is(earlier));
    if is_same && !now.is_stale() {
        return Ok(last);
    }
    let interval = now.since(earlier);
    if context.json {
        context.output.json(&now.report(path, &interval, false))?;
    } else if is_screen {
        let lines = text::table(path, &now, &interval);
        context.output.line(format!("{CLEAR}{}", lines.join("\n")))?;
    } else {
        context.output.line(text::line(&now, &interval))?;
    }
    Ok(Some(now))
}
