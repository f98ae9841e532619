//! Every option of every subcommand has an effect that shows, or is refused with a reason. Subcommands and options are those of
//! the help: what is new and has no row here fails.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// A run of the command in a directory that has the case `case.json`.
struct Run {
    code: i32,
    out: String,
    err: String,
}

impl Run {
    fn of(directory: &Path, line: &str) -> Self {
        let output = Command::new(env!("CARGO_BIN_EXE_chimera-crashlab"))
            .args(line.split_whitespace())
            .current_dir(directory)
            // Without it nothing that `dax-guest` needs is found.
            .env("PATH", directory)
            .output()
            .expect("it runs");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        let code = output.status.code().expect("it ends by itself");
        Self { code, out: text(output.stdout), err: text(output.stderr) }
    }

    fn figure(&self, name: &str) -> Value {
        let report: Value = serde_json::from_str(&self.out).unwrap_or_default();
        report[name].clone()
    }
}

/// A small run of each subcommand.
const SMALL: [(&str, &str); 8] = [
    ("explore", "explore --json --states 100 --epochs 2 --histories 0 --plain-files 0"),
    ("mutate", "mutate --json --states 10 --histories 1 --only pool.block_ready"),
    ("plant", "plant --json --states 10"),
    ("primitives", "primitives --json --states 10 --only nvtree"),
    ("replay", "replay --json case.json"),
    ("kill9", "kill9 --json --cycles 1 --medium file"),
    ("damage", "damage --json --cases 10"),
    ("dax-guest", "dax-guest --json"),
];

fn small(command: &str) -> &'static str {
    SMALL.iter().find(|it| it.0 == command).expect("there is a row").1
}

/// A subcommand and an option, what is given in place of the small run or beside it, and what shows that it is used. Not so of
/// the small run, with which it is compared.
type Row = (&'static str, &'static str, &'static str, fn(&Run, &Run) -> bool);

const ROWS: [Row; 29] = [
    ("explore", "engine", "+ --engine hikv", |it, _| it.figure("engine") == "hikv"),
    ("explore", "seed", "+ --seed 7", |it, _| it.figure("seed") == 7),
    (
        "explore",
        "states",
        "explore --json --states 30000 --epochs 2 --histories 0 --plain-files 0",
        |it, base| count(it, "distinct_states") > count(base, "distinct_states"),
    ),
    (
        "explore",
        "epochs",
        "explore --json --states 100 --epochs 300 --histories 0 --plain-files 0",
        |it, base| count(it, "epochs") > count(base, "epochs"),
    ),
    (
        "explore",
        "histories",
        "explore --json --states 100 --epochs 2 --histories 3 --plain-files 0",
        |it, _| it.figure("histories") == 3,
    ),
    (
        "explore",
        "plain-files",
        "explore --json --states 100 --epochs 2 --histories 0 --plain-files 1",
        |it, base| count(it, "plain_file_states") > count(base, "plain_file_states"),
    ),
    (
        "mutate",
        "engine",
        "mutate --json --states 10 --histories 1 --only none --engine hikv",
        |it, _| it.figure("engine") == "hikv",
    ),
    ("mutate", "seed", "+ --seed 7", |it, _| it.figure("seed") == 7),
    ("mutate", "only", "mutate --json --states 10 --histories 1 --only none", |it, _| {
        it.figure("mutants") == 0
    }),
    ("mutate", "short", "+ --short", |it, _| it.figure("short") == true),
    ("plant", "engine", "+ --engine hikv", |it, _| refuses(it, "engine")),
    ("plant", "seed", "+ --seed 7", |it, _| it.figure("seed") == 7),
    ("plant", "states", "plant --json --states 20000", |it, base| {
        count(it, "sound_states") > count(base, "sound_states")
    }),
    ("primitives", "engine", "+ --engine hikv", |it, _| refuses(it, "engine")),
    ("primitives", "seed", "+ --seed 7", |it, _| it.figure("seed") == 7),
    ("primitives", "states", "primitives --json --states 20000 --only nvtree", |it, base| {
        count(it, "states") > count(base, "states")
    }),
    ("primitives", "mutate", "+ --mutate", |it, _| it.figure("mutants").is_u64()),
    ("primitives", "only", "primitives --json --states 10 --only fptree", |it, _| {
        it.figure("structures") == 2
    }),
    ("replay", "engine", "+ --engine hikv", |it, _| refuses(it, "engine")),
    ("replay", "seed", "+ --seed 7", |it, _| refuses(it, "seed")),
    ("kill9", "engine", "+ --engine hikv", |it, _| it.figure("engine") == "hikv"),
    ("kill9", "seed", "+ --seed 7", |it, _| it.figure("seed") == 7),
    ("kill9", "cycles", "kill9 --json --cycles 2 --medium file", |it, _| it.figure("cycles") == 2),
    ("kill9", "medium", "kill9 --json --cycles 1 --medium tmpfs --directory .", |it, _| {
        refuses(it, "directory")
    }),
    ("kill9", "directory", "+ --directory case.json", |it, _| {
        it.code == 2 && it.err.contains("File exists")
    }),
    ("damage", "engine", "+ --engine hikv", |it, _| it.figure("engine") == "hikv"),
    ("damage", "seed", "+ --seed 7", |it, _| it.figure("seed") == 7),
    ("damage", "cases", "damage --json --cases 3", |it, _| it.figure("cases") == 3),
    ("damage", "case", "damage --json --case 3", |it, _| it.figure("cases") == 1),
];
/// What cannot show in a small run, and why.
const ELSEWHERE: [(&str, &str, &str); 13] = [
    ("explore", "threads", "what is found does not depend on how work is divided"),
    ("explore", "save", "written when something is found"),
    ("mutate", "threads", "what is found does not depend on how work is divided"),
    ("mutate", "states", "how much is tried of each mutant"),
    ("mutate", "histories", "how much is tried of each mutant"),
    ("mutate", "save", "written when something is found"),
    ("plant", "threads", "what is found does not depend on how work is divided"),
    ("damage", "threads", "what is found does not depend on how work is divided"),
    ("damage", "skip", "see the test below"),
    ("dax-guest", "engine", "needs QEMU"),
    ("dax-guest", "seed", "needs QEMU"),
    ("dax-guest", "guest-directory", "see the tests of it"),
    ("dax-guest", "install", "fetches packages"),
];
/// Of `dax-guest`, which runs nothing where there is no QEMU.
const NEED_QEMU: [&str; 5] = ["cuts", "exact", "no-variants", "guest-binary", "chimera-binary"];

fn count(run: &Run, figure: &str) -> u64 {
    run.figure(figure).as_u64().expect("a number")
}

fn refuses(run: &Run, option: &str) -> bool {
    run.code == 2 && run.err.contains(&format!("--{option} has no effect here: "))
}

fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let first = cases.read_dir().expect("kept cases").map(|entry| entry.expect("an entry").path());
    let case = first.filter(|path| path.extension().is_some_and(|it| it == "json")).min();
    std::fs::copy(case.expect("there is one"), directory.path().join("case.json")).expect("copied");
    directory
}

