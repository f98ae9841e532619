//! Bar charts as SVG, readable on light and on dark ground: text has the colour of its surroundings.

use std::fmt::Write;

const WIDTH: f64 = 1080.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 64.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 40.0;
const RIGHT: f64 = 150.0;
/// The share of a group's width that its bars take.
const FILLED: f64 = 0.78;

/// Colours that are told apart on either ground.
const COLOURS: [&str; 9] = [
    "#4e79d7", "#d64550", "#2fa36b", "#e8762d", "#8e6bd0", "#a8742f", "#d06bb3", "#20a4b8",
    "#7d8590",
];

/// Bars in groups.
#[derive(Clone, Debug)]
pub(super) struct Chart {
    /// What it shows.
    pub(super) title: String,
    /// The unit of the values.
    pub(super) unit: &'static str,
    /// A bar of each in every group.
    pub(super) series: Vec<String>,
    /// Names of groups, and their values in the order of the series.
    pub(super) groups: Vec<(String, Vec<f64>)>,
    /// Whether each step of the scale is ten times the one before.
    pub(super) is_logarithmic: bool,
}

/// Text as it may stand in markup.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Values and where they are drawn.
struct Scale {
    low: f64,
    high: f64,
    is_logarithmic: bool,
}

impl Scale {
    fn of(chart: &Chart) -> Self {
        let values = || chart.groups.iter().flat_map(|(_, values)| values).copied();
        let most = values().fold(0.0, f64::max).max(1e-9);
        if chart.is_logarithmic {
            let least = values().filter(|value| *value > 0.0).fold(most, f64::min);
            let low = least.log10().floor();
            return Self { low, high: most.log10().ceil().max(low + 1.0), is_logarithmic: true };
        }
        Self { low: 0.0, high: nice(most), is_logarithmic: false }
    }

    fn y(&self, value: f64) -> f64 {
        let at = if self.is_logarithmic { value.max(1e-9).log10() } else { value };
        let floor = HEIGHT - BOTTOM;
        floor - ((at - self.low) / (self.high - self.low)).clamp(0.0, 1.0) * (floor - TOP)
    }

    /// Values with a line across.
    fn ticks(&self) -> Vec<f64> {
        if self.is_logarithmic {
            return (self.low as i32..=self.high as i32).map(|power| 10_f64.powi(power)).collect();
        }
        (0..=4).map(|part| self.high * f64::from(part) / 4.0).collect()
    }
}

/// The next number that begins with 1, 2, 4 or 8.
fn nice(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 4.0, 8.0, 10.0];
    steps.into_iter().map(|step| step * power).find(|step| *step >= value).unwrap_or(value)
}

/// A number with as many digits as it needs.
pub(super) fn short(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{:.1} M", value / 1e6),
        value if value >= 1e4 => format!("{:.0} k", value / 1e3),
        value if value >= 100.0 || value == 0.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

impl Chart {
    /// The chart; nothing where there is no value.
    pub(super) fn draw(&self) -> Option<String> {
        if self.groups.is_empty() || self.series.is_empty() {
            return None;
        }
        let scale = Scale::of(self);
        let mut out = String::new();
        let _ = write!(
            out,
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{0}\">\
             <text x=\"{LEFT}\" y=\"18\" font-weight=\"600\">{0} ({1})</text>",
            escape(&self.title),
            self.unit
        );
        for tick in scale.ticks() {
            let y = scale.y(tick);
            let _ = write!(
                out,
                "<path d=\"M{LEFT} {y:.1}H{}\" stroke=\"#8c959f\" stroke-opacity=\".3\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 6.0,
                y + 4.0,
                short(tick)
            );
        }
        self.draw_bars(&mut out, &scale);
        self.draw_names(&mut out);
        out.push_str("</svg>");
        Some(out)
    }

    fn draw_bars(&self, out: &mut String, scale: &Scale) {
        let group_width = (WIDTH - LEFT - RIGHT) / self.groups.len() as f64;
        let bar_width = group_width * FILLED / self.series.len() as f64;
        let floor = HEIGHT - BOTTOM;
        for (at, (name, values)) in self.groups.iter().enumerate() {
            let left = LEFT + at as f64 * group_width + group_width * (1.0 - FILLED) / 2.0;
            for (number, value) in values.iter().enumerate().filter(|(_, value)| **value > 0.0) {
                let y = scale.y(*value);
                let _ = write!(
                    out,
                    "<rect x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\"><title>{}, {}: {} {}</title></rect>",
                    left + number as f64 * bar_width,
                    bar_width * 0.92,
                    (floor - y).max(1.0),
                    COLOURS[number % COLOURS.len()],
                    escape(name),
                    escape(self.series.get(number).map_or("", String::as_str)),
                    short(*value),
                    self.unit
                );
            }
            let _ = write!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                left + group_width * FILLED / 2.0,
                floor + 18.0,
                escape(name)
            );
        }
    }

    fn draw_names(&self, out: &mut String) {
        for (number, name) in self.series.iter().enumerate() {
            let y = TOP + number as f64 * 18.0;
            let _ = write!(
                out,
                "<rect x=\"{}\" y=\"{y}\" width=\"12\" height=\"12\" fill=\"{}\"/><text x=\"{}\" y=\"{}\">{}</text>",
                WIDTH - RIGHT + 12.0,
                COLOURS[number % COLOURS.len()],
                WIDTH - RIGHT + 30.0,
                y + 10.0,
                escape(name)
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(is_logarithmic: bool) -> Chart {
        Chart {
            title: "a <b>".to_owned(),
            unit: "us",
            series: vec!["one".to_owned(), "two".to_owned()],
            groups: vec![("x".to_owned(), vec![1.0, 100.0]), ("y".to_owned(), vec![0.0, 7.0])],
            is_logarithmic,
        }
    }

    #[test]
    fn each_value_has_a_bar_and_none_has_none() {
        for is_logarithmic in [false, true] {
            let drawn = chart(is_logarithmic).draw().unwrap();
            assert_eq!(drawn.matches("<title>").count(), 3, "{drawn}");
            assert!(drawn.contains("a &lt;b&gt;") && !drawn.contains("NaN"));
        }
        assert!(Chart { groups: vec![], ..chart(false) }.draw().is_none());
    }

    #[test]
    fn larger_values_are_higher() {
        for is_logarithmic in [false, true] {
            let scale = Scale::of(&chart(is_logarithmic));
            assert!(scale.y(100.0) < scale.y(7.0) && scale.y(7.0) < scale.y(1.0));
            assert!(scale.y(100.0) >= TOP && scale.y(1.0) <= HEIGHT - BOTTOM);
        }
    }
}
