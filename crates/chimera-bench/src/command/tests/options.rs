//! Every option of every subcommand has an effect that shows, or is refused with a reason. The subcommands and their options
//! are those of the command line itself: what is new and has no row here fails.

mod engines;
mod own;

use chimera::baselines::RecordLayout;
use chimera::{EngineKind, VerifyReads};
use chimera_pmem::instrumented::Profile;
use clap::{ArgAction, Command, CommandFactory};

use super::super::benchmark::decide;
use super::*;
use crate::driver::engine::EngineChoice;
use crate::driver::setup::{OrderChoice, Sizing};

/// A subcommand that measures something.
pub(super) struct Leaf {
    /// As on the command line.
    pub(super) name: String,
    options: Vec<String>,
}

/// All of them.
pub(super) fn leaves() -> Vec<Leaf> {
    let mut all = Vec::new();
    add_leaves(&Line::command(), "", &mut all);
    // The model alone, without a store, has tests of its own.
    all.retain(|leaf| leaf.name != "device");
    all
}

fn add_leaves(command: &Command, before: &str, all: &mut Vec<Leaf>) {
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        let name = format!("{before} {}", inner.get_name()).trim().to_owned();
        if inner.has_subcommands() {
            add_leaves(inner, &name, all);
            continue;
        }
        let is_question =
            |action: &ArgAction| matches!(action, ArgAction::Help | ArgAction::Version);
        let options = inner.get_arguments().filter(|it| !is_question(it.get_action()));
        let options = options.map(|it| it.get_long().expect("every argument is an option"));
        all.push(Leaf { options: options.map(str::to_owned).collect(), name });
    }
}

/// What is to be measured.
pub(super) fn decided(line: &str) -> Result<Vec<Setup>> {
    match parse(line) {
        BenchCommand::Core(arguments) => decide(&arguments),
        BenchCommand::Ycsb(arguments) => decide(&arguments),
        BenchCommand::Floor(arguments) => decide(&arguments),
        BenchCommand::Growth(arguments) => decide(&arguments),
        BenchCommand::Recovery(arguments) => decide(&arguments),
        BenchCommand::Memory(arguments) => decide(&arguments),
        BenchCommand::Reclaim(arguments) => decide(&arguments),
        BenchCommand::Variants(arguments) => decide(&arguments),
        BenchCommand::Adaption(arguments) => decide(&arguments),
        BenchCommand::BesideScans(arguments) => decide(&arguments),
        BenchCommand::Indexes(arguments) => decide(&arguments),
        BenchCommand::Device(_) => panic!("it has no store"),
        BenchCommand::Chameleon(command) => match *command {
            ChameleonCommand::Ratios(arguments) => decide(&arguments),
            ChameleonCommand::Restart(arguments) => decide(&arguments),
            ChameleonCommand::Bursts(arguments) => decide(&arguments),
            ChameleonCommand::Written(arguments) => decide(&arguments),
        },
    }
}

/// An option that all subcommands have: how it is given, and what it decides. Not so without it.
type Common = (&'static str, &'static str, fn(&Setup) -> bool);

