//! Every option of every command has an effect that shows, or is refused with a reason. Commands and options are those of the
//! help: what is new and has no row here fails. Those of `bench` are in its own crate.

mod common;

use std::collections::BTreeSet;
use std::fs;

use chimera::{Db, Options};
use common::{Place, Run, close};

/// What is there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// No store.
    Nothing,
    /// A store with 3 records of 16 + 200 bytes, an export of it, and a batch for it.
    Filled,
    /// Many records, of which most were deleted.
    Thinned,
    /// A store of records of any size, of which one is damaged.
    Damaged,
}
use Before::{Damaged, Filled, Nothing, Thinned};

impl Before {
    fn place(self) -> Place {
        let place = Place::new();
        match self {
            Nothing => {}
            Filled => {
                place.fill(3);
                place.run(["export", "old.stream"]).ok();
                write_changes(&place);
            }
            Thinned => {
                place.fill(3000);
                place.run(["delete", "--prefix", "key-1"]).ok();
            }
            Damaged => damage(&place),
        }
        place
    }
}

/// A batch of one operation, and one with a wrong line.
fn write_changes(place: &Place) {
    let directory = place.directory.path();
    fs::write(directory.join("changes"), "put\tkey-0\tnew\n").expect("writable");
    fs::write(directory.join("wrong"), "put\tkey-0\tnew\nnonsense\n").expect("writable");
}

/// Makes a store, and flips a bit in a value of it.
fn damage(place: &Place) {
    let options = Options::new().segment_bytes(4 << 20).populate_ahead_bytes(0);
    let db = Db::open(place.store(), &options).expect("a new store");
    for number in 0..50 {
        let (key, value) = (format!("key-{number}"), format!("the value of number {number}."));
        db.put(key.as_bytes(), value.as_bytes()).expect("room");
    }
    close(db);
    let path = place.store().join("segment-000000");
    let mut bytes = fs::read(&path).expect("a segment");
    let text = b"the value of number 12.";
    let at = bytes.windows(text.len()).position(|window| window == text).expect("it is there");
    bytes[at + 4] ^= 4;
    fs::write(path, bytes).expect("writable");
}

/// Whether a run shows the effect.
type Shows = fn(&Run) -> bool;

fn prints(run: &Run, text: &str) -> bool {
    run.out.contains(text) || run.err.contains(text)
}

/// A command and an option; what is there before; the command line without the option and with it; and what shows the
/// difference.
type Row = (&'static str, &'static str, Before, &'static str, &'static str, Shows);

