//! [`DeviceReport`]: the device model beside what was published of real devices.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::columns::Table;
use crate::published::paper;

/// How far the model may be from a published value without a reason being given.
pub const DEVIATION_MAX: f64 = 0.25;

/// What `bench device` prints as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceReport {
    /// `device`.
    pub command: String,
    /// Nothing was timed: all is simulated.
    pub modelled: bool,
    /// Everything random follows from it.
    pub seed: u64,
    /// Operations of each experiment.
    pub operations: u64,
    /// Published values and the model's.
    pub rows: Vec<DeviceRow>,
    /// What the figures of the papers show.
    pub curves: Vec<DeviceCurve>,
}

/// A published value, or a direction, and the model's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceRow {
    /// The paper, and where in it.
    pub figure: String,
    /// What it is.
    pub what: String,
    /// Its unit.
    pub unit: String,
    /// The published value; absent where the paper has a direction alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<f64>,
    /// What the paper says instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<String>,
    /// What the model gives.
    pub modelled: f64,
    /// Why it is further away than it should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Lines of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceCurve {
    /// The figure, what is drawn, and over what.
    pub caption: String,
    /// One for each kind of load.
    pub lines: Vec<DeviceLine>,
}

/// A line of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceLine {
    /// What it is of.
    pub name: String,
    /// Points, from left to right.
    pub points: Vec<(f64, f64)>,
}

impl DeviceReport {
    pub(crate) fn new(seed: u64, operations: u64) -> Self {
        let command = "device".to_owned();
        Self { command, modelled: true, seed, operations, rows: Vec::new(), curves: Vec::new() }
    }

    /// Compares with a value of a paper. A reason is for one that the model does not give.
    pub(crate) fn compare(
        &mut self,
        (name, id): (&str, &str),
        modelled: f64,
        reason: Option<&str>,
    ) {
        let published = paper(name).get(id);
        self.rows.push(DeviceRow {
            figure: format!("{name}, {}", published.figure),
            what: published.what.to_owned(),
            unit: published.unit.to_owned(),
            published: Some(published.value),
            direction: None,
            modelled,
            reason: reason.map(str::to_owned),
        });
    }

    /// The same, called otherwise than in the data.
    pub(crate) fn compare_as(&mut self, what: &str, source: (&str, &str), modelled: f64) {
        self.compare(source, modelled, None);
        if let Some(row) = self.rows.last_mut() {
            what.clone_into(&mut row.what);
        }
    }

    /// Compares with what a paper says without a number.
    pub(crate) fn direction(&mut self, figure: &str, what: &str, says: &str, modelled: f64) {
        self.rows.push(DeviceRow {
            figure: figure.to_owned(),
            what: what.to_owned(),
            unit: "times".to_owned(),
            published: None,
            direction: Some(says.to_owned()),
            modelled,
            reason: None,
        });
    }
}

impl DeviceRow {
    /// How far it is from the published value, as a part of that.
    pub fn deviation(&self) -> Option<f64> {
        self.published.map(|published| self.modelled / published - 1.0)
    }

    /// Whether it is as near as it should be, where that can be said.
    pub fn is_near(&self) -> Option<bool> {
        self.deviation().map(|deviation| deviation.abs() <= DEVIATION_MAX)
    }
}

impl DeviceCurve {
    pub(crate) fn new(caption: &str) -> Self {
        Self { caption: caption.to_owned(), lines: Vec::new() }
    }

    /// A further point of a line.
    pub(crate) fn add(&mut self, name: &str, x: f64, y: f64) {
        match self.lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push((x, y)),
            None => self.lines.push(DeviceLine { name: name.to_owned(), points: vec![(x, y)] }),
        }
    }
}

/// All of it as text.
pub(crate) fn text(report: &DeviceReport) -> String {
    let mut out = String::new();
    let done = write(&mut out, report);
    debug_assert!(done.is_ok(), "a string takes everything");
    out
}

fn write(out: &mut String, report: &DeviceReport) -> std::fmt::Result {
    writeln!(
        out,
        "the device model alone, in simulated time; {} operations each, seed {}",
        report.operations, report.seed
    )?;
    let mut table = Table::new(&["what", "published in", "unit", "published", "modelled", "off"]);
    for row in &report.rows {
        let published = row.published.map(|value| format!("{value:.3}"));
        let off = row.deviation().map(|deviation| format!("{:+.0} %", deviation * 100.0));
        table.row(vec![
            row.what.clone(),
            row.figure.clone(),
            row.unit.clone(),
            published.or_else(|| row.direction.clone()).unwrap_or_default(),
            format!("{:.3}", row.modelled),
            off.unwrap_or_default(),
        ]);
    }
    table.write(out)?;
    writeln!(out)?;
    for row in report.rows.iter().filter(|row| row.is_near() == Some(false)) {
        let reason = row.reason.as_deref().unwrap_or("no reason is known");
        writeln!(out, "{} ({}): {reason}", row.what, row.figure)?;
    }
    Ok(())
}
