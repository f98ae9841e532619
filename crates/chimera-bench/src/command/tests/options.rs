//! Every option of every subcommand has an effect that shows, or is refused with a reason. The subcommands and their options
//! are those of the command line itself: what is new and has no row here fails.

use chimera::{EngineKind, EngineStats, RecordLayout, VerifyReads};
use chimera_pmem::instrumented::Profile;
use clap::{ArgAction, Command, CommandFactory};

use super::super::benchmark::decide;
use super::*;
use crate::driver::engine::EngineChoice;
use crate::driver::setup::{OrderChoice, Sizing};
use crate::report::chameleon::{Bursts, Ratios, Restart, Written};
use crate::report::{Chameleon, Counters};

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
const OTHERWISE: [(&str, &str, &str, fn(&Setup) -> bool); 2] = [
    ("indexes", "key-size", "--key-size 8", |it| it.key_bytes == 8),
    ("reclaim", "engine", "--engine chameleon --any-size", |it| {
        it.engine == EngineChoice::Store(EngineKind::Chameleon)
    }),
];
/// Says what is so anyway, and is in the way of `--growing`. Where pools grow, or are measured both ways, it is refused.
const POPULATE: &str = "populate";
/// See the tests of plots.
const PLOT: &str = "plot";

#[test]
fn every_common_option_decides_something_or_is_refused() {
    let (mut refused, mut taken) = (0, 0);
    for Leaf { name, options } in leaves() {
        let base = decided(&name).unwrap_or_else(|error| panic!("{name}: {error}"));
        for option in options {
            let otherwise = OTHERWISE.iter().find(|it| (it.0, it.1) == (&name, &option));
            let common = COMMON.iter().find(|it| it.0 == option).copied();
            let Some((_, given, shows)) = otherwise.map(|it| (it.1, it.2, it.3)).or(common) else {
                let is_own = OWN.iter().any(|it| (it.0, it.1) == (&name, &option));
                assert!(is_own || [POPULATE, PLOT].contains(&&*option), "{name}: no row: {option}");
                continue;
            };
            match decided(&format!("{name} {given}")) {
                Ok(setups) => {
                    assert!(!base.iter().any(shows), "{name} decides the same without --{option}");
                    assert!(setups.iter().all(shows), "{name} does not use --{option}");
                    taken += 1;
                }
                Err(BenchError::Arguments(_)) => refused += 1,
                Err(error) => panic!("{name} --{option}: {error}"),
            }
        }
    }
    assert!(refused > 100 && taken > 200, "{refused} refused, {taken} taken");
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

/// An option of one subcommand: a small run with it, and what its report shows, against that of the run without it.
type Own = (&'static str, &'static str, &'static str, fn(&Report, &Report) -> bool);

const OWN: [Own; 40] = [
    ("ycsb", "workload", "--workload b,f", |_, it| it.rows.len() == 2),
    ("ycsb", "distribution", "--distribution uniform", |base, it| counted(base) != counted(it)),
    ("ycsb", "theta", "--theta 0.1", |base, it| counted(base) != counted(it)),
    ("recovery", "sizes", "--sizes 5,6", |_, it| it.records == 6),
    ("recovery", "recovery-threads", "--sizes 7 --recovery-threads 3", |_, it| it.threads == [3]),
    ("memory", "from", "--from 1100 --to 1200", |_, it| {
        it.memory.iter().all(|it| it.samples[0].records == 1100)
    }),
    ("memory", "to", "--from 1000 --to 1500", |base, it| it.records > base.records),
    ("reclaim", "reclaim-percent", "--reclaim-percent 9", |_, it| {
        it.reclamation.iter().all(|it| it.percent == 9)
    }),
    ("reclaim", "reclaim-rate", "--reclaim-rate 3", |_, it| {
        it.reclamation.iter().all(|it| it.bytes_per_second_max == 3 << 20)
    }),
    ("adaption", "pool", "--pool 3", |_, it| it.adaption.iter().all(|it| it.threads == 3)),
    ("beside-scans", "scans-per-second", "--scans-per-second 50", |_, it| {
        it.beside_scans.iter().all(|it| it.scans_per_second == 50)
    }),
    ("beside-scans", "scan-length", "--scan-length 7", |_, it| {
        it.beside_scans.iter().all(|it| it.scan_records == 7)
    }),
    ("beside-scans", "inserts", "--inserts 7", |_, it| {
        it.beside_scans.iter().all(|it| it.inserts_percent == 7)
    }),
    ("beside-scans", "barrier", "--barrier", |_, it| {
        it.beside_scans.iter().all(|it| it.rows.len() == 2)
    }),
    ("chameleon ratios", "shards", "--shards 4", has_other_dram),
    ("chameleon ratios", "memtable-bytes", "--memtable-bytes 256", has_other_dram),
    ("chameleon ratios", "batch-bytes", "--batch-bytes 0", has_no_batches),
    ("chameleon ratios", "sides", "--sides dram-hash", is_of_dram_hash),
    ("chameleon ratios", "exact-puts", "--exact-puts", |base, it| {
        !ratios_of(base).exact_puts && ratios_of(it).exact_puts
    }),
    ("chameleon restart", "shards", "--sizes 80 --after 0 --shards 4", has_other_dram),
    (
        "chameleon restart",
        "memtable-bytes",
        "--sizes 80 --after 0 --memtable-bytes 256",
        has_other_dram,
    ),
    ("chameleon restart", "batch-bytes", "--sizes 80 --after 0 --batch-bytes 0", has_no_batches),
    ("chameleon restart", "sides", "--sizes 80 --after 0 --sides dram-hash", is_of_dram_hash),
    ("chameleon restart", "sizes", "--sizes 80,90 --after 0", |_, it| it.records == 90),
    ("chameleon restart", "after", "--sizes 80 --after 0.01", |_, it| {
        restart_of(it).after_ms == 10.0
    }),
    ("chameleon bursts", "shards", "--rest 0 --shards 4", has_other_dram),
    ("chameleon bursts", "memtable-bytes", "--rest 0 --memtable-bytes 256", has_other_dram),
    ("chameleon bursts", "batch-bytes", "--rest 0 --batch-bytes 0", has_no_batches),
    ("chameleon bursts", "sides", "--rest 0 --sides dram-hash", is_of_dram_hash),
    (
        "chameleon bursts",
        "threshold",
        "--rest 0 --sides chameleon-get-protect --threshold 9000000",
        |_, it| bursts_of(it).threshold.is_some_and(|it| it.asked_ns == 9_000_000),
    ),
    ("chameleon bursts", "bursts", "--rest 0 --bursts 3", |_, it| {
        bursts_of(it).rows[0].puts.operations == 3 * 300
    }),
    ("chameleon bursts", "writers", "--rest 0 --writers 2", |_, it| bursts_of(it).writers == 2),
    ("chameleon bursts", "rest", "--rest 0.01", |_, it| bursts_of(it).rest_ms == 10.0),
    ("chameleon bursts", "window", "--rest 0 --window 7", |_, it| bursts_of(it).window_ms == 7),
    ("chameleon written", "shards", "--value-sizes 64 --put-mib 1 --shards 2", |_, it| {
        written_of(it).amplifications[0].shards == 2
    }),
    (
        "chameleon written",
        "memtable-bytes",
        "--value-sizes 64 --put-mib 1 --memtable-bytes 512",
        |base, it| written_of(it).amplifications[0].keys < written_of(base).amplifications[0].keys,
    ),
    (
        "chameleon written",
        "batch-bytes",
        "--value-sizes 64 --put-mib 1 --batch-bytes 0",
        has_no_batches,
    ),
    (
        "chameleon written",
        "sides",
        "--value-sizes 64 --put-mib 1 --sides dram-hash",
        is_of_dram_hash,
    ),
    ("chameleon written", "value-sizes", "--value-sizes 70 --put-mib 1", |_, it| {
        it.value_bytes == 70
    }),
    ("chameleon written", "put-mib", "--value-sizes 64 --put-mib 2", |base, it| {
        it.records > base.records
    }),
];

/// What each of these runs has, and the run without the option beside that.
const WITHOUT: [(&str, &str, &str); 10] = [
    ("ycsb", "--records 2000 --operations 500 --repetitions 1 --medium anonymous", ""),
    ("recovery", "--repetitions 1", "--sizes 7"),
    ("memory", "", "--from 1000 --to 1200"),
    ("reclaim", "--records 700 --operations 300 --repetitions 1", ""),
    ("adaption", "--records 700 --operations 300 --repetitions 1", ""),
    ("beside-scans", "--records 700 --operations 300 --repetitions 1", ""),
    ("chameleon ratios", "--records 700 --operations 300 --repetitions 1", "--sides chameleon"),
    ("chameleon restart", "--repetitions 1", "--sizes 80 --sides chameleon --after 0"),
    (
        "chameleon bursts",
        "--records 700 --operations 300 --repetitions 1",
        "--sides chameleon-get-protect --rest 0",
    ),
    ("chameleon written", "", "--value-sizes 64 --put-mib 1 --sides chameleon"),
];

#[test]
fn options_of_one_subcommand_show_in_its_report() {
    let all = leaves();
    for (name, always, without) in WITHOUT {
        let run = |more: &str| {
            let line = format!("{name} {always} {more}");
            run_line(&line).unwrap_or_else(|error| panic!("{line}: {error}"))
        };
        let base = run(without);
        for (_, option, line, shows) in OWN.iter().filter(|it| it.0 == name) {
            let has_sides = name.starts_with("chameleon") && !line.contains("--sides");
            let sides = if has_sides { "--sides chameleon" } else { "" };
            assert!(!shows(&base, &base), "{name} without --{option}");
            assert!(shows(&base, &run(&format!("{line} {sides}"))), "{name} {line}: --{option}");
        }
    }
    for (name, option, ..) in OWN {
        let is_there =
            |leaf: &Leaf| leaf.name == name && leaf.options.iter().any(|it| it == option);
        assert!(all.iter().any(is_there), "{name} has no --{option}");
        assert!(WITHOUT.iter().any(|it| it.0 == name), "{name} is not run");
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

/// All engines and baselines. `teaching` is in no build for users.
fn engines() -> Vec<EngineChoice> {
    let stores = EngineKind::ALL.iter().filter(|kind| kind.to_string() != "teaching");
    let baselines = [EngineChoice::HikvWal, EngineChoice::DramMap];
    stores.copied().map(EngineChoice::Store).chain(baselines).collect()
}

#[test]
fn every_option_of_stores_reaches_every_engine_or_is_refused() {
    let of_stores = [
        "durability",
        "profile",
        "growing",
        "publish-metrics",
        "latency-sampling",
        "verify-reads",
        "order",
        "trees",
        "no-counters",
        "keep",
        "medium",
    ];
    for engine in engines() {
        for option in of_stores {
            let row = COMMON.iter().find(|it| it.0 == option).expect("there is a row");
            let outcome = decided(&format!("core --engine {engine} --any-size {}", row.1));
            let is_refused = engine == EngineChoice::DramMap && option != "growing";
            match outcome {
                Ok(setups) => assert!(!is_refused && setups.iter().all(row.2), "{engine} {option}"),
                Err(error) => assert!(is_refused, "{engine} --{option}: {error}"),
            }
        }
    }
}

#[test]
fn the_published_layout_reaches_every_engine_that_has_one_and_is_refused_elsewhere() {
    let mut published = Vec::new();
    for engine in engines() {
        for sizes in ["", "--any-size"] {
            let line = format!("core --engine {engine} {sizes} --layout published");
            let setup = match decided(&line) {
                Ok(setups) => Setup { records: 10, ..setups[0].in_memory() },
                Err(error) => {
                    assert!(error.to_string().contains("--layout"), "{line}: {error}");
                    continue;
                }
            };
            // HiKV has stores for records of any size only.
            let created =
                <Db<Hardware> as Store>::create(&setup, Path::new(""), &demand(&setup, &[], 1));
            let Ok(db) = created else { continue };
            let layout = match db.stats().details {
                EngineStats::Viper(viper) => viper.layout,
                EngineStats::Hikv(hikv) => hikv.layout,
                other => panic!("{engine} has no layout: {other:?}"),
            };
            assert_eq!(layout, RecordLayout::Published, "{line}");
            published.push(format!("{engine} {sizes}"));
        }
    }
    assert_eq!(published, ["viper ", "hikv --any-size", "hikv-wal --any-size"]);
}

#[test]
fn the_published_layout_takes_less_space() {
    for line in ["core --engine hikv --any-size", "core --engine viper"] {
        let run = |layout: &str| {
            let sizes = "--key-size 16 --value-size 32 --medium anonymous --no-counters";
            let line = format!("{line} {sizes} --records 20000 --operations 10 --repetitions 1");
            run_line(&format!("{line} --layout {layout}")).expect("runs")
        };
        let (checked, published) = (run("checked"), run("published"));
        assert!(published.space_amplification < 0.9 * checked.space_amplification, "{line}");
        assert_eq!((&*checked.layout, &*published.layout), ("checked", "published"));
    }
}

fn counted(report: &Report) -> Vec<Option<Counters>> {
    report.rows.iter().map(|row| row.counters).collect()
}

fn has_other_dram(base: &Report, it: &Report) -> bool {
    (base.dram_bytes_per_key - it.dram_bytes_per_key).abs() > 0.1
}

fn has_no_batches(_: &Report, it: &Report) -> bool {
    it.durability != "batched"
}

fn is_of_dram_hash(_: &Report, it: &Report) -> bool {
    it.stores.iter().all(|store| store.facts.engine == "dram-hash")
}

fn ratios_of(report: &Report) -> &Ratios {
    match &report.chameleon {
        Some(Chameleon::Ratios(ratios)) => ratios,
        other => panic!("{other:?}"),
    }
}

fn restart_of(report: &Report) -> &Restart {
    match &report.chameleon {
        Some(Chameleon::Restart(restart)) => restart,
        other => panic!("{other:?}"),
    }
}

fn bursts_of(report: &Report) -> &Bursts {
    match &report.chameleon {
        Some(Chameleon::Bursts(bursts)) => bursts,
        other => panic!("{other:?}"),
    }
}

fn written_of(report: &Report) -> &Written {
    match &report.chameleon {
        Some(Chameleon::Written(written)) => written,
        other => panic!("{other:?}"),
    }
}
