//! Help, version, completion.

mod common;

use chimera::Durability;
use chimera_pmem::Medium;
use common::Place;

/// The names of all commands, from the help.
fn commands(help: &str) -> Vec<String> {
    let after = help.split_once("\nCommands:\n").expect("a list of commands").1;
    let list = after.split_once("\n\n").expect("something after it").0;
    list.lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .collect()
}

#[test]
fn every_command_has_a_description() {
    let place = Place::new();
    let help = place.run(["--help"]).ok();
    assert!(help.contains("Exit codes:") && help.contains("Examples:"), "{help}");
    let names = commands(&help);
    let expected = [
        "put",
        "get",
        "delete",
        "update-u64",
        "batch",
        "list-keys",
        "scan",
        "stats",
        "doctor",
        "check",
        "inspect",
        "compact",
        "export",
        "import",
        "backup",
        "bench",
        "primitives",
        "completion",
        "man",
        "help",
    ];
    assert_eq!(names, expected);
    // Those that are passed on have the help of another command.
    let passed_on = ["help", "bench", "primitives"];
    for name in names.iter().filter(|name| !passed_on.contains(&name.as_str())) {
        for option in ["-h", "--help"] {
            let help = place.run([name.as_str(), option]).ok();
            let first = help.lines().next().unwrap_or_default();
            assert!(!first.is_empty() && !first.starts_with("Usage:"), "{name}: {help}");
            assert!(help.contains("\nUsage: chimera"), "{name}: {help}");
            assert!(help.contains("--json"), "{name}: {help}");
        }
    }
}

#[test]
fn the_help_says_what_auto_is_on_each_medium() {
    let place = Place::new();
    let on = |medium| Durability::Auto.effective_on(medium).expect("auto always works");
    let (memory, file, tmpfs) = (on(Medium::FsDax), on(Medium::File), on(Medium::Tmpfs));
    let said = format!(
        "`{memory}` on persistent memory, `{file}` on plain files, `{tmpfs}` in memory (tmpfs)"
    );
    for command in ["put", "delete", "update-u64", "batch", "compact", "import"] {
        let help = place.run([command, "--help"]).ok();
        let words: Vec<_> = help.split_whitespace().collect();
        assert!(words.join(" ").contains(&said), "{command}: {help}");
    }
}

#[test]
fn the_version_is_printed() {
    let version = Place::new().run(["--version"]).ok();
    assert_eq!(version, format!("chimera {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn completion_is_printed_for_every_shell() {
    let place = Place::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = place.run(["completion", shell]).ok();
        assert!(script.contains("list-keys") && script.contains("salvage"), "{shell}: {script}");
    }
}

#[test]
fn each_command_has_a_manual_page() {
    let place = Place::new();
    let first = place.run(["man"]).ok();
    assert!(first.contains(".TH chimera 1") && first.contains("Exit codes:"), "{first}");
    assert!(first.contains("CHIMERA_PATH") && !first.contains("help(1)"), "{first}");
    assert!(place.run(["man", "--output", "pages/man1"]).ok().ends_with("pages in `pages/man1`\n"));
    let directory = place.directory.path().join("pages/man1");
    for name in commands(&place.run(["--help"]).ok()).iter().filter(|name| *name != "help") {
        let path = directory.join(format!("chimera-{name}.1"));
        let page = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(page.contains(&format!(".TH chimera-{name} 1")), "{page}");
        assert!(
            page.contains(".SH DESCRIPTION")
                && page.contains("For every command".to_uppercase().as_str()),
            "{page}"
        );
        assert!(page.contains(r"\fB\-\-path\fR"), "{page}");
    }
    assert_eq!(std::fs::read_to_string(directory.join("chimera.1")).expect("a page"), first);
    // Again, over those that are there.
    place.run(["man", "--output", "pages/man1"]).ok();
}

#[test]
fn more_is_said_when_asked_for() {
    let place = Place::new();
    let quiet = place.run(["put", "k", "v"]).expect(0);
    assert_eq!(quiet.err, "");
    assert!(!quiet.out.contains("durability"), "{quiet:?}");
    let verbose = place.run(["put", "k", "v", "-v"]).expect(0);
    assert!(verbose.out.contains("durability"), "{verbose:?}");
    // A sentence, and no names of fields.
    let said = format!("chimera: info: `{}` is open, with engine viper", place.store().display());
    assert!(verbose.err.starts_with(&said) && verbose.err.ends_with(".\n"), "{verbose:?}");
    assert!(verbose.err.contains(" The store had been closed in order. "), "{verbose:?}");
    assert!(!verbose.err.contains(['{', '_']), "{verbose:?}");
}