const COMMON: [Common; 26] = [
    ("engine", "--engine chameleon", |it| it.engine == EngineChoice::Store(EngineKind::Chameleon)),
    ("path", "--path here", |it| it.path == Path::new("here")),
    ("overwrite", "--overwrite", |it| it.overwrite),
    ("keep", "--keep", |it| it.keep),
    ("medium", "--medium anonymous", Setup::is_anonymous),
    ("durability", "--durability process", |it| it.durability == chimera::Durability::Process),
    ("profile", "--profile cxl-nvcmm", |it| it.profile == Profile::CxlNvcmm),
    ("layout", "--layout published", |it| it.layout == RecordLayout::Published),
    ("growing", "--growing", |it| it.growing),
    ("publish-metrics", "--publish-metrics 7", |it| it.publish_metrics.is_some()),
    ("latency-sampling", "--latency-sampling 7", |it| it.latency_sampling == Some(7)),
    ("verify-reads", "--verify-reads never", |it| it.verify_reads == VerifyReads::Never),
    ("order", "--order synchronous", |it| it.order == OrderChoice::Synchronous),
    ("trees", "--order partitioned --trees 3", |it| it.trees == 3),
    ("records", "--records 700", |it| it.records == 700),
    ("operations", "--operations 300", |it| it.operations == 300),
    ("duration", "--duration 1", |it| it.duration.is_some()),
    ("key-size", "--key-size 12", |it| it.key_bytes == 12),
    ("value-size", "--value-size 40", |it| it.value_bytes == 40),
    ("any-size", "--any-size", |it| it.sizing == Sizing::Any),
    ("mixed-sizes", "--mixed-sizes", |it| it.sizing == Sizing::Mixed),
    ("threads", "--threads 2", |it| it.threads == [2]),
    ("seed", "--seed 7", |it| it.seed == 7),
    ("repetitions", "--repetitions 2", |it| it.repetitions == 2),
    ("quick", "--quick", |it| it.records < 900_000),
    ("no-counters", "--no-counters", |it| !it.counters),
];
/// What is otherwise for one subcommand.
const OTHERWISE: [(&str, Common); 6] = [
    ("indexes", ("key-size", "--key-size 8", |it| it.key_bytes == 8)),
    (
        "reclaim",
        ("engine", "--engine chameleon --any-size", |it| {
            it.engine == EngineChoice::Store(EngineKind::Chameleon)
        }),
    ),
    ("memory", ("mixed-sizes", MIXED, |it| it.sizing == Sizing::Mixed)),
    ("chameleon ratios", ("mixed-sizes", MIXED, |it| it.sizing == Sizing::Mixed)),
    ("chameleon restart", ("mixed-sizes", MIXED, |it| it.sizing == Sizing::Mixed)),
    ("chameleon bursts", ("mixed-sizes", MIXED, |it| it.sizing == Sizing::Mixed)),
];
/// Values of 8 bytes, the default there, cannot have several sizes.
const MIXED: &str = "--mixed-sizes --value-size 40";
/// What each subcommand has no use for: what it measures does not depend on it. All else it uses.
const REFUSED: [(&str, &str); 15] = [
    ("core", ""),
    ("ycsb", ""),
    ("floor", "keep duration mixed-sizes"),
    ("growth", "keep medium growing verify-reads operations duration"),
    ("recovery", "keep medium verify-reads operations duration threads no-counters"),
    ("memory", "keep growing verify-reads records operations duration repetitions no-counters"),
    ("reclaim", "keep duration no-counters"),
    ("variants", "engine keep"),
    ("adaption", "keep order trees duration threads no-counters"),
    ("beside-scans", "keep verify-reads duration threads no-counters"),
    ("indexes", "engine keep duration value-size any-size mixed-sizes threads no-counters"),
    ("chameleon ratios", "engine layout verify-reads order trees duration any-size no-counters"),
    (
        "chameleon restart",
        "engine medium layout verify-reads order trees operations duration any-size threads no-counters",
    ),
    (
        "chameleon bursts",
        "engine layout verify-reads order trees duration any-size threads no-counters",
    ),
    (
        "chameleon written",
        "engine path overwrite keep medium durability profile layout growing publish-metrics \
         latency-sampling verify-reads order trees records operations duration key-size value-size \
         any-size mixed-sizes threads repetitions no-counters",
    ),
];
/// Refused for their values, which other values of the same options are not.
const VALUES: [(&str, &str); 4] = [
    ("growth", "medium"),
    ("recovery", "medium"),
    ("chameleon restart", "medium"),
    ("variants", "engine"),
];
/// Says what is so anyway, and is in the way of `--growing`. Where pools grow, or are measured both ways, it is refused.
const POPULATE: &str = "populate";
/// See the tests of plots.
const PLOT: &str = "plot";

