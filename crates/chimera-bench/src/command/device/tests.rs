use clap::Args;

use crate::BenchError;
use crate::command::tests::parse;
use crate::command::{BenchCommand, DeviceArguments};
use crate::report::{DeviceReport, DeviceRow};

fn arguments(line: &str) -> DeviceArguments {
    match parse(line) {
        BenchCommand::Device(arguments) => arguments,
        other => panic!("{other:?}"),
    }
}

fn row<'a>(report: &'a DeviceReport, what: &str) -> &'a DeviceRow {
    let found = report.rows.iter().find(|row| row.what == what || row.figure == what);
    found.unwrap_or_else(|| panic!("no row `{what}`"))
}

/// Every published value is met within a quarter, or a reason is given; and no reason is given in vain.
#[test]
fn the_model_gives_what_was_published() {
    let report = arguments("device").measure();
    assert!(report.rows.len() > 20);
    for row in &report.rows {
        let deviation = row.deviation();
        if let Some(is_near) = row.is_near() {
            assert_eq!(is_near, row.reason.is_none(), "{deviation:?}: {row:?}");
        }
        assert!(row.published.is_some() != row.direction.is_some(), "{row:?}");
    }
    // What a paper says without a number.
    assert!((0.9..=1.1).contains(&row(&report, "chameleondb, Figure 1").modelled.min(1.1)));
    let flat = row(&report, "random writes of 4 KiB over 256 B").modelled;
    assert!((0.95..=1.05).contains(&flat), "{flat}");
    let few = row(&report, "persists of 8 threads, random over sequential").modelled;
    assert!(few > 1.5, "{few}");
    let logs = row(&report, "persists of 32 threads, 1 log over 32").modelled;
    assert!(logs > 1.25, "{logs}");
    let slope = row(&report, "time of a persist over the latency that is added").modelled;
    assert!((0.99..=1.01).contains(&slope), "{slope}");
}

/// A row as the document has it.
fn line_of(row: &DeviceRow) -> String {
    let DeviceRow { what, figure, unit, modelled, .. } = row;
    let rounded = |value: f64| (value * 1000.0).round() / 1000.0;
    let published = row.published.map(|value| format!("{} {unit}", rounded(value)));
    let published = published.or_else(|| row.direction.clone()).unwrap_or_default();
    let off = row.deviation().map(|deviation| format!("{:+.0} %", deviation * 100.0));
    let off = off.unwrap_or_default();
    format!("| {what} | {figure} | {published} | {modelled:.3} | {off} |")
}

#[test]
fn the_document_has_these_numbers() {
    let document = include_str!("../../../../../docs/DEVICE-MODEL.md");
    let report = arguments("device").measure();
    let missing: Vec<_> =
        report.rows.iter().map(line_of).filter(|line| !document.contains(line.as_str())).collect();
    assert!(missing.is_empty(), "not in docs/DEVICE-MODEL.md:\n{}", missing.join("\n"));
}

/// Every option has an effect that shows: what is new and has no row here fails.
#[test]
fn every_option_is_used() {
    let rows = |line: &str| arguments(line).measure();
    let base = rows("device --operations 1000");
    assert_ne!(rows("device --operations 2000").operations, base.operations);
    assert!(rows("device --quick").operations < arguments("device").measure().operations);
    assert_ne!(rows("device --operations 1000 --seed 7").rows, base.rows);
    let known = ["operations", "quick", "seed", "plot"];
    let command = DeviceArguments::augment_args(clap::Command::new("device"));
    let options = command.get_arguments().map(|argument| argument.get_id().as_str());
    assert!(options.eq(known), "an option has no row here");
    let error = arguments("device --plot /none/device.svg").run(false).expect_err("no directory");
    assert!(matches!(error, BenchError::Plot { .. }), "{error}");
}

#[test]
fn nothing_depends_on_the_machine() {
    let line = "device --operations 2000 --seed 7";
    let (one, other) = (arguments(line).measure(), arguments(line).measure());
    assert_eq!(one, other);
    assert_ne!(arguments("device --operations 2000").measure().rows, one.rows);
}

#[test]
fn every_curve_is_drawn() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("device.svg");
    let line = format!("device --operations 1000 --plot {}", path.display());
    let report = arguments(&line).measure();
    crate::report::plot::draw_device(&report, &path).expect("drawn");
    let drawn = std::fs::read_to_string(path).expect("drawn");
    for curve in &report.curves {
        assert!(curve.lines.iter().all(|line| !line.points.is_empty()), "{}", curve.caption);
        assert!(drawn.contains(curve.caption.as_str()), "{}", curve.caption);
    }
    let lines = report.curves.iter().flat_map(|curve| &curve.lines);
    let points: usize = lines.map(|line| line.points.len()).sum();
    assert_eq!(drawn.matches("<circle").count(), points, "all points of all lines");
}
