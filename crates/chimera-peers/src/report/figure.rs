//! Figures: for each kind of work, how fast each store is by the size of values, over the fastest one.

use std::path::Path;

use chimera_bench::report::{Curve, draw_curves};

use crate::Result;
use crate::results::{Report, WorkRow};

/// Figures beside each other.
const COLUMNS: usize = 2;

/// Draws the figures of a report.
///
/// # Errors
/// When the file cannot be written, or nothing was measured.
pub fn draw(report: &Report, path: &Path) -> Result<()> {
    draw_curves(&curves(report), COLUMNS, path)
}

/// What one figure shows.
fn caption(row: &WorkRow) -> String {
    format!(
        "{}, {} ({}), {}, {} threads: share of the fastest, by log10 of value bytes",
        row.work,
        row.cell.path.display(),
        row.cell.medium,
        row.cell.durability,
        row.cell.threads
    )
}

fn curves(report: &Report) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for row in &report.work {
        let caption = caption(row);
        let rivals =
            report.work.iter().filter(|other| (&other.cell, other.work) == (&row.cell, row.work));
        let fastest = rivals.map(|other| other.ops_per_s.median).fold(f64::MIN_POSITIVE, f64::max);
        let point = ((row.cell.value_bytes as f64).log10(), row.ops_per_s.median / fastest);
        let at = curves.iter().position(|curve| curve.caption == caption).unwrap_or_else(|| {
            curves.push(Curve { caption, lines: Vec::new() });
            curves.len() - 1
        });
        curves[at].add(row.store.name(), point);
    }
    curves
}
