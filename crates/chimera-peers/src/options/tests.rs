//! Each option reaches the plan, or is refused.

use super::*;

fn options(arguments: &[&str]) -> Options {
    let all = std::iter::once("chimera-peers").chain(arguments.iter().copied());
    Options::try_parse_from(all).expect("it parses")
}

fn plan(arguments: &[&str]) -> Plan {
    options(arguments).plan().expect("it makes sense")
}

fn refused(arguments: &[&str]) -> String {
    options(arguments).plan().expect_err("it makes no sense").to_string()
}

#[test]
fn the_command_line_is_sound() {
    use clap::CommandFactory;
    Options::command().debug_assert();
}

#[test]
fn sizes_have_suffixes() {
    assert_eq!(size("100"), Ok(100));
    assert_eq!(size("20k"), Ok(20_000));
    assert_eq!(size("600M"), Ok(600_000_000));
    assert_eq!(size("2G"), Ok(2_000_000_000));
    for text in ["", "k", "1.5M", "-1", "20kB", "99999999999G"] {
        assert!(size(text).is_err(), "{text}");
    }
}

#[test]
fn every_option_changes_the_plan() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().to_str().expect("text");
    let usual = plan(&[]);
    for more in [
        &["--path", path][..],
        &["--store", "redb"],
        &["--durability", "window"],
        &["--values", "300"],
        &["--threads", "3"],
        &["--bytes", "1M"],
        &["--records", "100"],
        &["--operations", "7"],
        &["--repetitions", "2"],
        &["--memory-limit", "600M"],
        &["--seed", "7"],
        &["--quick"],
    ] {
        assert_ne!(plan(more), usual, "{more:?}");
    }
    assert_eq!(plan(&["--store", "redb,fjall"]).stores, [StoreKind::Redb, StoreKind::Fjall]);
    assert_eq!(plan(&["--values", "100,20k"]).values, [100, 20_000]);
    assert_eq!(plan(&["--path", path]).places.len(), 1);
    for (wrong, what) in [
        (&["--values", "8"][..], "--values"),
        (&["--threads", "0"], "--threads"),
        (&["--repetitions", "0"], "--repetitions"),
        (&["--operations", "0"], "--operations"),
        (&["--records", "1"], "--records"),
    ] {
        assert!(refused(wrong).contains(what), "{wrong:?}");
    }
    assert!(refused(&["--path", "/there/is/none"]).contains("/there/is/none"));
    for wrong in [
        &["--store", "sqlite"][..],
        &["--durability", "often"],
        &["--records", "10", "--bytes", "10"],
        &["worker"],
    ] {
        let all = std::iter::once("chimera-peers").chain(wrong.iter().copied());
        assert!(Options::try_parse_from(all).is_err(), "{wrong:?}");
    }
}

#[test]
fn tmpfs_has_one_durability() {
    let Ok(directory) = tempfile::tempdir_in(SHARED_MEMORY) else { return };
    let path = directory.path().to_str().expect("text");
    if medium_of(directory.path()).expect("it is there") != Medium::Tmpfs {
        return;
    }
    assert_eq!(plan(&["--path", path]).places[0].durabilities, [Durability::Process]);
    let both = plan(&["--path", path, "--durability", "process,window"]);
    assert_eq!(both.places[0].durabilities, [Durability::Process]);
    assert!(refused(&["--path", path, "--durability", "window"]).contains("tmpfs"));
}

#[test]
fn records_follow_from_bytes_but_for_synced_ones() {
    let plan = plan(&["--bytes", "1M"]);
    assert_eq!(plan.records_of(984, Durability::Window), 1000);
    assert_eq!(plan.records_of(84, Durability::Operation), SYNCED_RECORDS);
    assert_eq!(plan.records_of(1 << 20, Durability::Window), RECORDS_MIN);
    assert_eq!(plan.operations_of(Work::Get, 1000), 1000);
    assert_eq!(plan.operations_of(Work::Scan, 1010), 11);
    assert_eq!(plan.operations_of(Work::Delete, 11), 5);
}
