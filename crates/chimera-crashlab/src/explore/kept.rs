//! Cases that once failed, in `cases/`: each is run again as it was written down, with the step that it
//! makes wrong, which must be noticed, and without, which must pass. A case whose step is gone proves nothing, so
//! there may be none.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::{Case, replay};
use crate::simulated::MutationKind;
use crate::subject::Shape;

fn cases() -> Vec<(String, Case)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let mut cases = Vec::new();
    for entry in fs::read_dir(directory).expect("the directory of cases") {
        let path = entry.expect("an entry").path();
        let text = fs::read_to_string(&path).expect("a case");
        let case = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        cases.push((path.display().to_string(), case));
    }
    assert!(cases.len() > 30, "only {} cases", cases.len());
    cases
}

#[test]
fn every_step_that_a_case_makes_wrong_is_one_of_its_engine() {
    let mut wrong = String::new();
    for (path, case) in cases() {
        let (Some(mutation), Shape::Engine(shape)) = (case.mutation, &case.shape) else { continue };
        let is_skipped = mutation.kind == MutationKind::Skip;
        let is_it = |site: &chimera_pmem::Site| {
            site.name() == mutation.site && site.is_step() == is_skipped
        };
        if !chimera::sites(shape.kind()).iter().any(is_it) {
            let _ = writeln!(wrong, "{path}: {:?} has no such step as {mutation}", shape.kind());
        }
        let names = Case::kept_names(mutation, shape.kind());
        if !names.iter().any(|name| Path::new(&path).ends_with(name)) {
            let _ = writeln!(wrong, "{path}: the case of {mutation} has another name");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn what_was_noticed_once_is_noticed_again() {
    let unnoticed = |(_, case): &(String, Case)| case.mutation.is_some() && replay(case).is_none();
    let names: Vec<_> = cases().into_iter().filter(unnoticed).map(|(name, _)| name).collect();
    assert!(names.is_empty(), "nobody notices the mutation in {names:#?}");
}

#[test]
fn what_failed_once_passes() {
    for (name, case) in cases() {
        let violation = replay(&Case { mutation: None, ..case });
        assert!(violation.is_none(), "{name}: {violation:?}");
    }
}
