use std::fs;
use std::path::Path;

use crate::campaign::Campaign;
use crate::cli::Options;
use crate::git::git;
use crate::outcome::Fate;
use crate::room::{Room, Tests};

const TESTS: Tests = Tests { package: "fixture", home: "fixture", arguments: &["--lib"] };
const ROOM: Room =
    Room { name: "room", home: "fixture", source: "src/room", narrow: TESTS, wide: TESTS };

const SOURCE: &str = r"
#[derive(Debug)]
pub struct Plain(pub u8);

pub fn larger(a: u64, b: u64) -> u64 { if a < b { b } else { a } }

pub fn plain() -> Plain { Plain(7) }

pub fn unused() -> bool { larger(1, 2) == 2 }

pub fn down(mut n: u32) -> u32 {
    while n > 0 {
        n -= 1;
    }
    n
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_the_larger_one() {
        assert_eq!((larger(1, 2), larger(2, 1)), (2, 2));
    }

    #[test]
    fn the_end_is_reached() {
        assert_eq!(down(3), 0);
        plain();
    }
}
";

/// A repository with one crate that has one room.
fn repository(root: &Path) {
    let source = root.join("fixture/src/room");
    fs::create_dir_all(&source).expect("directories");
    let package = "[package]\nname = \"fixture\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
    fs::write(root.join("Cargo.toml"), "[workspace]\nresolver = \"3\"\nmembers = [\"fixture\"]\n")
        .expect("a workspace");
    fs::write(root.join("fixture/Cargo.toml"), package).expect("a package");
    fs::write(root.join("fixture/src/lib.rs"), "pub mod room;\n").expect("a root");
    fs::write(source.join("mod.rs"), SOURCE).expect("a room");
    git(root, &["init", "--quiet"]).expect("a repository");
    commit(root);
}

/// Commits all there is.
fn commit(root: &Path) {
    let name = ["-c", "user.name=fixture", "-c", "user.email=fixture@example.org"];
    git(root, &["add", "."]).expect("files");
    let commit = ["commit", "--quiet", "--message=Fixture", "--no-gpg-sign"];
    git(root, &[&name[..], &commit[..]].concat()).expect("a commit");
}

fn options(directory: &Path) -> Options {
    Options {
        room: ROOM,
        wide: false,
        targets: Vec::new(),
        shard: (0, 1),
        threads: 2,
        only: None,
        tests: None,
        timeout: 4,
        slowest: 60,
        most: 1,
        directory: Some(directory.to_owned()),
        scratch: None,
        fresh: false,
        again: false,
    }
}

#[test]
fn mutants_of_a_small_crate() {
    let place = tempfile::tempdir().expect("a directory");
    let root = place.path().join("repository");
    repository(&root);
    let directory = place.path().join("mutants/room");
    let options = options(&directory);
    let campaign = Campaign::new(&options, &root).expect("a campaign");
    let outcomes = campaign.run().expect("a run");
    assert_eq!(outcomes.len(), campaign.matrix.count as usize);
    let fate = |what: &str| {
        let found = outcomes.values().find(|outcome| outcome.what == what);
        found.map(|outcome| outcome.fate)
    };
    assert_eq!(fate("replace < with > in larger"), Some(Fate::Noticed));
    assert_eq!(fate("replace < with <= in larger"), Some(Fate::Missed));
    assert_eq!(fate("return Default::default() in plain"), Some(Fate::Unviable));
    assert_eq!(fate("return true in unused"), Some(Fate::Unreached));
    assert_eq!(fate("replace -= with /= in down"), Some(Fate::Timeout));
    let tree = fs::read_to_string(directory.join("tree/fixture/src/room/mod.rs")).expect("a tree");
    assert_eq!(tree.lines().count(), SOURCE.lines().count());

    // Going on: what is known is not tried again, and names stay.
    let file = directory.join("outcomes.jsonl");
    let before = fs::read_to_string(&file).expect("outcomes");
    let rest: Vec<&str> = before.lines().skip(1).collect();
    fs::write(&file, rest.join("\n") + "\n").expect("outcomes");
    let again = Campaign::new(&options, &root).expect("a campaign").run().expect("a run");
    assert_eq!(again.len(), outcomes.len());
    let after = fs::read_to_string(&file).expect("outcomes");
    assert_eq!(after.lines().count(), before.lines().count());

    // Another test: what tests noticed stays, survivors are tried again.
    let more = SOURCE.replace("plain();\n", "plain();\n        assert!(unused());\n");
    fs::write(root.join("fixture/src/room/mod.rs"), &more).expect("a room");
    commit(&root);
    assert!(Campaign::new(&options, &root).is_err(), "older outcomes are not mixed with new ones");
    let options = Options { again: true, ..options };
    let campaign = Campaign::new(&options, &root).expect("a campaign");
    assert_eq!(fs::read_to_string(&file).expect("outcomes"), "", "the file has changed");
    let outcomes = campaign.run().expect("a run");
    let unused = outcomes.values().find(|outcome| outcome.what == "return false in unused");
    assert_eq!(unused.map(|outcome| outcome.fate), Some(Fate::Noticed));
    Campaign::new(&options, &root).expect("a campaign");
    let kept = fs::read_to_string(&file).expect("outcomes");
    let is_noticed = |line: &str| !line.contains("missed") && !line.contains("unreached");
    assert!(kept.lines().all(is_noticed));
    let noticed = outcomes.values().filter(|outcome| !outcome.fate.survives()).count();
    assert_eq!(kept.lines().count(), noticed);
}
