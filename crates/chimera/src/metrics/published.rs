//! [`Published`]: OpenMetrics text, read back and checked.

use std::collections::{BTreeMap, BTreeSet};

/// Why a text is not taken for metrics.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the metrics: {what}")]
pub struct NotMetrics {
    /// Number of the line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: &'static str,
}

/// A sample: a name, labels in order of their names, a value.
type Key = (String, Labels);

/// Metrics that a store has published.
///
/// ```
/// use chimera::metrics::Published;
///
/// let text = "# TYPE a counter\n# HELP a Things.\na_total{kind=\"b\"} 7\n# EOF\n";
/// let metrics = Published::parse(text)?;
/// assert_eq!(metrics.value("a_total", &[("kind", "b")]), Some(7.0));
/// # Ok::<_, chimera::metrics::NotMetrics>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Published {
    samples: BTreeMap<Key, f64>,
}

/// Names and values of labels.
type Labels = Vec<(String, String)>;

/// The family that samples are being read of.
#[derive(Default)]
struct Family {
    name: String,
    kind: String,
    has_samples: bool,
}

impl Published {
    /// Reads a whole text.
    ///
    /// # Errors
    /// When it breaks a rule of the format: families declared once and not interleaved, samples with
    /// the suffix of their family's type and only once, units at the end of names, buckets that are
    /// cumulative and end with all, a mark at the end.
    pub fn parse(text: &str) -> Result<Self, NotMetrics> {
        let mut published = Self::default();
        let mut names = BTreeSet::new();
        let mut family = Family::default();
        let mut lines = text.split_inclusive('\n').enumerate();
        for (number, line) in lines.by_ref() {
            let wrong = |what| NotMetrics { line: number + 1, what };
            let line = line.strip_suffix('\n').ok_or(wrong("it does not end"))?;
            if line == "# EOF" {
                let rest = lines.next();
                published.check_histograms().map_err(wrong)?;
                return rest.map_or(Ok(published), |_| Err(wrong("something follows the end")));
            }
            let read = match line.strip_prefix("# ") {
                Some(about) => family.declare(about, &mut names),
                None => family.sample(line).and_then(|(key, value)| {
                    let old = published.samples.insert(key, value);
                    old.map_or(Ok(()), |_| Err("the sample is there twice"))
                }),
            };
            read.map_err(wrong)?;
        }
        Err(NotMetrics { line: text.lines().count(), what: "the mark of the end is missing" })
    }

    /// The value of a sample; the labels in any order.
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let mut labels: Vec<_> = labels.iter().map(owned).collect();
        labels.sort_unstable();
        self.samples.get(&(name.to_owned(), labels)).copied()
    }

    /// The value of one label of a sample that has it, whatever its other labels: of `_info` samples.
    pub fn label(&self, name: &str, label: &str) -> Option<&str> {
        let mut labels = self.samples.keys().filter(|key| key.0 == name).flat_map(|key| &key.1);
        labels.find(|(found, _)| found == label).map(|(_, value)| &**value)
    }

    /// All samples: names, labels in order of their names, values.
    pub fn samples(&self) -> impl Iterator<Item = (&str, &[(String, String)], f64)> {
        self.samples.iter().map(|((name, labels), value)| (&**name, &**labels, *value))
    }

    /// The buckets of a histogram.
    pub fn buckets(&self, name: &str, labels: &[(&str, &str)]) -> Buckets {
        let name = format!("{name}_bucket");
        let mut counts = Vec::new();
        for ((_, found), count) in self.samples.iter().filter(|(key, _)| key.0 == name) {
            let is_wanted = |label: &(String, String)| {
                label.0 == "le" || labels.contains(&(&*label.0, &*label.1))
            };
            let bound = found.iter().find(|label| label.0 == "le").and_then(|le| number(&le.1));
            if let Some(bound) = bound
                && found.len() == labels.len() + 1
                && found.iter().all(is_wanted)
            {
                counts.push((bound, *count));
            }
        }
        counts.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
        Buckets { counts }
    }

    /// That buckets are cumulative, and the last one has all.
    fn check_histograms(&self) -> Result<(), &'static str> {
        let mut last: Option<(Key, f64, f64)> = None;
        let mut all: Vec<(Key, f64, f64)> = Vec::new();
        for ((name, labels), count) in &self.samples {
            let Some(histogram) = name.strip_suffix("_bucket") else { continue };
            let le = labels.iter().find(|label| label.0 == "le").ok_or("a bucket has no bound")?;
            let bound = number(&le.1).ok_or("a bound is no number")?;
            let rest = labels.iter().filter(|label| label.0 != "le").cloned().collect();
            all.push(((histogram.to_owned(), rest), bound, *count));
        }
        all.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
        // So that the last histogram has a successor, too.
        all.push((Key::default(), 0.0, 0.0));
        for (key, bound, count) in all {
            if let Some((last_key, last_bound, last_count)) = last {
                let is_same = key == last_key;
                if is_same && count < last_count {
                    return Err("buckets are not cumulative");
                }
                let (name, labels) = last_key;
                let whole = self.samples.get(&(name + "_count", labels));
                if !is_same && (last_bound.is_finite() || whole != Some(&last_count)) {
                    return Err("the last bucket of a histogram does not have all");
                }
            }
            last = Some((key, bound, count));
        }
        Ok(())
    }
}

