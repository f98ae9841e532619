//! The counts of before, in a file: a map from name to instructions.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::Failure;
use crate::estimate::Row;

/// A count that grows by more than this fails, and by more than [`SLACK`], because a few are small, or the difference of two.
const GROWTH_MAX: f64 = 0.03;
/// Instructions.
const SLACK: f64 = 5.0;

/// Instructions by name.
type Counts = BTreeMap<String, f64>;

/// Compares with the file, or writes it. Whether no count grew.
pub(crate) fn compare(rows: &[Row], file: &Path, record: bool) -> Result<bool, Failure> {
    let now: Counts = rows.iter().map(|row| (row.name(), round(row.instructions))).collect();
    let mut before: Counts = if file.exists() {
        serde_json::from_str(&fs::read_to_string(file)?)?
    } else {
        Counts::new()
    };
    if record || before.is_empty() {
        before.extend(now);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(file, serde_json::to_string_pretty(&before)? + "\n")?;
        eprintln!("recorded in {}, compared with nothing", file.display());
        return Ok(true);
    }
    let mut is_kept = true;
    for (name, now) in now {
        let Some(before) = before.get(&name) else {
            eprintln!("{name}: {now}, which is new in {}", file.display());
            continue;
        };
        let (more, share) = (now - before, now / before - 1.0);
        let is_far = share.abs() > GROWTH_MAX && more.abs() > SLACK;
        let verdict = match (is_far, more > 0.0) {
            (true, true) => ": too many more",
            (true, false) => ": record it with --record",
            (false, _) => "",
        };
        if more != 0.0 {
            eprintln!("{name}: {before} before, {now} now, {:+.1} %{verdict}", 100.0 * share);
        }
        is_kept &= !(is_far && more > 0.0);
    }
    Ok(is_kept)
}

fn round(instructions: f64) -> f64 {
    (instructions * 10.0).round() / 10.0
}
