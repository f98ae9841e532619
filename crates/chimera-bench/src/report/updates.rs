//! [`UpdatesRow`]: what it saves that the tree learns of a write later (HiKV, ATC'17, section 4.5).

use serde::{Deserialize, Serialize};

use crate::results::rows::Row;

/// What asynchronous updates of the tree save of an operation, where a run has measured the same engine without order, with
/// asynchronous and with synchronous updates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UpdatesRow {
    /// The engine.
    pub engine: String,
    /// The operation.
    pub operation: String,
    /// Threads.
    pub threads: usize,
    /// S: the operation without order, in nanoseconds.
    pub serving_ns: f64,
    /// T: what its change of the tree takes, by the difference of synchronous updates and no order.
    pub tree_ns: f64,
    /// T / (S + T): what can be saved in bursts.
    pub saving_burst: f64,
    /// min(S, T) / (S + T): what can be saved by one serving and one background thread in the long run.
    pub saving_sustained: f64,
    /// What was saved of the time with synchronous updates.
    pub saved: f64,
}

/// A row for each operation that changes keys.
pub(crate) fn rows(all: &[Row]) -> Vec<UpdatesRow> {
    let changes_keys = |row: &&Row| matches!(row.operation.as_str(), "insert" | "delete");
    all.iter().filter(changes_keys).filter_map(|without| row(without, all)).collect()
}

fn row(without: &Row, all: &[Row]) -> Option<UpdatesRow> {
    let mean_ns = |suffix: &str| {
        let engine = format!("{}{suffix}", without.engine);
        let same = |row: &&Row| {
            (&row.engine, &row.operation, row.threads)
                == (&engine, &without.operation, without.threads)
        };
        all.iter().find(same).map(|row| row.latency_ns.mean)
    };
    let (asynchronous, synchronous) = (mean_ns("-ordered")?, mean_ns("-ordered-synchronous")?);
    let serving_ns = without.latency_ns.mean;
    let tree_ns = (synchronous - serving_ns).max(0.0);
    let of_both = |part: f64| part / (serving_ns + tree_ns).max(1.0);
    Some(UpdatesRow {
        engine: without.engine.clone(),
        operation: without.operation.clone(),
        threads: without.threads,
        serving_ns,
        tree_ns,
        saving_burst: of_both(tree_ns),
        saving_sustained: of_both(serving_ns.min(tree_ns)),
        saved: 1.0 - asynchronous / synchronous.max(1.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::rows::Latency;

    fn measured(engine: &str, operation: &str, mean: f64) -> Row {
        Row {
            engine: engine.to_owned(),
            durability: "process".to_owned(),
            operation: operation.to_owned(),
            threads: 1,
            ops_per_second: 1e9 / mean,
            latency_ns: Latency { mean, ..Latency::default() },
            repetitions: 1,
            spread: 0.0,
            counters: None,
            dimm_spread: None,
        }
    }

    #[test]
    fn savings_are_those_of_the_paper() {
        let mut all = vec![
            measured("hikv", "insert", 600.0),
            measured("hikv-ordered", "insert", 650.0),
            measured("hikv-ordered-synchronous", "insert", 1000.0),
        ];
        for operation in ["get", "overwrite"] {
            for suffix in ["", "-ordered", "-ordered-synchronous"] {
                all.push(measured(&format!("hikv{suffix}"), operation, 500.0));
            }
        }
        all.push(measured("viper", "insert", 600.0));
        let [row] = &rows(&all)[..] else { panic!("of one engine one operation changes keys") };
        assert_eq!((row.serving_ns, row.tree_ns), (600.0, 400.0));
        assert_eq!((row.saving_burst, row.saving_sustained, row.saved), (0.4, 0.4, 0.35));
        all[2].latency_ns.mean = 2400.0;
        let row = &rows(&all)[0];
        assert_eq!((row.saving_burst, row.saving_sustained), (0.75, 0.25));
    }
}
