//! `chimera bench` and `chimera primitives`: they run the command `chimera-bench`, which is built apart.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use clap::Args;

use crate::commands::Context;
use crate::failure::Failure;

/// The command that does it.
const PROGRAM: &str = "chimera-bench";

/// Arguments that are passed on as they are.
#[derive(Args, Debug)]
pub(crate) struct PassedOn {
    /// What to measure, and how; --help says more
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl PassedOn {
    /// Becomes `chimera-bench`, with `first` before the arguments.
    ///
    /// # Errors
    /// When it cannot be run.
    pub(crate) fn run(&self, context: &Context, first: &[&str]) -> Result<(), Failure> {
        let mut command = Command::new(program());
        command.args(first);
        if context.path_is_given {
            command.arg("--path").arg(&context.path);
        }
        command.args(&self.arguments);
        if context.json {
            command.arg("--json");
        }
        command.args(context.verbose.then_some("-v"));
        // It does not return unless it fails.
        let source = command.exec();
        Err(match source.kind() {
            ErrorKind::NotFound => Failure::NoBench,
            _ => Failure::Io { action: "run chimera-bench", source },
        })
    }
}

/// The program: beside this one, or wherever programs are looked for.
fn program() -> PathBuf {
    let beside = std::env::current_exe().map(|path| path.with_file_name(PROGRAM));
    beside.ok().filter(|path| path.is_file()).unwrap_or_else(|| PROGRAM.into())
}
