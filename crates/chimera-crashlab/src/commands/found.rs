//! What was found, written down and described.

use std::path::Path;

use crate::explore::Found;

/// Writes a case for `replay`.
pub(super) fn save(found: &Found, path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let text = serde_json::to_string_pretty(&found.case)?;
    std::fs::write(path, text + "\n")
        .map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}

/// A violation as text: what, where, what survived, and how to see it again.
pub(super) fn describe(found: &Found, path: &Path) -> String {
    use std::fmt::Write as _;
    let violation = &found.violation;
    let mut text = violation.what.clone();
    if let Some(before) = &violation.before {
        let _ = write!(text, "\n  crash before: {before}");
    }
    for (name, stores) in [("survived", &violation.survived), ("lost", &violation.lost)] {
        if !stores.is_empty() {
            let _ = write!(text, "\n  {name}: {}", stores.join("; "));
        }
    }
    for (number, epoch) in found.case.epochs.iter().enumerate() {
        let _ = write!(text, "\n  epoch {number}: {:?}", epoch.actions);
    }
    let _ = write!(text, "\n  again: chimera-crashlab replay {}", path.display());
    text
}
