//! Figures of the study as SVG, readable on light and on dark ground: text has the colour of its surroundings.

use std::collections::BTreeSet;
use std::fmt::Write;

use chimera_primitives::operation::Experiment;

use crate::results::study::{Study, StudyRow};

const WIDTH: f64 = 400.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 58.0;
const BOTTOM: f64 = 44.0;
const TOP: f64 = 30.0;
/// Width of the names beside all panels.
const LEGEND: f64 = 330.0;
/// Height of a name.
const LINE: f64 = 17.0;

/// Colours that are told apart on either ground, and dashes for more lines than colours.
const COLOURS: [&str; 9] = [
    "#4e79d7", "#e8762d", "#2fa36b", "#d64550", "#8e6bd0", "#a8742f", "#d06bb3", "#7d8590",
    "#20a4b8",
];

/// The look of a figure that stands alone; on a page, the page has it.
pub(super) const STYLE: &str = "<style>text{font:12px system-ui,sans-serif;fill:#1f2328}.axis{stroke:#8c959f;fill:none}\
.grid{stroke:#8c959f;stroke-opacity:.25}@media(prefers-color-scheme:dark){text{fill:#e6edf3}}</style>";

/// One panel: lines over sizes.
struct Panel {
    caption: String,
    unit: &'static str,
    /// What the panel shows of a row.
    value: fn(&StudyRow) -> f64,
    position: String,
}

/// Text as it may stand in markup.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A size as people say it.
fn size(experiment: &str, size: u32) -> String {
    match size {
        size if experiment == "E2" => size.to_string(),
        size if size >= 1024 => format!("{} K", size / 1024),
        size => format!("{size} B"),
    }
}

/// The figure of an experiment; none where nothing was measured.
pub(crate) fn figure(study: &Study, experiment: Experiment, is_alone: bool) -> Option<String> {
    let name = experiment.to_string();
    let rows: Vec<&StudyRow> = study.rows.iter().filter(|row| row.experiment == name).collect();
    if rows.is_empty() {
        return None;
    }
    let panels = panels(study, experiment, &rows);
    let mut names: Vec<&str> = Vec::new();
    for row in &rows {
        if !names.contains(&&*row.contender) {
            names.push(&row.contender);
        }
    }
    let columns = panels.len().min(3);
    let lines = panels.len().div_ceil(columns);
    let width = columns as f64 * WIDTH + LEGEND;
    let height = (lines as f64 * HEIGHT).max(names.len() as f64 * LINE + TOP);
    let mut out = String::new();
    let style = if is_alone { STYLE } else { "" };
    let title = format!("{name}: {}", experiment.title());
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">{style}",
        escape(&title)
    );
    for (number, panel) in panels.iter().enumerate() {
        let (x, y) = ((number % columns) as f64 * WIDTH, (number / columns) as f64 * HEIGHT);
        let _ = write!(out, "<g transform=\"translate({x},{y})\">");
        panel.draw(&mut out, experiment, &rows, &names);
        out.push_str("</g>");
    }
    for (number, name) in names.iter().enumerate() {
        let (x, y) = (columns as f64 * WIDTH + 12.0, TOP + number as f64 * LINE);
        let (colour, dash) = look(number);
        let _ = write!(
            out,
            "<path d=\"M{x} {y}h22\" stroke=\"{colour}\" stroke-width=\"2.5\"{dash}/><text x=\"{}\" y=\"{}\">{}</text>",
            x + 28.0,
            y + 4.0,
            escape(name)
        );
    }
    out.push_str("</svg>");
    Some(out)
}

fn look(number: usize) -> (&'static str, &'static str) {
    let dash = if number >= COLOURS.len() { " stroke-dasharray=\"5 3\"" } else { "" };
    (COLOURS[number % COLOURS.len()], dash)
}

