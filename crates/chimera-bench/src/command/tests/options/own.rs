//! Options of one subcommand show in its report.

use super::super::*;
use super::{Leaf, leaves};
use crate::report::chameleon::{Bursts, Ratios, Restart, Written};
use crate::report::{Chameleon, Counters};

/// An option of one subcommand: a small run with it, and what its report shows, against that of the run without it.
type Own = (&'static str, &'static str, &'static str, fn(&Report, &Report) -> bool);

const OWN: [Own; 41] = [
    ("core", "batch", "--batch 4", |base, it| it.rows.len() == base.rows.len() + 1),
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
        (restart_of(it).after_ms - 10.0).abs() < 0.01
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
    ("chameleon bursts", "rest", "--rest 0.01", |_, it| {
        (bursts_of(it).rest_ms - 10.0).abs() < 0.01
    }),
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
const WITHOUT: [(&str, &str, &str); 11] = [
    ("core", "--records 700 --operations 300 --repetitions 1", ""),
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

/// Whether an option of a subcommand is run here.
pub(super) fn has_row(name: &str, option: &str) -> bool {
    OWN.iter().any(|it| (it.0, it.1) == (name, option))
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
