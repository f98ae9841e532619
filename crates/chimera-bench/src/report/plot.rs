//! Figures of results, as SVG.

use std::fs::{self, File};
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;

use super::chameleon::{AmplificationRow, Bursts, Chameleon, Restart, Written};
use super::device::DeviceReport;
use super::json::{Adaption, AdaptionRow, MemorySample, Report};
use super::table::engines;
use crate::error::{BenchError, Result};
use crate::results::series::{Results, Series};
use crate::results::statistics::{median, range, ratio};

/// Width and height of one figure.
const SIZE: (u32, u32) = (1000, 480);
/// Percentiles at which latency is drawn.
const PERCENTILES: [f64; 14] =
    [0.0, 25.0, 50.0, 75.0, 90.0, 95.0, 98.0, 99.0, 99.5, 99.8, 99.9, 99.95, 99.98, 99.99];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = std::result::Result<(), Box<dyn std::error::Error>>;

/// Makes sure that a figure can be written, before hours are spent on what it is to show.
///
/// # Errors
/// When it cannot.
pub fn check(path: &Path) -> Result<()> {
    let failed = |error: std::io::Error| BenchError::Plot {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    let exists = path.try_exists().map_err(failed)?;
    File::options().append(true).create(true).open(path).map_err(failed)?;
    if exists { Ok(()) } else { fs::remove_file(path).map_err(failed) }
}

/// Draws what a report has: throughput and latency of its rows, and what is its subcommand's own.
pub(crate) fn draw(report: &Report, results: &Results, path: &Path) -> Result<()> {
    draw_figures(report, results, path)
        .map_err(|error| BenchError::Plot { path: path.to_owned(), reason: error.to_string() })
}

/// Draws what the figures of the papers have.
pub(crate) fn draw_device(report: &DeviceReport, path: &Path) -> Result<()> {
    let curves = report.curves.iter().map(|curve| Curve {
        caption: curve.caption.clone(),
        lines: curve.lines.iter().map(|line| (line.name.clone(), line.points.clone())).collect(),
    });
    draw_curves(&curves.collect::<Vec<_>>(), 1, path)
}

/// Draws figures, so many beside each other.
///
/// # Errors
/// When the file cannot be written.
pub fn draw_curves(curves: &[Curve], columns: usize, path: &Path) -> Result<()> {
    draw_grid(curves, columns, path)
        .map_err(|error| BenchError::Plot { path: path.to_owned(), reason: error.to_string() })
}

fn draw_grid(curves: &[Curve], columns: usize, path: &Path) -> Drawn {
    let rows = curves.len().div_ceil(columns);
    let whole = SVGBackend::new(path, (SIZE.0 * columns as u32, SIZE.1 * rows as u32));
    let area = whole.into_drawing_area();
    area.fill(&WHITE)?;
    for (part, curve) in area.split_evenly((rows, columns)).iter().zip(curves) {
        curve.draw(part)?;
    }
    area.present()?;
    Ok(())
}

fn draw_figures(report: &Report, results: &Results, path: &Path) -> Drawn {
    let (lines, own) = (curves(report), bars(report));
    let of_series = if results.series.is_empty() { 0 } else { 2 };
    let figures = of_series + own.len() + lines.len();
    if figures == 0 {
        return Err("there is nothing to draw".into());
    }
    let whole = SVGBackend::new(path, (SIZE.0, SIZE.1 * figures as u32));
    let area = whole.into_drawing_area();
    area.fill(&WHITE)?;
    let parts = area.split_evenly((figures, 1));
    if of_series > 0 {
        throughput(report, &results.series).draw(&parts[0])?;
        latency(&parts[1], report, &results.series)?;
    }
    let (of_own, of_lines) = parts[of_series..].split_at(own.len());
    for (part, figure) in of_own.iter().zip(&own) {
        figure.draw(part)?;
    }
    for (part, curve) in of_lines.iter().zip(&lines) {
        curve.draw(part)?;
    }
    area.present()?;
    Ok(())
}

/// Bars, each with a whisker from the lowest to the highest of what it is the median of.
struct Bars {
    caption: String,
    bars: Vec<Bar>,
}

struct Bar {
    label: String,
    middle: f64,
    range: (f64, f64),
}

impl Bars {
    fn draw(&self, area: &Area<'_>) -> Drawn {
        let highest = self.bars.iter().map(|bar| bar.range.1).fold(0.0, f64::max);
        let count = self.bars.len() as f64;
        let mut chart = ChartBuilder::on(area)
            .caption(&self.caption, ("sans-serif", 18))
            .margin(10)
            .x_label_area_size(60)
            .y_label_area_size(60)
            .build_cartesian_2d(0.0..count, 0.0..(highest * 1.1).max(1e-3))?;
        chart.configure_mesh().disable_x_mesh().disable_x_axis().draw()?;
        for (index, Bar { label, middle, range: (low, high) }) in self.bars.iter().enumerate() {
            let at = index as f64;
            let bar = [(at + 0.15, 0.0), (at + 0.85, *middle)];
            chart.draw_series([Rectangle::new(bar, Palette99::pick(index).mix(0.7).filled())])?;
            let whisker = [(at + 0.5, *low), (at + 0.5, *high)];
            chart.draw_series([PathElement::new(whisker, BLACK.stroke_width(2))])?;
            let (x, y) = chart.backend_coord(&(at + 0.15, 0.0));
            let (left, top) = area.get_base_pixel();
            let place = (x - left, y - top + 8 + 14 * (index as i32 % 3));
            area.draw(&Text::new(label.clone(), place, ("sans-serif", 12)))?;
        }
        Ok(())
    }
}

/// A bar for each series.
fn throughput(report: &Report, series: &[Series]) -> Bars {
    let modelled = if report.modelled { ", modelled" } else { "" };
    let caption = format!(
        "{}: {} on {}{modelled}, M operations/s",
        report.command,
        engines(report),
        report.medium
    );
    let bar = |one: &Series| {
        let (low, high) = range(&one.throughputs);
        let middle = median(&one.throughputs) / 1e6;
        Bar { label: label(report, one), middle, range: (low / 1e6, high / 1e6) }
    };
    Bars { caption, bars: series.iter().map(bar).collect() }
}

/// The bars that are a subcommand's own.
fn bars(report: &Report) -> Vec<Bars> {
    let of_adaption = report.adaption.iter().map(adaption_bars);
    let of_written = match &report.chameleon {
        Some(Chameleon::Written(written)) => Some(written_bars(written)),
        _ => None,
    };
    of_adaption.chain(of_written).collect()
}

/// A bar for each mix and division.
fn adaption_bars(adaption: &Adaption) -> Bars {
    let bar = |row: &AdaptionRow| Bar {
        label: format!("{} gets, {}", row.gets_per_insert, row.division),
        middle: row.ops_per_second / 1e6,
        range: (row.ops_per_second_min / 1e6, row.ops_per_second_max / 1e6),
    };
    let threads = adaption.threads;
    let caption = format!(
        "M operations/s of {threads} threads by gets for each insert, and threads that serve/apply"
    );
    Bars { caption, bars: adaption.rows.iter().map(bar).collect() }
}

/// A bar for each way of compacting and kind of puts, and one for each formula.
fn written_bars(written: &Written) -> Bars {
    let bar = |label: String, middle: f64| Bar { label, middle, range: (middle, middle) };
    let of_row = |row: &AmplificationRow| {
        let name = format!("{}, {}", row.compaction, row.puts_of);
        let formula =
            row.formula.map(|formula| bar(format!("{}, formula", row.compaction), formula));
        [Some(bar(name, row.amplification)), formula]
    };
    let bars = written.amplifications.iter().flat_map(of_row).flatten().collect();
    Bars { caption: "bytes of the index written for each of an entry".to_owned(), bars }
}

/// Latency by percentile, the tail stretched: the axis is the number of nines.
fn latency(area: &Area<'_>, report: &Report, series: &[Series]) -> Drawn {
    let nines = |percentile: f64| -(1.0 - percentile / 100.0).log10();
    let at = |one: &Series, percentile| one.latencies.value_at_percentile(percentile).max(1) as f64;
    let highest = series.iter().map(|one| at(one, 99.99)).fold(10.0, f64::max);
    let lowest = series.iter().map(|one| at(one, 0.0)).fold(highest, f64::min);
    let mut chart = ChartBuilder::on(area)
        .caption("latency by percentile, ns", ("sans-serif", 18))
        .margin(10)
        .x_label_area_size(30)
        .y_label_area_size(70)
        .build_cartesian_2d(0.0..4.0, (lowest * 0.8..highest * 1.2).log_scale())?;
    let percentile = |nines: &f64| {
        format!("p{:.4}", 100.0 * (1.0 - 10_f64.powf(-nines)))
            .trim_end_matches('0')
            .trim_end_matches('.')
            .to_owned()
    };
    chart.configure_mesh().x_labels(5).x_label_formatter(&percentile).draw()?;
    for (index, one) in series.iter().enumerate() {
        let colour = Palette99::pick(index).to_rgba();
        let points = PERCENTILES.map(|percentile| (nines(percentile), at(one, percentile)));
        chart
            .draw_series(LineSeries::new(points, colour.stroke_width(2)))?
            .label(label(report, one))
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .label_font(("sans-serif", 11))
        .draw()?;
    Ok(())
}

/// What a series is called: its threads and its engine only where others have others.
fn label(report: &Report, series: &Series) -> String {
    let mut label = series.operation.clone();
    if report.stores.len() > 1 {
        label = format!("{label} {}", series.engine);
    }
    if series.threads > 1 { format!("{label} x{}", series.threads) } else { label }
}

/// Lines over a number, such as that of records.
#[derive(Clone, Debug)]
pub struct Curve {
    /// What it shows.
    pub caption: String,
    /// Names and points.
    pub lines: Vec<(String, Vec<(f64, f64)>)>,
}

/// The lines that a report has.
fn curves(report: &Report) -> Vec<Curve> {
    let mut curves = Vec::new();
    if let Some(memory) = &report.memory {
        let point = |records: u64, bytes: f64| (records as f64 / 1e6, bytes);
        let said = |it: &MemorySample| point(it.records, it.dram_bytes_per_key);
        let found = |it: &MemorySample| Some(point(it.records, it.resident_bytes_per_key?));
        curves.push(Curve {
            caption: "DRAM bytes per key by M records".to_owned(),
            lines: vec![
                ("by its own account".to_owned(), memory.samples.iter().map(said).collect()),
                ("resident".to_owned(), memory.samples.iter().filter_map(found).collect()),
            ],
        });
    }
    if report.command == "recovery" {
        let mut curve =
            Curve { caption: "recovery, ms by M records".to_owned(), lines: Vec::new() };
        for row in &report.recovery {
            let name = format!("{} threads", row.threads);
            let point = (row.records as f64 / 1e6, row.duration_ns / 1e6);
            curve.add(&name, point);
        }
        curves.push(curve);
    }
    match &report.chameleon {
        Some(Chameleon::Restart(restart)) => curves.extend(restart_curves(restart)),
        Some(Chameleon::Bursts(bursts)) => curves.extend(bursts_curves(bursts)),
        Some(Chameleon::Written(written)) => curves.push(written_curve(written)),
        _ => {}
    }
    curves
}

/// From opening a store to the first answer, and to a complete index, by the number of records.
fn restart_curves(restart: &Restart) -> [Curve; 2] {
    let curve = |caption: &str| Curve { caption: caption.to_owned(), lines: Vec::new() };
    let mut first = curve("first answer after opening, ms by M records");
    let mut complete = curve("complete bypass indexes after opening, ms by M records");
    for row in &restart.rows {
        let records = row.records as f64 / 1e6;
        first.add(&row.side, (records, row.first_answer_ns / 1e6));
        if let Some(complete_ns) = row.complete_ns {
            complete.add(&row.side, (records, complete_ns / 1e6));
        }
    }
    [first, complete]
}

/// The tail of gets, and what was done, over time.
fn bursts_curves(bursts: &Bursts) -> [Curve; 2] {
    let curve = |caption: &str| Curve { caption: caption.to_owned(), lines: Vec::new() };
    let mut tails = curve("99th percentile of gets, us by s");
    let mut rates = curve("M operations/s by s");
    for window in &bursts.windows {
        let at = window.from_ms / 1e3;
        tails.add(&window.side, (at, window.get_p99_ns as f64 / 1e3));
        rates.add(&format!("{} gets", window.side), (at, window.gets_per_second / 1e6));
        rates.add(&format!("{} puts", window.side), (at, window.puts_per_second / 1e6));
    }
    [tails, rates]
}

/// What goes to media, by the size of values.
fn written_curve(written: &Written) -> Curve {
    let caption =
        "bytes written to media for each of the user, by binary logarithm of the size of values";
    let mut curve = Curve { caption: caption.to_owned(), lines: Vec::new() };
    for row in &written.rows {
        let per_byte = ratio(row.media_written as f64, row.user_bytes as f64);
        curve.add(&row.side, (f64::from(row.value_bytes).log2(), per_byte));
    }
    curve
}

impl Curve {
    /// A further point of a line.
    pub fn add(&mut self, name: &str, point: (f64, f64)) {
        match self.lines.iter_mut().find(|line| line.0 == name) {
            Some(line) => line.1.push(point),
            None => self.lines.push((name.to_owned(), vec![point])),
        }
    }

    fn draw(&self, area: &Area<'_>) -> Drawn {
        let points = || self.lines.iter().flat_map(|line| &line.1);
        let right = points().map(|point| point.0).fold(0.0, f64::max).max(1e-6);
        let top = points().map(|point| point.1).fold(0.0, f64::max).max(1e-6);
        let mut chart = ChartBuilder::on(area)
            .caption(&self.caption, ("sans-serif", 18))
            .margin(10)
            .x_label_area_size(30)
            .y_label_area_size(60)
            .build_cartesian_2d(0.0..right * 1.05, 0.0..top * 1.1)?;
        chart.configure_mesh().draw()?;
        for (index, (name, points)) in self.lines.iter().enumerate() {
            let colour = Palette99::pick(index).to_rgba();
            // A line with one point is not to be seen.
            let dot = |point: &(f64, f64)| Circle::new(*point, 3, colour.filled());
            chart.draw_series(points.iter().map(dot))?;
            chart
                .draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(2)))?
                .label(name)
                .legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(2))
                });
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
            .background_style(WHITE.mix(0.8))
            .draw()?;
        Ok(())
    }
}
