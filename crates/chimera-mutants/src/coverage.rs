//! Which tests there are, how long each takes and which mutants it reaches.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use std::{fs, io};

use serde::{Deserialize, Serialize};

use crate::build::Binary;
use crate::process::{Call, End, Limits};
use crate::workers::{Workers, lock};

/// A test without any mutant.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Test {
    pub(crate) name: String,
    /// Which of the binaries it is in.
    pub(crate) binary: usize,
    pub(crate) seconds: f64,
    pub(crate) passes: bool,
    /// It was ended after these seconds, because slower tests were not to be asked. What it reaches is not known.
    #[serde(default)]
    pub(crate) is_cut: bool,
    /// The numbers of the mutants that it reaches, in order.
    pub(crate) reaches: Vec<u32>,
}

/// Longest that a test may take before it is left out.
const TEST_MAX: Duration = Duration::from_secs(600);

/// The tests of binaries.
fn names(binaries: &[Binary]) -> io::Result<Vec<(usize, String)>> {
    let mut names = Vec::new();
    for (at, binary) in binaries.iter().enumerate() {
        let output = Command::new(&binary.path).arg("--list").current_dir(&binary.home).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let tests = text.lines().filter_map(|line| line.strip_suffix(": test"));
        names.extend(tests.map(|name| (at, name.to_owned())));
    }
    Ok(names)
}

/// Runs each test by itself, with no mutant, for no longer than `slowest`. What is known is read from, and kept in, the file at
/// `path`.
pub(crate) fn measure(
    binaries: &[Binary],
    path: &Path,
    workers: &Workers,
    slowest: Duration,
) -> io::Result<Vec<Test>> {
    let text = fs::read_to_string(path).ok();
    let known: Option<Vec<Test>> = text.and_then(|text| serde_json::from_str(&text).ok());
    let is_due = |test: &Test| test.is_cut && test.seconds < slowest.as_secs_f64();
    let (due, found) = match known {
        Some(known) if !known.iter().any(is_due) => return Ok(known),
        Some(known) => {
            let (due, found): (Vec<Test>, Vec<Test>) = known.into_iter().partition(is_due);
            (due.into_iter().map(|test| (test.binary, test.name)).collect(), found)
        }
        None => (names(binaries)?, Vec::new()),
    };
    let found = Mutex::new(found);
    workers.each("tests", &due, |(binary, name), scratch| {
        let test = one(binaries, *binary, name, scratch, slowest.min(TEST_MAX))?;
        lock(&found).push(test);
        Ok(())
    })?;
    let mut tests = found.into_inner().unwrap_or_default();
    tests.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    fs::write(path, serde_json::to_string(&tests)?)?;
    Ok(tests)
}

fn one(
    binaries: &[Binary],
    binary: usize,
    name: &str,
    scratch: &Path,
    longest: Duration,
) -> io::Result<Test> {
    let reached: PathBuf = scratch.with_extension("reached");
    fs::write(&reached, "")?;
    let started = Instant::now();
    let call = Call {
        binary: &binaries[binary],
        tests: &[name],
        environment: &[("CHIMERA_MUTANTS_REACHED", reached.display().to_string())],
        scratch,
        limits: Limits { wall: longest, processor: TEST_MAX },
    };
    let end = call.run(&mut |_| {})?;
    let seconds = started.elapsed().as_secs_f64();
    let text = fs::read_to_string(&reached)?;
    let reaches: BTreeSet<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
    Ok(Test {
        name: name.to_owned(),
        binary,
        seconds,
        passes: end == End::Passed,
        is_cut: matches!(end, End::TimedOut(_)) && longest < TEST_MAX,
        reaches: reaches.into_iter().collect(),
    })
}