fn help(line: &str) -> String {
    Run::of(Path::new("/"), line).out
}

#[test]
fn every_option_of_every_subcommand_has_a_row() {
    let text = help("--help");
    let list = text.split_once("\nCommands:\n").expect("a list of commands").1;
    let list = list.split_once("\n\n").expect("something after it").0;
    let of_names = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: BTreeSet<_> = of_names.filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, SMALL.iter().map(|it| it.0).chain(["help"]).collect());
    for (command, _) in SMALL {
        for line in help(&format!("{command} --help")).lines().map(str::trim_start) {
            let Some((_, rest)) = line.split_once("--").filter(|_| line.starts_with('-')) else {
                continue;
            };
            let option = rest.split([' ', '[', ',', '.']).next().expect("a name");
            let is_shown = ROWS.iter().any(|it| (it.0, it.1) == (command, option));
            let is_elsewhere = ELSEWHERE.iter().any(|it| (it.0, it.1) == (command, option))
                || command == "dax-guest" && NEED_QEMU.contains(&option);
            let is_of_all = ["json", "help", "version"].contains(&option);
            assert!(is_shown || is_elsewhere || is_of_all, "{command}: no row for --{option}");
        }
    }
}

#[test]
fn options_show_or_are_refused() {
    let directory = directory();
    for (command, line) in SMALL {
        let base = Run::of(directory.path(), line);
        assert!(base.out.starts_with('{'), "{line}: {}", base.err);
        let text = Run::of(directory.path(), &line.replace("--json ", "").replace(" --json", ""));
        assert!(!text.out.starts_with('{'), "{line} without --json: {}", text.out);
        for (_, option, given, shows) in ROWS.iter().filter(|it| it.0 == command) {
            let line = given
                .strip_prefix('+')
                .map_or((*given).to_owned(), |more| format!("{}{more}", small(command)));
            let run = Run::of(directory.path(), &line);
            assert!(shows(&run, &base), "{command} --{option}: {}{}", run.out, run.err);
            assert!(!shows(&base, &base), "{command} without --{option}: {}", base.out);
        }
    }
}

#[test]
fn options_that_exclude_each_other_are_refused() {
    let directory = directory();
    for (line, part) in [
        ("damage --case 3 --cases 5", "--cases"),
        ("damage --case 3 --threads 1", "--threads"),
        ("damage --cases 3 --skip none", "has no check `none`"),
        ("explore --threads 0", "--threads"),
        ("dax-guest --guest-binary here", "--chimera-binary"),
    ] {
        let run = Run::of(directory.path(), line);
        assert!(run.code == 2 && run.err.contains(part), "{line}: {}", run.err);
    }
}
