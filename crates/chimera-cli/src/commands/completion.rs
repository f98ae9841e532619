//! `chimera completion`.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::commands::Context;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  source <(chimera completion bash)                                    for this shell
  chimera completion bash > ~/.local/share/bash-completion/completions/chimera
  chimera completion zsh > \"${fpath[1]}/_chimera\"
  chimera completion fish > ~/.config/fish/completions/chimera.fish";

/// Print a script that completes this command's arguments in a shell
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Completion {
    /// Shell
    shell: Shell,
}

impl Completion {
    /// Prints the script for `command_line`.
    pub(crate) fn run(
        &self,
        context: &mut Context,
        mut command_line: Command,
    ) -> Result<(), Failure> {
        // By way of memory: the generator panics when writing fails.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command_line, "chimera", &mut script);
        context.output.bytes(&script)
    }
}
