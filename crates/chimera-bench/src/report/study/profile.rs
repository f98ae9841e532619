//! The profile of each layout, as the paper's Figure 15: how near it comes to the best in every operation.

use std::fmt::Write;

use chimera_primitives::layout::LayoutKind;

use super::svg::{STYLE, escape};
use crate::results::statistics::ratio;
use crate::results::study::{Study, StudyRow};

/// The size that is compared: the paper recommends nodes of up to 1 KiB (I6).
const NODE_BYTES: u32 = 1024;
/// Experiments of layouts, with what they are called in the chart, and whether they write.
const SPOKES: [(&str, &str, bool); 9] = [
    ("E1", "search", false),
    ("E3", "iterate", false),
    ("E4", "insert", true),
    ("E5", "split", true),
    ("E8", "erase", true),
    ("E9", "balance", true),
    ("E10", "merge", true),
    ("E11", "recover", false),
    ("size", "entries", false),
];

const WIDTH: f64 = 300.0;
const BAR: f64 = 9.0;
const STEP: f64 = 26.0;
const TOP: f64 = 34.0;
const LEFT: f64 = 66.0;

/// What it is of, and the scores of time and of bytes.
type Bar<'a> = (&'a str, Option<f64>, Option<f64>);

/// The best of a layout's ways, as a mean over positions.
fn of_layout(
    study: &Study,
    experiment: &str,
    kind: LayoutKind,
    value: fn(&StudyRow) -> f64,
) -> Option<f64> {
    let name = kind.to_string();
    let rows = study.rows.iter().filter(|row| {
        row.experiment == experiment
            && row.size == NODE_BYTES
            && row.layout.as_ref() == Some(&name)
            && !row.contender.contains("node ")
    });
    let mut ways: std::collections::BTreeMap<&str, Vec<f64>> = std::collections::BTreeMap::new();
    rows.for_each(|row| ways.entry(&row.contender).or_default().push(value(row)));
    let means = ways.values().map(|values| ratio(values.iter().sum(), values.len() as f64));
    means.min_by(f64::total_cmp)
}

/// The best value of all layouts over that of each, 1 for the best one.
fn scores(values: &[Option<f64>]) -> Vec<Option<f64>> {
    let best = values.iter().flatten().copied().min_by(f64::total_cmp);
    values.iter().map(|value| Some(ratio(best?, (*value)?))).collect()
}

/// The chart: a panel for each layout.
pub(crate) fn profile(study: &Study, is_alone: bool) -> Option<String> {
    let mut panels: Vec<Vec<Bar<'_>>> = vec![Vec::new(); LayoutKind::ALL.len()];
    for (experiment, name, writes) in SPOKES {
        let of = |value: fn(&StudyRow) -> f64| {
            LayoutKind::ALL.map(|kind| of_layout(study, experiment, kind, value))
        };
        let (times, bytes) = if experiment == "size" {
            let shape = |kind| chimera_primitives::layout::NodeShape::published(kind, NODE_BYTES);
            let entries = LayoutKind::ALL.map(|kind| {
                let geometry = chimera_primitives::layout::Geometry::new(shape(kind)).ok()?;
                Some(1.0 / geometry.entries as f64)
            });
            (scores(&entries), vec![None; panels.len()])
        } else {
            let times = scores(&of(|row| row.uncached.median_ns));
            let bytes = if writes {
                scores(&of(|row| row.counters.bytes_modified))
            } else {
                vec![None; panels.len()]
            };
            (times, bytes)
        };
        for (panel, (time, bytes)) in panels.iter_mut().zip(times.into_iter().zip(bytes)) {
            panel.push((name, time, bytes));
        }
    }
    if panels
        .iter()
        .flatten()
        .filter(|(name, time, _)| *name != "entries" && time.is_some())
        .count()
        == 0
    {
        return None;
    }
    Some(draw(&panels, is_alone))
}

fn draw(panels: &[Vec<Bar<'_>>], is_alone: bool) -> String {
    let height = TOP + SPOKES.len() as f64 * STEP + 14.0;
    let (whole_width, whole_height) = (3.0 * WIDTH, 2.0 * height + 42.0);
    let style = if is_alone { STYLE } else { "" };
    let mut out = String::new();
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {whole_width} {whole_height}\" role=\"img\" aria-label=\"Profile of each layout\">{style}"
    );
    for (number, (kind, panel)) in LayoutKind::ALL.iter().zip(panels).enumerate() {
        let (x, y) = ((number % 3) as f64 * WIDTH, (number / 3) as f64 * height);
        let _ = write!(
            out,
            "<g transform=\"translate({x},{y})\"><text x=\"{LEFT}\" y=\"20\" font-weight=\"600\">{}</text>",
            escape(kind.name())
        );
        for (line, (name, time, bytes)) in panel.iter().enumerate() {
            let at = TOP + line as f64 * STEP;
            let _ = write!(
                out,
                "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{name}</text>",
                LEFT - 6.0,
                at + 12.0
            );
            for (offset, colour, score) in [(0.0, "#4e79d7", time), (BAR + 1.0, "#e8762d", bytes)] {
                let Some(score) = score else { continue };
                let width = score.clamp(0.0, 1.0) * (WIDTH - LEFT - 50.0);
                let _ = write!(
                    out,
                    "<rect x=\"{LEFT}\" y=\"{}\" width=\"{width:.1}\" height=\"{BAR}\" fill=\"{colour}\"/><text x=\"{:.1}\" y=\"{}\" style=\"font-size:10px\">{score:.2}</text>",
                    at + offset,
                    LEFT + width + 4.0,
                    at + offset + BAR
                );
            }
        }
        out.push_str("</g>");
    }
    for (row, (colour, what)) in [
        (
            "#4e79d7",
            "time of the best layout over this one's (entries: this one's over the most), 1 KiB, uncached",
        ),
        ("#e8762d", "the same of bytes modified"),
    ]
    .into_iter()
    .enumerate()
    {
        let y = whole_height - 24.0 + row as f64 * 16.0;
        let _ = write!(
            out,
            "<rect x=\"10\" y=\"{}\" width=\"12\" height=\"9\" fill=\"{colour}\"/><text x=\"26\" y=\"{y}\">{what}</text>",
            y - 9.0
        );
    }
    out.push_str("</svg>");
    out
}
