//! Calling cargo, and reading what it says.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::room::{Asked, ONE_FILTER};

/// A built binary of tests.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Binary {
    /// The target's name.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// Where its tests expect to run.
    pub(crate) home: PathBuf,
    /// Whether it runs several tests that are named, or one.
    pub(crate) takes_many: bool,
}

/// An error of the compiler.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) rendered: String,
    /// Places that it speaks of, the main one first.
    pub(crate) spans: Vec<Span>,
}

/// A place in a file of the tree.
#[derive(Debug)]
pub(crate) struct Span {
    pub(crate) file: String,
    pub(crate) range: Range<usize>,
}

/// How cargo is called.
pub(crate) struct Cargo<'a> {
    pub(crate) tree: &'a Path,
    pub(crate) target: &'a Path,
}

impl Cargo<'_> {
    /// Errors of a check, which is quicker than a build.
    pub(crate) fn check(&self, tests: &Asked<'_>) -> io::Result<Result<(), Vec<Failure>>> {
        let messages = self.run(&["check", "--profile", "test"], tests)?;
        Ok(failures(&messages).map_or(Ok(()), Err))
    }

    /// The binaries of tests, or errors.
    pub(crate) fn build(&self, tests: &Asked<'_>) -> io::Result<Result<Vec<Binary>, Vec<Failure>>> {
        let messages = self.run(&["test", "--no-run"], tests)?;
        if let Some(failures) = failures(&messages) {
            return Ok(Err(failures));
        }
        let binary = |message: &Value| {
            let path = message["executable"].as_str()?;
            let name = message["target"]["name"].as_str()?.to_owned();
            let takes_many = !ONE_FILTER.contains(&&*name);
            let home = self.tree.join(tests.home);
            message["profile"]["test"].as_bool()?.then(|| Binary {
                name,
                path: path.into(),
                home,
                takes_many,
            })
        };
        Ok(Ok(messages.iter().filter_map(binary).collect()))
    }

    /// All messages of a command. Fails when it fails for another reason than errors in the source.
    fn run(&self, command: &[&str], tests: &Asked<'_>) -> io::Result<Vec<Value>> {
        let output = Command::new("cargo")
            .args(command)
            .args(["--message-format=json", "--package", tests.package])
            .args(&tests.arguments)
            .current_dir(self.tree)
            .env("CARGO_TARGET_DIR", self.target)
            // Mutated code breaks every rule of style.
            .env("RUSTFLAGS", "--cap-lints=allow")
            .env("CARGO_INCREMENTAL", "1")
            .env("CARGO_PROFILE_DEV_DEBUG", "none")
            .env("CARGO_PROFILE_TEST_DEBUG", "none")
            .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1")
            .env("CARGO_PROFILE_TEST_OPT_LEVEL", "1")
            .env("CARGO_PROFILE_TEST_OVERFLOW_CHECKS", "true")
            .output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let messages: Vec<Value> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        if !output.status.success() && failures(&messages).is_none() {
            return Err(io::Error::other(String::from_utf8_lossy(&output.stderr)));
        }
        Ok(messages)
    }
}

/// The errors among messages, if there are any.
fn failures(messages: &[Value]) -> Option<Vec<Failure>> {
    let errors = messages.iter().map(|message| &message["message"]);
    let found: Vec<_> = errors.filter(|error| error["level"] == "error").map(failure).collect();
    (!found.is_empty()).then_some(found)
}

fn failure(error: &Value) -> Failure {
    let mut spans = Vec::new();
    let children = error["children"].as_array().into_iter().flatten();
    for part in std::iter::once(error).chain(children) {
        let all = part["spans"].as_array().into_iter().flatten();
        let (main, other): (Vec<_>, Vec<_>) = all.partition(|span| span["is_primary"] == true);
        spans.extend(main.into_iter().chain(other).filter_map(span));
    }
    Failure { rendered: error["rendered"].as_str().unwrap_or_default().to_owned(), spans }
}

fn span(span: &Value) -> Option<Span> {
    let byte = |name: &str| span[name].as_u64().map(|byte| byte as usize);
    let range = byte("byte_start")?..byte("byte_end")?;
    Some(Span { file: span["file_name"].as_str()?.to_owned(), range })
}