#[test]
fn every_common_option_decides_something_or_is_refused() {
    for Leaf { name, options } in leaves() {
        let mut refused = Vec::new();
        let base = decided(&name).unwrap_or_else(|error| panic!("{name}: {error}"));
        for option in options {
            let otherwise = OTHERWISE.iter().find(|it| (it.0, it.1.0) == (&name, &option));
            let common = COMMON.iter().find(|it| it.0 == option).copied();
            let Some((_, given, shows)) = otherwise.map(|it| it.1).or(common) else {
                let is_own = own::has_row(&name, &option);
                assert!(is_own || [POPULATE, PLOT].contains(&&*option), "{name}: no row: {option}");
                continue;
            };
            match decided(&format!("{name} {given}")) {
                Ok(setups) => {
                    assert!(!base.iter().any(shows), "{name} decides the same without --{option}");
                    assert!(setups.iter().all(shows), "{name} does not use --{option}");
                }
                Err(BenchError::Arguments(why)) => {
                    let mut words = given.split_whitespace();
                    let is_said =
                        words.any(|word| why.contains(&format!("{word} has no effect here: ")));
                    assert!(is_said || VALUES.contains(&(&name, &option)), "{name}: {why}");
                    refused.push(option);
                }
                Err(error) => panic!("{name} --{option}: {error}"),
            }
        }
        let expected = REFUSED.iter().find(|it| it.0 == name);
        let expected = expected.unwrap_or_else(|| panic!("{name} has no row"));
        assert_eq!(refused.join(" "), expected.1, "{name}");
    }
}

#[test]
fn what_is_refused_is_refused_before_anything_is_made() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("data");
    for Leaf { name, options } in leaves() {
        for (option, given, _) in COMMON.iter().filter(|it| options.iter().any(|one| one == it.0)) {
            let line = format!("{name} {given}");
            let has_path = ["path", "medium"].contains(option) || name == "chameleon written";
            if decided(&line).is_ok() || has_path {
                continue;
            }
            let error = run_at(&line, &path).expect_err("is refused");
            assert!(matches!(error, BenchError::Arguments(_)), "{line}: {error}");
            assert!(!path.exists(), "{line}: something was made");
        }
    }
    for command in ["growth", "memory", "chameleon written"] {
        let error = execute(&parse(&format!("{command} --populate"))).expect_err("is refused");
        assert!(error.to_string().contains("--populate has no effect"), "{command}: {error}");
    }
}

/// Whether a report has what a line says.
type Reported = fn(&Report) -> bool;

/// What a report shows of an option: that it was used, and not only decided.
const REPORTED: [(&str, Reported); 15] = [
    ("engine", |it| it.engine.starts_with("chameleon")),
    ("medium", |it| it.medium == "anonymous"),
    ("durability", |it| it.durability == "process"),
    ("profile", |it| it.modelled && it.profile == "cxl-nvcmm"),
    ("layout", |it| it.layout == "published"),
    ("verify-reads", |it| it.stores.iter().any(|store| store.facts.engine.contains("-never"))),
    ("order", |it| it.stores.iter().any(|store| store.facts.engine.contains("-ordered-sync"))),
    ("records", |it| it.records == 700 || it.command == "growth" && it.operations == 700),
    ("operations", |it| it.operations == 300),
    ("key-size", |it| it.key_bytes == 12),
    ("value-size", |it| it.value_bytes == 40),
    ("mixed-sizes", |it| it.sizes == "mixed"),
    ("threads", |it| it.threads == [2]),
    ("seed", |it| it.seed == 7),
    ("no-counters", |it| it.rows.iter().all(|row| row.counters.is_none())),
];

const EVERYTHING: &str = "--engine chameleon --any-size --durability process --profile cxl-nvcmm \
                          --verify-reads never --order synchronous --records 700 --operations 300 \
                          --key-size 12 --value-size 40 --threads 2 --repetitions 1 --seed 7";
const PUBLISHED: &str = "--layout published --no-counters --medium anonymous --repetitions 1 \
                         --records 700 --operations 300";

