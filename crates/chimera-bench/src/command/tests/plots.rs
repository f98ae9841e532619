//! Every subcommand draws what it found, and says before it begins where it cannot.

use super::*;

/// Each subcommand with the caption of its own figure, if it has one.
const COMMANDS: [(&str, &str); 15] = [
    ("core --records 300 --operations 100 --repetitions 1", "M operations/s"),
    ("ycsb --records 300 --operations 100 --repetitions 1 --workload a", "M operations/s"),
    ("floor --records 300 --operations 100 --repetitions 1", "latency by percentile"),
    ("growth --records 300 --repetitions 1", "M operations/s"),
    ("recovery --sizes 300 --repetitions 1", "recovery, ms by M records"),
    ("memory --from 1000 --to 1000", "DRAM bytes per key by M records"),
    ("reclaim --records 300 --operations 100 --repetitions 1", "M operations/s"),
    ("variants --records 300 --operations 100 --repetitions 1", "M operations/s"),
    ("adaption --records 300 --operations 100 --repetitions 1", "gets for each insert"),
    ("beside-scans --records 300 --operations 100 --repetitions 1", "M operations/s"),
    ("indexes --records 300 --operations 100 --repetitions 1", "M operations/s"),
    ("chameleon ratios --records 300 --repetitions 1 --sides chameleon", "latency by percentile"),
    (
        "chameleon restart --sizes 300 --repetitions 1 --sides chameleon",
        "first answer after opening",
    ),
    (
        "chameleon bursts --records 300 --rest 0 --window 1 --repetitions 1 --sides chameleon",
        "99th percentile of gets",
    ),
    (
        "chameleon written --memtable-bytes 256 --value-sizes 64 --put-mib 1",
        "bytes written to media",
    ),
];
/// The colour of the first line, bar or dot of a figure. Nothing else has it.
const FIRST_COLOUR: &str = "#E6194B";

#[test]
fn every_subcommand_draws_what_it_found() {
    let names: BTreeSet<_> = options::leaves().into_iter().map(|leaf| leaf.name).collect();
    let drawn: BTreeSet<_> = COMMANDS
        .iter()
        .map(|(line, _)| line.split(" --").next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(names, drawn, "a subcommand has no row here");
    let directory = tempfile::tempdir().expect("a directory");
    let figure = directory.path().join("figure.svg");
    for (line, caption) in COMMANDS {
        run_line(&format!("{line} --plot {}", figure.display()))
            .unwrap_or_else(|error| panic!("{line}: {error}"));
        let drawn = std::fs::read_to_string(&figure).expect("is there");
        assert!(drawn.contains(caption), "{line}: {drawn}");
        assert!(drawn.contains(FIRST_COLOUR), "{line} draws nothing");
    }
}

#[test]
fn a_figure_that_cannot_be_written_is_said_before_anything_is_measured() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("data");
    for (line, _) in COMMANDS {
        let line = format!("{line} --plot {}/none/figure.svg", directory.path().display());
        let error = run_at(&line, &path).expect_err("there is no such directory");
        assert!(matches!(error, BenchError::Plot { .. }), "{line}: {error}");
        assert!(!path.exists(), "{line}: something was made");
    }
    let old = directory.path().join("old.svg");
    std::fs::write(&old, "old").expect("written");
    for figure in [&old, &directory.path().join("new.svg")] {
        plot::check(figure).expect("can be written");
    }
    assert_eq!(std::fs::read_to_string(&old).expect("is there"), "old");
    assert_eq!(directory.path().read_dir().expect("lists").count(), 1, "nothing is left");
}