const OWN: [Row; 36] = [
    ("put", "engine", Nothing, "put -v k v", "put -v k v --engine hikv", |it| {
        prints(it, "engine hikv")
    }),
    ("put", "key-size", Nothing, "put k v", "put k v --key-size 8", |it| {
        prints(it, "keys of 8 bytes")
    }),
    ("put", "value-size", Nothing, "put k v", "put k v --value-size 8", |it| {
        prints(it, "values of 8 bytes")
    }),
    ("put", "segment-size", Filled, "put k v", "put k v --segment-size 8MiB", |it| it.code == 3),
    ("get", "raw", Filled, "get key-0", "get key-0 --raw", |it| it.out.ends_with('\0')),
    ("delete", "from", Filled, "delete key-0", "delete --from key-1", |it| prints(it, "2 deleted")),
    ("delete", "to", Filled, "delete key-0", "delete --to key-2", |it| prints(it, "2 deleted")),
    ("delete", "prefix", Filled, "delete key-0", "delete --prefix key-", |it| {
        prints(it, "3 deleted")
    }),
    ("update-u64", "at", Filled, "update-u64 key-0 5", "update-u64 key-0 5 --at 16", |it| {
        it.out == "0 -> 5\n"
    }),
    ("update-u64", "force", Filled, "update-u64 key-0 5", "update-u64 key-0 5 --force", |it| {
        it.out == "13560712667095414 -> 13560712667095419\n"
    }),
    (
        "update-u64",
        "create",
        Filled,
        "update-u64 k 5 --at 0",
        "update-u64 k 5 --at 0 --create",
        |it| it.out == "0 -> 5\n",
    ),
    ("list-keys", "prefix", Filled, "list-keys", "list-keys --prefix key-2", |it| {
        it.out == "key-2\n"
    }),
    ("list-keys", "limit", Filled, "list-keys", "list-keys --limit 1", |it| {
        it.out.lines().count() == 1
    }),
    ("list-keys", "values", Filled, "list-keys", "list-keys --values", |it| prints(it, "value-2")),
    ("scan", "from", Filled, "scan", "scan --from key-1", |it| it.out == "key-1\nkey-2\n"),
    ("scan", "to", Filled, "scan", "scan --to key-2", |it| it.out == "key-0\nkey-1\n"),
    ("scan", "prefix", Filled, "scan", "scan --prefix key-2", |it| it.out == "key-2\n"),
    ("scan", "reverse", Filled, "scan", "scan --reverse", |it| it.out.starts_with("key-2")),
    ("scan", "limit", Filled, "scan", "scan --limit 1", |it| it.out == "key-0\n"),
    ("scan", "values", Filled, "scan", "scan --values", |it| prints(it, "value-2")),
    ("stats", "watch", Filled, "stats", "stats --watch", |it| {
        prints(it, "no metrics are published")
    }),
    // What they do beside a store that publishes is in the tests of `stats`.
    ("stats", "every", Filled, "stats --watch", "stats --watch --every 0", |it| it.code == 2),
    ("stats", "rounds", Filled, "stats --watch", "stats --watch --rounds 0", |it| it.code == 2),
    ("stats", "open-metrics", Filled, "stats", "stats --open-metrics", |it| prints(it, "# EOF")),
    ("compact", "free-percent", Thinned, "compact", "compact --free-percent 100", |it| {
        prints(it, "moved 0 records")
    }),
    ("export", "resume", Filled, "export old.stream", "export old.stream --resume", |it| {
        it.code == 0
    }),
    (
        "import",
        "resume",
        Filled,
        "import old.stream",
        "import old.stream --resume nonsense",
        |it| it.code == 2,
    ),
    (
        "import",
        "segment-size",
        Filled,
        "import old.stream",
        "import old.stream --segment-size 8MiB",
        |it| it.code == 3,
    ),
    ("batch", "atomic", Filled, "batch wrong", "batch wrong --atomic", |it| {
        it.err.contains("nothing was done")
    }),
    (
        "batch",
        "durability",
        Filled,
        "batch changes",
        "batch -v changes --durability process",
        is_process,
    ),
    ("man", "output", Nothing, "man", "man --output pages", |it| prints(it, "pages in `pages`")),
    (
        "update-u64",
        "durability",
        Filled,
        "update-u64 key-0 5 --force",
        "update-u64 -v key-0 5 --force --durability process",
        is_process,
    ),
    ("put", "durability", Nothing, "put k v", "put -v k v --durability process", is_process),
    (
        "delete",
        "durability",
        Filled,
        "delete key-0",
        "delete -v key-0 --durability process",
        is_process,
    ),
    ("compact", "durability", Filled, "compact", "compact -v --durability process", is_process),
    (
        "import",
        "durability",
        Filled,
        "import old.stream",
        "import -v old.stream --durability process",
        is_process,
    ),
];

fn is_process(run: &Run) -> bool {
    prints(run, "durability process")
}

/// A command line for each command, of a store that is [filled](Filled).
const COMMANDS: [(&str, &str); 17] = [
    ("put", "put k v"),
    ("get", "get key-0"),
    ("delete", "delete key-0"),
    ("update-u64", "update-u64 key-0 5 --force"),
    ("batch", "batch changes"),
    ("list-keys", "list-keys"),
    ("scan", "scan"),
    ("stats", "stats"),
    ("doctor", "doctor"),
    ("check", "check"),
    ("inspect", "inspect"),
    ("compact", "compact"),
    ("export", "export new.stream"),
    ("import", "import old.stream"),
    ("backup", "backup copy"),
    ("completion", "completion bash"),
    ("man", "man"),
];
/// Neither take nor show keys.
const WITHOUT_KEYS: [&str; 10] = [
    "stats",
    "doctor",
    "check",
    "inspect",
    "compact",
    "export",
    "import",
    "backup",
    "completion",
    "man",
];
/// Look at no store.
const WITHOUT_STORE: [&str; 2] = ["completion", "man"];

/// What follows the option in a list of a help.
fn options(help: &str) -> BTreeSet<String> {
    let lines = help.lines().filter(|line| line.starts_with("  ")).map(str::trim_start);
    let of_options = lines.filter(|line| line.starts_with('-'));
    let names =
        of_options.filter_map(|line| line.split_once("--")?.1.split([' ', '[', ',', '.']).next());
    names.map(str::to_owned).collect()
}

fn run(before: Before, line: &str) -> Run {
    before.place().run(line.split_whitespace())
}

