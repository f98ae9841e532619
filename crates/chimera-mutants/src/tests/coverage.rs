use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use crate::build::Binary;
use crate::coverage::{Test, measure};
use crate::workers::Workers;

/// Two tests, of which `slow` does not end before there is a file `go`.
const SCRIPT: &str = r#"#!/bin/sh
case "$1" in
--list) printf 'fast: test\nslow: test\n' ;;
*)
    echo "test $2 ..."
    [ "$2" = fast ] || [ -e go ] || sleep 600
    echo 7 >> "$CHIMERA_MUTANTS_REACHED"
    echo "test $2 ... ok" ;;
esac
"#;

#[test]
fn a_slow_test_is_cut_and_is_measured_when_there_is_more_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = directory.path().to_owned();
    let script = home.join("script");
    fs::write(&script, SCRIPT).expect("a script");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("a script");
    let binary =
        Binary { name: "script".into(), path: script, home: home.clone(), takes_many: true };
    let workers = Workers { threads: 2, scratch: home.join("scratch") };
    let measured = |seconds| {
        let path = home.join("tests.json");
        let slowest = Duration::from_secs(seconds);
        let mut tests =
            measure(std::slice::from_ref(&binary), &path, &workers, slowest).expect("tests");
        tests.sort_by(|a, b| a.name.cmp(&b.name));
        let of = |test: Test| (test.name, test.passes, test.is_cut, test.reaches);
        tests.into_iter().map(of).collect::<Vec<_>>()
    };
    let fast = ("fast".to_owned(), true, false, vec![7]);
    let cut = ("slow".to_owned(), false, true, vec![]);
    assert_eq!(measured(4), [fast.clone(), cut.clone()]);
    fs::write(home.join("go"), "").expect("a file");
    assert_eq!(measured(4), [fast.clone(), cut], "what is known is not measured again");
    assert_eq!(measured(60), [fast, ("slow".to_owned(), true, false, vec![7])]);
}
