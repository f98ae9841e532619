//! [`Exposition`]: metrics as OpenMetrics text (the format that Prometheus and others read).

use std::fmt::{self, Display, Write as _};

use super::histogram::Distribution;

/// Bounds of buckets, in nanoseconds: two to each power of two, from 64 ns to about a second.
const BOUND_EXPONENTS: std::ops::Range<u32> = 6..30;

/// What a family of metrics is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Only grows while the store is open.
    Counter,
    Gauge,
    Histogram,
    /// A fact in words: labels, and the value 1.
    Info,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Info => "info",
        }
    }

    /// What follows the family's name in that of a sample.
    fn suffix(self) -> &'static str {
        match self {
            Self::Counter => "_total",
            Self::Info => "_info",
            Self::Gauge | Self::Histogram => "",
        }
    }
}

/// Names and values of labels.
pub(crate) type Labels<'a> = [(&'a str, &'a str)];

/// Metrics as text, growing.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    text: String,
}

impl Exposition {
    /// Begins a family. Its samples follow, before another one begins. A name that ends in a unit of
    /// measurement says so by itself.
    pub(crate) fn family(&mut self, name: &'static str, kind: Kind, help: &str) -> Family<'_> {
        let text = &mut self.text;
        line(text, format_args!("# TYPE {name} {}", kind.name()));
        let unit = ["seconds", "bytes", "ratio"]
            .iter()
            .find(|unit| name.strip_suffix(**unit).is_some_and(|before| before.ends_with('_')));
        if let Some(unit) = unit {
            line(text, format_args!("# UNIT {name} {unit}"));
        }
        line(text, format_args!("# HELP {name} {help}"));
        Family { text, name, kind }
    }

    /// A family with one sample.
    pub(crate) fn single(
        &mut self,
        name: &'static str,
        kind: Kind,
        help: &str,
        value: impl Number,
    ) {
        self.family(name, kind, help).sample(&[], value);
    }

    /// The whole text.
    pub(crate) fn finish(mut self) -> String {
        self.text.push_str("# EOF\n");
        self.text
    }
}

/// A family whose samples are being written.
#[derive(Debug)]
pub(crate) struct Family<'a> {
    text: &'a mut String,
    name: &'static str,
    kind: Kind,
}

impl Family<'_> {
    /// A sample.
    pub(crate) fn sample(&mut self, labels: &Labels<'_>, value: impl Number) -> &mut Self {
        self.part(self.kind.suffix(), labels, &value.shown());
        self
    }

    /// The samples of one histogram of latencies.
    pub(crate) fn latencies(&mut self, labels: &Labels<'_>, latencies: &Distribution) -> &mut Self {
        for bound_ns in bounds_ns() {
            let bound = seconds(bound_ns).to_string();
            let with_bound = [labels, &[("le", &*bound)]].concat();
            self.part("_bucket", &with_bound, &latencies.below(bound_ns).shown());
        }
        // Counted once: while sessions go on, another count would be another number.
        let samples = latencies.samples().shown();
        self.part("_bucket", &[labels, &[("le", "+Inf")]].concat(), &samples);
        self.part("_count", labels, &samples);
        self.part("_sum", labels, &seconds(latencies.sum_ns()).shown());
        self
    }

    fn part(&mut self, suffix: &str, labels: &Labels<'_>, value: &str) {
        let name = self.name;
        line(self.text, format_args!("{name}{suffix}{} {value}", LabelSet(labels)));
    }
}

/// Bounds of the buckets, each where one of the histogram's own begins.
fn bounds_ns() -> impl Iterator<Item = u64> {
    BOUND_EXPONENTS.flat_map(|exponent| [2 << (exponent - 1), 3 << (exponent - 1)]).chain([1 << 30])
}

/// Nanoseconds in the unit of metrics.
pub(crate) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// A value of a sample.
pub(crate) trait Number: Copy {
    /// As the format wants it.
    fn shown(&self) -> String;
}

impl Number for u64 {
    fn shown(&self) -> String {
        self.to_string()
    }
}

impl Number for f64 {
    fn shown(&self) -> String {
        if self.is_finite() { self.to_string() } else { "NaN".to_owned() }
    }
}

impl Number for bool {
    fn shown(&self) -> String {
        u64::from(*self).to_string()
    }
}

/// Labels in braces; nothing where there are none.
struct LabelSet<'a>(&'a Labels<'a>);

impl Display for LabelSet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (name, value)) in self.0.iter().enumerate() {
            let value = value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
            write!(f, "{}{name}=\"{value}\"", if number == 0 { '{' } else { ',' })?;
        }
        f.write_str(if self.0.is_empty() { "" } else { "}" })
    }
}

fn line(text: &mut String, line: fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "{line}");
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::histogram::{Histogram, bounds_of, bucket_of};
    use super::super::published::Published;
    use super::*;

    #[test]
    fn bounds_grow_and_are_those_of_buckets() {
        let bounds: Vec<_> = bounds_ns().collect();
        assert_eq!((bounds[0], bounds[1], bounds[2]), (64, 96, 128));
        assert!(bounds.is_sorted() && bounds.last() == Some(&(1 << 30)));
        for bound in bounds {
            assert_eq!(*bounds_of(bucket_of(bound)).start(), bound);
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let histogram = Histogram::new();
        for ns in [1, 63, 64, 100, 5_000, u64::MAX / 2] {
            histogram.record(ns);
        }
        let mut latencies = Distribution::default();
        latencies.add(&histogram);
        let mut exposition = Exposition::default();
        exposition.single("a_bytes", Kind::Gauge, "Bytes.", 7_u64);
        exposition.family("b", Kind::Info, "Words.").sample(&[("c", "a \"\\\n")], true);
        exposition
            .family("d_seconds", Kind::Histogram, "Times.")
            .latencies(&[("operation", "x")], &latencies)
            .latencies(&[("operation", "y")], &Distribution::default());
        exposition.single("e_ratio", Kind::Gauge, "Nothing.", f64::NAN);
        let text = exposition.finish();
        let read = Published::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(read.value("a_bytes", &[]), Some(7.0));
        assert_eq!(read.value("b_info", &[("c", "a \"\\\n")]), Some(1.0));
        let bucket = |bound| read.value("d_seconds_bucket", &[("operation", "x"), ("le", bound)]);
        assert_eq!(bucket("0.000000064"), Some(2.0), "{text}");
        assert_eq!(bucket("0.000000096"), Some(3.0));
        assert_eq!((bucket("1.073741824"), bucket("+Inf")), (Some(5.0), Some(6.0)));
        assert!(read.value("e_ratio", &[]).is_some_and(f64::is_nan));
    }
}
