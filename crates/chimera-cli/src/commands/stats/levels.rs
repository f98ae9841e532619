//! What ChameleonDB says of its levels, as lines of a table.

use chimera::{ChameleonMode, ChameleonStats, IndexWritten};

use crate::human::{Row, count, size};

/// What the store is made of: for `stats` and `inspect`.
pub(crate) fn rows(chameleon: &ChameleonStats) -> Vec<Row> {
    let (least, most) = chameleon.memtable_load_percent;
    let levels: Vec<_> = chameleon.level_tables.iter().map(|tables| count(*tables)).collect();
    let last = format!("{}, {}", count(chameleon.last_tables), size(chameleon.last_bytes));
    let bypass_load = format!("{:.1} %", chameleon.bypass_load_percent);
    let live = 100.0 * chameleon.log_live_bytes as f64 / chameleon.log_bytes.max(1) as f64;
    let mut rows = vec![
        ("shards", count(chameleon.shards.into())),
        ("slots of a MemTable", count(chameleon.memtable_slots.into())),
        ("  full at a load of", format!("{least} to {most} %")),
        ("  entries of all", count(chameleon.memtable_entries)),
        ("bypass indexes", size(chameleon.upper_index_bytes)),
        ("  load", bypass_load),
        ("  complete", format!("{} of {}", chameleon.shards_bypassed, chameleon.shards)),
        ("upper levels, tables", levels.join(", ")),
        ("last level, tables", last),
        ("  entries", count(chameleon.last_entries)),
        ("log", size(chameleon.log_bytes)),
        ("  of it live records", format!("{live:.1} %")),
        ("  for a restart", size(chameleon.replay_log_bytes)),
    ];
    if chameleon.dumps.tables > 0 {
        let dumps = (count(chameleon.dumps.tables), size(chameleon.dumps.bytes));
        rows.push(("dumps", format!("{}, {}", dumps.0, dumps.1)));
    }
    rows
}

/// What it has done since it was opened: for `stats`.
pub(super) fn work_rows(chameleon: &ChameleonStats) -> Vec<Row> {
    let mode = match chameleon.mode {
        ChameleonMode::Normal => "normal",
        ChameleonMode::WriteIntensive => "write-intensive",
        ChameleonMode::GetProtect => "get-protect",
        _ => "another one",
    };
    let mut rows = vec![("mode", mode.to_owned())];
    for switch in &chameleon.protect_switched {
        let name = if switch.is_on { "  get-protect began" } else { "  get-protect ended" };
        rows.push((name, format!("{} ms after opening", count(switch.at_ms))));
    }
    rows.push(("replayed at opening", size(chameleon.replayed_log_bytes)));
    let IndexWritten { flushes, upper, last, dumps, manifest, .. } = *chameleon.written;
    let causes = [
        ("written by flushes", flushes),
        ("  upper compactions", upper),
        ("  last compactions", last),
        ("  dumps", dumps),
        ("  the manifest", manifest),
    ];
    let line = |(name, it): (_, chimera::TablesWritten)| {
        (name, format!("{} in {} times", size(it.bytes), count(it.tables)))
    };
    rows.extend(causes.into_iter().filter(|(_, it)| it.tables > 0).map(line));
    rows
}