#[test]
fn every_option_of_every_command_has_a_row() {
    let place = Place::new();
    let help = place.run(["--help"]).ok();
    let list = help.split_once("\nCommands:\n").expect("a list of commands").1;
    let list = list.split_once("\n\n").expect("something after it").0;
    let of_names = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: BTreeSet<_> = of_names.filter_map(|line| line.split_whitespace().next()).collect();
    let known: BTreeSet<_> =
        COMMANDS.iter().map(|it| it.0).chain(["bench", "help", "primitives"]).collect();
    assert_eq!(names, known);
    for (command, _) in COMMANDS {
        for option in options(&place.run([command, "--help"]).ok()) {
            let is_own = OWN.iter().any(|it| (it.0, it.1) == (command, &option));
            let is_of_all =
                ["json", "hex", "hex-key", "hex-value", "verbose", "path", "salvage", "help"]
                    .contains(&&*option);
            assert!(is_own || is_of_all, "{command}: no row for --{option}");
        }
    }
}

#[test]
fn own_options_show() {
    for (command, option, before, without, with, shows) in OWN {
        assert!(shows(&run(before, with)), "{command} --{option}: {:?}", run(before, with));
        assert!(!shows(&run(before, without)), "{command} without --{option} shows the same");
    }
}

#[test]
fn json_and_hexadecimal_show_or_are_refused() {
    for (command, line) in COMMANDS {
        let json = run(Filled, &format!("{line} --json"));
        if WITHOUT_STORE.contains(&command) {
            assert!(json.code == 2 && json.err.contains("--json has no effect"), "{json:?}");
        } else {
            assert!(json.out.starts_with('{'), "{command}: {json:?}");
        }
        let hex = run(Filled, &format!("{line} --hex"));
        if WITHOUT_KEYS.contains(&command) {
            assert!(hex.code == 2 && hex.err.contains("--hex has no effect"), "{hex:?}");
        } else {
            assert_ne!(hex.out, run(Filled, line).out, "{command}");
        }
    }
    for (line, says) in [
        ("delete key-0 --hex-value", "neither takes nor shows values"),
        ("update-u64 key-0 5 --hex-value", "neither takes nor shows values"),
        ("list-keys --hex-value", "neither takes nor shows values"),
        ("stats --hex-key", "neither takes nor shows keys"),
    ] {
        let refused = run(Filled, line).expect(2);
        assert!(refused.err.contains(says), "{refused:?}");
    }
    let hex = run(Nothing, "--hex bench core");
    assert!(hex.code == 2 && hex.err.contains("--hex has no effect"), "{hex:?}");
}

#[test]
fn more_is_said_by_every_command_that_opens_a_store() {
    let is_silent = |command: &str| command == "doctor" || WITHOUT_STORE.contains(&command);
    for (command, line) in COMMANDS.into_iter().filter(|it| !is_silent(it.0)) {
        let verbose = run(Filled, &format!("{line} --verbose"));
        assert!(verbose.err.contains("chimera: info: "), "{command}: {verbose:?}");
        assert!(!run(Filled, line).err.contains("chimera: info: "), "{command}");
    }
}

#[test]
fn the_path_is_where_every_command_looks() {
    for (command, line) in COMMANDS.into_iter().filter(|it| !WITHOUT_STORE.contains(&it.0)) {
        for elsewhere in [format!("{line} --path elsewhere"), format!("--path elsewhere {line}")] {
            let elsewhere = run(Filled, &elsewhere);
            assert!(prints(&elsewhere, "elsewhere"), "{command}: {elsewhere:?}");
        }
        assert!(!prints(&run(Filled, line), "elsewhere"), "{command}");
    }
    let refused = run(Nothing, "completion bash --path elsewhere").expect(2);
    assert!(refused.err.contains("--path has no effect"), "{refused:?}");
}

#[test]
fn salvage_shows_in_every_command_that_has_it_and_is_refused_where_nothing_is_opened() {
    let place = Place::new();
    let has_it = |command: &str| place.run([command, "--help"]).ok().contains("--salvage");
    for (command, line) in COMMANDS.into_iter().filter(|it| has_it(it.0)) {
        let place = Damaged.place();
        // A stream to import, of another store.
        fs::copy(
            Filled.place().directory.path().join("old.stream"),
            place.directory.path().join("old.stream"),
        )
        .expect("copied");
        write_changes(&place);
        let salvaged = place.run(format!("{line} --salvage").split_whitespace());
        let is_said =
            prints(&salvaged, "is left out") || prints(&salvaged, "in what damage has left");
        assert!(is_said, "{command}: {salvaged:?}");
        assert!(!prints(&run(Damaged, line), "is left out"), "{command}");
    }
    let watched = run(Filled, "stats --watch --salvage");
    assert!(watched.code == 2 && watched.err.contains("'--salvage'"), "{watched:?}");
}

#[test]
fn stores_of_each_engine_are_compacted() {
    for engine in ["viper", "hikv", "chameleon"] {
        let place = Place::new();
        place.run(["put", "k", "v", "--engine", engine]).ok();
        let out = place.run(["compact", "--free-percent", "50"]).ok();
        assert!(out.contains("moved 0 records"), "{engine}: {out}");
    }
}
