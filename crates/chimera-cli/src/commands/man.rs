//! `chimera man`.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Command, ValueHint};
use clap_mangen::Man as Pages;

use crate::commands::Context;
use crate::failure::Failure;
use crate::human::count;

const EXAMPLES: &str = "\
Examples:
  chimera man | man -l -                                   the first page, now
  chimera man --output ~/.local/share/man/man1             all pages, for `man chimera-put` and so on

There is a page for `chimera`, and one for each command.";

/// Print the manual page, or write one for each command
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Man {
    /// Directory to write all pages into, made if there is none; pages of before are written over
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    output: Option<PathBuf>,
}

impl Man {
    /// Prints or writes the pages of `command_line`.
    pub(crate) fn run(&self, context: &mut Context, command_line: Command) -> Result<(), Failure> {
        let Some(directory) = &self.output else {
            return context.output.bytes(&page(command_line)?);
        };
        fs::create_dir_all(directory).map_err(failed("make the directory"))?;
        let pages = pages(command_line);
        let written = pages.len() as u64;
        for (name, command) in pages {
            write(&directory.join(format!("{name}.1")), &page(command)?)?;
        }
        context.output.line(format!("{} pages in `{}`", count(written), directory.display()))
    }
}

/// The command itself and all commands that it has, with the names of their pages.
fn pages(command_line: Command) -> Vec<(String, Command)> {
    // What is said of every command is then part of each, and so is the name of its page.
    let mut command_line = command_line.disable_help_subcommand(true);
    command_line.build();
    let commands = command_line.get_subcommands();
    let all = std::iter::once(&command_line).chain(commands);
    let name =
        |command: &Command| command.get_display_name().unwrap_or(command.get_name()).to_owned();
    all.map(|command| (name(command), command.clone())).collect()
}

fn page(command: Command) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    Pages::new(command.disable_help_subcommand(true))
        .source(concat!("chimera ", env!("CARGO_PKG_VERSION")))
        .render(&mut page)
        .map_err(failed("render a page"))?;
    Ok(page)
}

fn write(path: &Path, page: &[u8]) -> Result<(), Failure> {
    let written = File::create(path).and_then(|mut file| file.write_all(page));
    written.map_err(failed("write a page"))
}

fn failed(action: &'static str) -> impl FnOnce(io::Error) -> Failure {
    move |source| Failure::Io { action, source }
}
