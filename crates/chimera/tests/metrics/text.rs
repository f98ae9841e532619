//! The text: it keeps to the grammar and says what the store says.

use std::path::Path;
use std::sync::Arc;

use chimera::metrics::Published;
use chimera::{Db, Options};
use chimera_pmem::instrumented::InstrumentedOptions;
use chimera_pmem::{Environment, Hardware, Instrumented, SteppedEnvironment};

use super::stepped;
use super::tools::{key, scratch_on_disk, small, value};

fn parse(text: &str) -> Published {
    Published::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn the_text_agrees_with_the_stats() {
    let (db, environment) = stepped(&small().latency_sampling(1));
    let empty = parse(&db.metrics_text());
    assert_eq!(empty.value("chimera_records", &[]), Some(0.0));
    let mut session = db.session();
    for number in 0..40 {
        session.put(key(number), value(number, 1)).unwrap();
        session.get_with(key(number), |_| environment.advance(1000)).unwrap();
    }
    assert!(session.get(key(99)).unwrap().is_none());
    assert!(session.get(b"?").is_err());
    let text = db.metrics_text();
    let metrics = parse(&text);
    let stats = db.stats();
    let operations = |operation, outcome| {
        let labels = [("operation", operation), ("outcome", outcome)];
        metrics.value("chimera_operations_total", &labels)
    };
    assert_eq!(operations("put", "inserted"), Some(40.0));
    assert_eq!(operations("get", "found"), Some(40.0));
    assert_eq!(operations("get", "missing"), Some(1.0));
    assert_eq!(operations("delete", "deleted"), Some(0.0));
    assert_eq!(metrics.value("chimera_errors_total", &[("kind", "argument")]), Some(1.0));
    let single = |name| metrics.value(name, &[]).unwrap() as u64;
    assert_eq!(single("chimera_records"), stats.records);
    assert_eq!(single("chimera_pmem_bytes"), stats.pmem_bytes);
    assert_eq!(single("chimera_value_read_bytes_total"), stats.operations.value_bytes_read);
    assert_eq!(single("chimera_sessions"), 1);
    assert_eq!(single("chimera_recovery_clean"), u64::from(stats.recovery.clean));
    let dram = metrics.value("chimera_dram_bytes", &[("part", "index")]);
    assert_eq!(dram, Some(stats.dram_index_bytes as f64));
    let gets = metrics.buckets("chimera_operation_latency_seconds", &[("operation", "get")]);
    assert_eq!(gets.count() as u64, 41);
    let labels = [("operation", "get"), ("quantile", "0.5")];
    let median = metrics.value("chimera_operation_latency_quantile_seconds", &labels);
    assert_eq!(median, Some(stats.operations.latency.get.p50_ns as f64 / 1e9));
    assert_eq!(metrics.label("chimera_store_info", "engine"), Some("viper"));
    assert_eq!(metrics.label("chimera_store_info", "durability"), Some("process"));
    assert_eq!(metrics.value("chimera_journal_capacity_bytes", &[]), None);
    assert_eq!(metrics.value("chimera_fences_total", &[]), None);
}

#[test]
fn flushes_and_fences_are_there_where_they_are_counted() {
    let options = small().anonymous(1 << 20);
    let hardware = Hardware::new(options.hardware_options()).unwrap();
    let pmem = Instrumented::new(hardware, InstrumentedOptions::default());
    let environment: Arc<dyn Environment> = Arc::new(SteppedEnvironment::in_memory(1));
    let db = Db::open_on(pmem, &environment, Path::new(""), &options).unwrap();
    let fences = || parse(&db.metrics_text()).value("chimera_fences_total", &[]).unwrap() as u64;
    let before = fences();
    assert!(db.put(key(1), value(1, 1)).unwrap());
    assert!(!db.put(key(1), value(1, 2)).unwrap());
    assert!(fences() >= before + 5, "two fences and three, and some for a block");
}

#[test]
fn a_journal_has_figures() {
    let directory = scratch_on_disk();
    let options = small().create(true).journal_bytes(64 << 10);
    let db = Db::open(directory.path().join("store"), &options).unwrap();
    let metrics = parse(&db.metrics_text());
    let Some(capacity) = metrics.value("chimera_journal_capacity_bytes", &[]) else {
        assert!(db.stats().journal.is_none(), "in memory, or on persistent memory");
        return;
    };
    // It begins with less than it may have.
    assert_eq!(capacity as u64, 16 << 10);
    let value_of = |name| metrics.value(name, &[]).unwrap_or_else(|| panic!("{name} is missing"));
    assert!(value_of("chimera_memory_budget_bytes") > value_of("chimera_memory_needed_bytes"));
    assert!(value_of("chimera_pages_limit_bytes") > 0.0);
    for number in 0..20 {
        db.put(key(number), value(number, 1)).unwrap();
    }
    db.sync().unwrap();
    let metrics = parse(&db.metrics_text());
    assert!(metrics.value("chimera_journal_appended_bytes_total", &[]) > Some(20.0 * 64.0));
    assert!(metrics.value("chimera_journal_syncs_total", &[]) >= Some(1.0));
    assert_eq!(metrics.value("chimera_journal_unsynced_bytes", &[]), Some(0.0));
    db.close().unwrap();
    let options = Options::new().read_only(true);
    let db = Db::open(directory.path().join("store"), &options).unwrap();
    assert!(parse(&db.metrics_text()).value("chimera_records", &[]) == Some(20.0));
}
