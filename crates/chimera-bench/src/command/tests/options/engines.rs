//! Options of stores reach every engine, or are refused.

use chimera::baselines::RecordLayout;
use chimera::{EngineKind, EngineStats};

use super::super::*;
use super::{COMMON, decided};
use crate::driver::engine::EngineChoice;
use crate::driver::store::Create;

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
                <Db<Hardware> as Create>::create(&setup, Path::new(""), &demand(&setup, &[], 1));
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

/// The trees of the study have records of one size, and few options.
#[test]
fn options_reach_trees_or_are_refused() {
    for tree in ["fptree", "fptree-cached", "nvtree"] {
        let of = |rest: &str| decided(&format!("core --engine {tree} {rest}"));
        for taken in ["profile", "medium", "keep", "no-counters", "key-size", "value-size"] {
            let row = COMMON.iter().find(|it| it.0 == taken).expect("there is a row");
            assert!(of(row.1).expect("it is taken").iter().all(row.2), "{tree} {taken}");
        }
        for refused in ["--growing", "--durability process", "--any-size", "--mixed-sizes"] {
            assert!(of(refused).is_err(), "{tree} {refused}");
        }
        // Beside a store they are the store's.
        let both = format!(
            "core --engine hikv,{tree} --any-size --durability process --order asynchronous"
        );
        let names: Vec<_> = decided(&both).expect("taken").iter().map(Setup::name).collect();
        assert_eq!(names, ["hikv-ordered", tree]);
    }
}

#[test]
fn trees_are_rows_of_the_same_run() {
    let sizes = "--records 2000 --operations 500 --repetitions 1 --medium anonymous";
    let line = format!("core --engine hikv,fptree,fptree-cached,nvtree --any-size {sizes}");
    let report = run_line(&line).expect("runs");
    let of = |engine: &str, operation: &str| {
        let row = report.rows.iter().find(|row| row.engine == engine && row.operation == operation);
        row.and_then(|row| row.counters).expect("it was counted")
    };
    let lines = |engine: &str| of(engine, "get").lines_read;
    for tree in ["fptree", "nvtree"] {
        assert!(lines("hikv") < lines(tree), "{} against {}", lines("hikv"), lines(tree));
    }
    // Splits come on top of three and two persists.
    for (tree, least, most) in [("fptree", 3.0, 3.4), ("nvtree", 2.0, 2.4)] {
        let fences = of(tree, "insert").fences;
        assert!((least..most).contains(&fences), "{tree}: {fences}");
    }
    assert!(
        report.stores.iter().all(|store| store.verified_records == Some(2500 - 500)),
        "{report:?}"
    );
}
