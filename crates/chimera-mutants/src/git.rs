//! Asking git.

use std::io;
use std::path::Path;
use std::process::Command;

/// The output of a git command.
pub(crate) fn git(directory: &Path, arguments: &[&str]) -> io::Result<String> {
    let output = Command::new("git").arg("-C").arg(directory).args(arguments).output()?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("git {}: {reason}", arguments.join(" "))));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}
