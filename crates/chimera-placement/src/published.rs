//! Published values: what the paper says, with its words. Tables and reports read them here.

use std::sync::LazyLock;

/// The first line of the file.
const HEADER: &str = "id\tfigure\twhat\tunit\tvalue\tquote";
const FILE: &str = include_str!("../published/lsm-placement.tsv");

static ALL: LazyLock<Vec<Published>> = LazyLock::new(|| {
    let mut lines = FILE.lines();
    assert_eq!(lines.next(), Some(HEADER));
    let parse =
        |line| Published::parse(line).unwrap_or_else(|| panic!("not a published value: {line}"));
    lines.map(parse).collect()
});

/// A value of the paper.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// Which one: the section, and what.
    pub id: &'static str,
    /// Where in the paper.
    pub figure: &'static str,
    /// What it is. Begins with `computed` where the paper has what it follows from.
    pub what: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// The number as a text.
    pub text: &'static str,
    /// The number. Below zero where something falls.
    pub value: f64,
    /// A few words of the paper that show it.
    pub quote: &'static str,
}

impl Published {
    fn parse(line: &'static str) -> Option<Self> {
        let mut cells = line.split('\t');
        let mut next = || cells.next();
        let (id, figure, what, unit) = (next()?, next()?, next()?, next()?);
        let (text, quote) = (next()?, next()?);
        let value: f64 = text.parse().ok()?;
        let is_whole = next().is_none() && value.is_finite();
        is_whole.then_some(Self { id, figure, what, unit, text, value, quote })
    }
}

/// All values, in the order of the paper.
pub fn all() -> &'static [Published] {
    &ALL
}

/// A value.
///
/// # Panics
/// When the paper has no such value.
pub fn get(id: &str) -> &'static Published {
    let found = all().iter().find(|value| value.id == id);
    found.unwrap_or_else(|| panic!("the paper has no value `{id}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_a_place_and_words() {
        assert!(all().len() >= 9);
        for (at, value) in all().iter().enumerate() {
            assert!(value.quote.len() > 10 && !value.figure.is_empty() && !value.what.is_empty());
            assert!(all()[..at].iter().all(|before| before.id != value.id), "{} twice", value.id);
            let number = value.text.trim_start_matches('-');
            let is_said = value.quote.contains(number) || value.what.starts_with("computed");
            let is_word =
                ["halves", "doubles", "tens of"].iter().any(|word| value.quote.contains(word));
            assert!(is_said || is_word, "{}: {}", value.id, value.quote);
        }
    }
}