/// A panel of times for each position, one of cached times, and one of bytes for what writes.
fn panels(study: &Study, experiment: Experiment, rows: &[&StudyRow]) -> Vec<Panel> {
    let modelled = if study.modelled { ", modelled" } else { "" };
    let unit = experiment.unit();
    let mut positions: Vec<&str> = Vec::new();
    for row in rows {
        if !positions.contains(&&*row.position) {
            positions.push(&row.position);
        }
    }
    let caption = |what: &str, position: &str| {
        let position = if position.is_empty() { String::new() } else { format!(", {position}") };
        format!("{what}{position}{modelled}")
    };
    let of = |what, value, unit, position: &str| Panel {
        caption: caption(what, position),
        unit,
        value,
        position: position.to_owned(),
    };
    let per = match unit {
        "level" => "ns per level",
        "node" => "ns per node",
        _ => "ns",
    };
    let mut panels = Vec::new();
    for position in &positions {
        panels.push(of("uncached", |row| row.uncached.median_ns, per, position));
    }
    for position in &positions {
        panels.push(of("cached", |row| row.cached.median_ns, per, position));
    }
    if rows.iter().any(|row| row.counters.bytes_modified > 0.0) {
        for position in &positions {
            panels.push(of("modified", |row| row.counters.bytes_modified, "bytes", position));
        }
    } else {
        for position in &positions {
            panels.push(of("lines read", |row| row.counters.lines_read, "lines", position));
        }
    }
    panels
}

/// Where sizes and values lie in a panel.
struct Scale {
    sizes: Vec<u32>,
    /// Powers of ten at the bottom and at the top.
    low: f64,
    high: f64,
}

const RIGHT: f64 = WIDTH - 14.0;
const FLOOR: f64 = HEIGHT - BOTTOM;

impl Scale {
    fn of(rows: &[&&StudyRow], value: fn(&StudyRow) -> f64) -> Self {
        let sizes = rows.iter().map(|row| row.size).collect::<BTreeSet<_>>();
        let values = rows.iter().map(|row| value(row)).filter(|value| *value > 0.0);
        let (least, most) = values
            .fold((f64::MAX, 1.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        let low = least.min(most).log10().floor();
        let high = most.log10().ceil().max(low + 1.0);
        Self { sizes: sizes.into_iter().collect(), low, high }
    }

    fn x(&self, at: usize) -> f64 {
        let step = (RIGHT - LEFT - 24.0) / (self.sizes.len().max(2) - 1) as f64;
        LEFT + 12.0 + at as f64 * step
    }

    fn y(&self, value: f64) -> f64 {
        FLOOR - (value.log10() - self.low) / (self.high - self.low) * (FLOOR - TOP)
    }
}

impl Panel {
    /// Draws axes with a logarithmic scale, and a line for each name.
    fn draw(&self, out: &mut String, experiment: Experiment, rows: &[&StudyRow], names: &[&str]) {
        let rows: Vec<&&StudyRow> =
            rows.iter().filter(|row| row.position == self.position).collect();
        let scale = Scale::of(&rows, self.value);
        self.draw_axes(out, experiment, &scale);
        for (number, name) in names.iter().enumerate() {
            let (colour, dash) = look(number);
            let point = |(at, size): (usize, &u32)| {
                let row = rows.iter().find(|row| row.size == *size && row.contender == *name)?;
                let value = (self.value)(row);
                (value > 0.0).then(|| format!("{:.1},{:.1}", scale.x(at), scale.y(value)))
            };
            let points: Vec<String> = scale.sizes.iter().enumerate().filter_map(point).collect();
            if points.is_empty() {
                continue;
            }
            let _ = write!(
                out,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dash}><title>{}</title></polyline>",
                points.join(" "),
                escape(name)
            );
        }
    }

    fn draw_axes(&self, out: &mut String, experiment: Experiment, scale: &Scale) {
        let _ = write!(
            out,
            "<text x=\"{LEFT}\" y=\"16\" font-weight=\"600\">{}</text>\
             <path class=\"axis\" d=\"M{LEFT} {TOP}V{FLOOR}H{RIGHT}\" stroke=\"#8c959f\" fill=\"none\"/>",
            escape(&self.caption)
        );
        for power in scale.low as i32..=scale.high as i32 {
            let at = scale.y(10_f64.powi(power));
            let label = if power < 0 {
                format!("{:.2}", 10_f64.powi(power))
            } else {
                format!("{}", 10_u64.pow(power as u32))
            };
            let _ = write!(
                out,
                "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{RIGHT}\" stroke=\"#8c959f\" stroke-opacity=\".25\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                LEFT - 6.0,
                at + 4.0
            );
        }
        for (at, of) in scale.sizes.iter().enumerate() {
            let label = size(&experiment.to_string(), *of);
            let _ = write!(
                out,
                "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
                scale.x(at),
                FLOOR + 17.0
            );
        }
        let _ = write!(
            out,
            "<text x=\"{RIGHT}\" y=\"{}\" text-anchor=\"end\">{} (log), by {}</text>",
            FLOOR + 34.0,
            self.unit,
            experiment.size_is()
        );
    }
}