impl Family {
    /// Reads a line about a family: its type first, then its unit and help.
    fn declare(&mut self, about: &str, names: &mut BTreeSet<String>) -> Result<(), &'static str> {
        let mut parts = about.splitn(3, ' ');
        let what = (parts.next(), parts.next(), parts.next());
        let (Some(word), Some(name), Some(rest)) = what else { return Err("it says nothing") };
        match word {
            "TYPE" if !names.insert(name.to_owned()) => Err("the family is there twice"),
            "TYPE" if !is_name(name) => Err("the name is none"),
            "TYPE" => {
                *self = Self { name: name.to_owned(), kind: rest.to_owned(), has_samples: false };
                let kinds = ["counter", "gauge", "histogram", "info"];
                if kinds.contains(&rest) { Ok(()) } else { Err("the type is none") }
            }
            _ if name != self.name || self.has_samples => Err("it is not about the family begun"),
            "UNIT" => match name.strip_suffix(rest) {
                Some(before) if before.ends_with('_') => Ok(()),
                _ => Err("the name does not end in the unit"),
            },
            "HELP" => Ok(()),
            _ => Err("the word is none"),
        }
    }

    fn sample(&mut self, line: &str) -> Result<(Key, f64), &'static str> {
        self.has_samples = true;
        let end = line.find(['{', ' ']).ok_or("there is no value")?;
        let (name, rest) = line.split_at(end);
        let suffix = name.strip_prefix(&*self.name).ok_or("the sample is of another family")?;
        let suffixes: &[&str] = match &*self.kind {
            "counter" => &["_total"],
            "gauge" => &[""],
            "info" => &["_info"],
            _ => &["_bucket", "_count", "_sum"],
        };
        if !suffixes.contains(&suffix) {
            return Err("the sample's name does not fit its family's type");
        }
        let (mut labels, rest) = match rest.strip_prefix('{') {
            Some(rest) => read_labels(rest)?,
            None => (Vec::new(), rest),
        };
        labels.sort_unstable();
        if labels.is_sorted_by(|one, other| one.0 < other.0) {
            let value = rest.strip_prefix(' ').and_then(number).ok_or("the value is no number")?;
            return Ok(((name.to_owned(), labels), value));
        }
        Err("a label is there twice")
    }
}

/// Labels after the opening brace, and what follows the closing one.
fn read_labels(text: &str) -> Result<(Labels, &str), &'static str> {
    let mut labels = Vec::new();
    let mut rest = text;
    loop {
        let (name, quoted) = rest.split_once("=\"").ok_or("a label has no value")?;
        if !is_name(name) {
            return Err("the name of a label is none");
        }
        let mut value = String::new();
        let mut letters = quoted.char_indices();
        let end = loop {
            match letters.next().ok_or("a label does not end")? {
                (at, '"') => break at,
                (_, '\\') => match letters.next() {
                    Some((_, 'n')) => value.push('\n'),
                    Some((_, letter @ ('\\' | '"'))) => value.push(letter),
                    _ => return Err("a letter is escaped that need not be"),
                },
                (_, letter) => value.push(letter),
            }
        };
        labels.push((name.to_owned(), value));
        rest = &quoted[end + 1..];
        if let Some(after) = rest.strip_prefix('}') {
            return Ok((labels, after));
        }
        rest = rest.strip_prefix(',').ok_or("labels are not separated")?;
    }
}

fn is_name(name: &str) -> bool {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    name.chars().all(fits) && name.starts_with(|letter: char| !letter.is_ascii_digit())
}

fn number(text: &str) -> Option<f64> {
    match text {
        "+Inf" => Some(f64::INFINITY),
        "-Inf" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        _ => text.parse().ok().filter(|number: &f64| number.is_finite()),
    }
}

/// The buckets of a histogram: bounds in order, and how many values are at most each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Buckets {
    counts: Vec<(f64, f64)>,
}

impl Buckets {
    /// What came in after `earlier`, a state of the same histogram.
    pub fn since(&self, earlier: &Self) -> Self {
        let before = |number: usize, bound: f64| {
            earlier
                .counts
                .get(number)
                .filter(|count| count.0.total_cmp(&bound).is_eq())
                .map_or(0.0, |count| count.1)
        };
        let counts = self.counts.iter().enumerate();
        let since = |(number, &(bound, count))| (bound, count - before(number, bound));
        Self { counts: counts.map(since).collect() }
    }

    /// How many values there are.
    pub fn count(&self) -> f64 {
        self.counts.last().map_or(0.0, |last| last.1)
    }

    /// The value that `quantile` of all do not exceed, as if values lay evenly in their bucket; the
    /// highest finite bound for what lies beyond. `None` where there are none.
    pub fn quantile(&self, quantile: f64) -> Option<f64> {
        let count = self.count();
        if count <= 0.0 {
            return None;
        }
        let rank = (quantile * count).ceil().clamp(1.0, count);
        let mut below = (0.0, 0.0);
        for &(bound, seen) in &self.counts {
            if seen >= rank {
                if bound.is_infinite() {
                    return Some(below.0);
                }
                return Some(below.0 + (bound - below.0) * (rank - below.1) / (seen - below.1));
            }
            below = (bound, seen);
        }
        None
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
