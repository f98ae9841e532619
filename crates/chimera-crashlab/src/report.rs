//! [`Report`]: what a command found, printed as a table or as JSON.

use std::io::Write;
use std::process::ExitCode;

use serde_json::{Map, Value};

/// What a command found: named figures in order, and sentences about what went wrong.
#[derive(Debug, Default)]
pub struct Report {
    figures: Vec<(&'static str, Value)>,
    problems: Vec<String>,
    skipped: Option<String>,
}

impl Report {
    /// A report without anything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a figure.
    pub fn figure(&mut self, name: &'static str, value: impl Into<Value>) -> &mut Self {
        self.figures.push((name, value.into()));
        self
    }

    /// Adds something that is wrong: the command fails.
    pub fn problem(&mut self, text: impl Into<String>) -> &mut Self {
        self.problems.push(text.into());
        self
    }

    /// Nothing was run, for this reason: not a failure.
    pub fn skipped(&mut self, reason: impl Into<String>) -> &mut Self {
        self.skipped = Some(reason.into());
        self
    }

    /// Prints the report on the standard output; the code to exit with: 0, or 1 with problems.
    ///
    /// # Errors
    /// When the standard output cannot be written.
    pub fn print(&self, json: bool) -> std::io::Result<ExitCode> {
        let mut out = std::io::stdout().lock();
        if json {
            writeln!(out, "{:#}", self.to_json())?;
        } else {
            self.print_table(&mut out)?;
        }
        Ok(if self.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
    }

    fn to_json(&self) -> Value {
        let mut object: Map<String, Value> =
            self.figures.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        object.insert("problems".to_owned(), self.problems.clone().into());
        if let Some(reason) = &self.skipped {
            object.insert("skipped".to_owned(), reason.clone().into());
        }
        object.into()
    }

    fn print_table(&self, out: &mut impl Write) -> std::io::Result<()> {
        if let Some(reason) = &self.skipped {
            writeln!(out, "skipped: {reason}")?;
        }
        let width = self.figures.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, value) in &self.figures {
            match value {
                Value::String(text) => writeln!(out, "{name:width$}  {text}")?,
                Value::Array(items) => {
                    writeln!(out, "{name:width$}  {}", items.len())?;
                    for item in items {
                        writeln!(
                            out,
                            "  {}",
                            item.as_str().map_or(item.to_string(), str::to_owned)
                        )?;
                    }
                }
                other => writeln!(out, "{name:width$}  {other}")?,
            }
        }
        for problem in &self.problems {
            writeln!(out, "PROBLEM: {problem}")?;
        }
        Ok(())
    }
}