/// A small run of each subcommand, or several.
const RUNS: [(&str, &str); 18] = [
    ("core", EVERYTHING),
    ("core", PUBLISHED),
    ("ycsb", EVERYTHING),
    ("ycsb", PUBLISHED),
    ("floor", EVERYTHING),
    ("floor", PUBLISHED),
    (
        "growth",
        "--engine chameleon --any-size --records 700 --key-size 12 --threads 2 --repetitions 1",
    ),
    ("recovery", "--engine chameleon --any-size --records 700 --key-size 12 --repetitions 1"),
    ("memory", "--engine chameleon --any-size --from 700 --to 701 --key-size 12 --threads 2"),
    ("reclaim", "--mixed-sizes --threads 2 --records 700 --operations 300 --repetitions 1"),
    ("variants", "--no-counters --layout published --threads 2 --records 700 --repetitions 1"),
    (
        "adaption",
        "--engine chameleon --any-size --verify-reads never --records 700 --operations 300 --repetitions 1",
    ),
    (
        "beside-scans",
        "--mixed-sizes --order synchronous --records 700 --operations 300 --repetitions 1",
    ),
    (
        "indexes",
        "--order synchronous --layout published --records 700 --operations 300 --repetitions 1",
    ),
    (
        "chameleon ratios",
        "--mixed-sizes --key-size 12 --value-size 40 --threads 2 --records 700 --operations 300 \
         --repetitions 1 --sides chameleon",
    ),
    (
        "chameleon restart",
        "--mixed-sizes --key-size 12 --value-size 40 --records 700 --repetitions 1 --sides chameleon --after 0",
    ),
    (
        "chameleon bursts",
        "--profile cxl-nvcmm --records 700 --operations 300 --repetitions 1 --sides chameleon --rest 0",
    ),
    (
        "chameleon written",
        "--seed 7 --value-sizes 64 --put-mib 1 --memtable-bytes 256 --sides pmem-hash",
    ),
];

#[test]
fn what_is_decided_is_measured() {
    let names: BTreeSet<_> = leaves().into_iter().map(|leaf| leaf.name).collect();
    let run: BTreeSet<_> = RUNS.iter().map(|it| it.0.to_owned()).collect();
    assert_eq!(names, run, "a subcommand has no row here");
    for (name, line) in RUNS {
        let report = run_line(&format!("{name} {line}"));
        let report = report.unwrap_or_else(|error| panic!("{name} {line}: {error}"));
        let given = line.split_whitespace().filter_map(|word| word.strip_prefix("--"));
        for option in given {
            if let Some((_, shows)) = REPORTED.iter().find(|it| it.0 == option) {
                assert!(shows(&report), "{name} {line}: --{option}: {report:?}");
            }
        }
    }
}

#[test]
fn options_that_depend_on_others_are_refused_where_these_are_missing() {
    for (line, option) in [
        ("ycsb --workload load --operations 5", "operations"),
        ("ycsb --workload load --distribution latest", "distribution"),
        ("ycsb --workload a --distribution uniform --theta 0.5", "theta"),
        ("recovery --records 5 --sizes 5", "records"),
        ("beside-scans --order none", "order"),
        ("beside-scans --order synchronous --barrier", "barrier"),
        ("indexes --order none", "order"),
        ("core --trees 3", "trees"),
        ("core --order asynchronous --trees 3", "trees"),
        ("core --layout published --verify-reads never", "verify-reads"),
        ("core --medium anonymous --growing", "growing"),
        ("core --medium anonymous --keep", "keep"),
        ("core --medium anonymous --overwrite", "overwrite"),
        ("core --medium anonymous --path here", "path"),
        ("core --medium anonymous --publish-metrics", "publish-metrics"),
        ("chameleon ratios --sides pmem-hash --shards 2", "shards"),
        ("chameleon ratios --sides pmem-hash --memtable-bytes 256", "memtable-bytes"),
        ("chameleon ratios --sides pmem-hash --batch-bytes 0", "batch-bytes"),
        ("chameleon restart --sides dram-hash --shards 2", "shards"),
        ("chameleon restart --sizes 5 --records 5", "records"),
        ("chameleon bursts --sides dram-hash --memtable-bytes 256", "memtable-bytes"),
        ("chameleon bursts --sides chameleon --threshold 5", "threshold"),
        ("chameleon written --sides pmem-hash --batch-bytes 0", "batch-bytes"),
    ] {
        let error = decided(line).expect_err(line).to_string();
        assert!(error.contains(&format!("--{option} has no effect here: ")), "{line}: {error}");
    }
    for (line, part) in [
        ("reclaim --engine hikv --any-size", "`hikv` moves no records"),
        ("reclaim --engine dram-hash --any-size", "`dram-hash` moves no records"),
        ("variants --engine hikv --any-size", "not those of `hikv`"),
        ("growth --medium anonymous", "memory without files"),
        ("growth --threads 1,2", "one --threads"),
        ("memory --threads 1,2", "one --threads"),
    ] {
        let error = decided(line).expect_err(line).to_string();
        assert!(error.contains(part), "{line}: {error}");
    }
}
