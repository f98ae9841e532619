//! Published values: what papers say of their systems and of persistent memory. Tables, plots and documents read them here.
//!
//! Each paper has a file, `published/NAME.tsv`: a row for each value, with the words of the paper that have it. What the
//! documents say of them is in `published/mentions.tsv`, and a test compares it with the documents.

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

/// The files, by the names of the papers.
const FILES: [(&str, &str); 5] = [
    ("viper", include_str!("../published/viper.tsv")),
    ("hikv", include_str!("../published/hikv.tsv")),
    ("chameleondb", include_str!("../published/chameleondb.tsv")),
    ("yang-fast20", include_str!("../published/yang-fast20.tsv")),
    ("damon20", include_str!("../published/damon20.tsv")),
];
/// The first line of each.
const HEADER: &str = "id\tfigure\twhat\tunit\tvalue\tquote";

static PAPERS: LazyLock<Vec<Paper>> =
    LazyLock::new(|| FILES.iter().map(|(name, text)| Paper::parse(name, text)).collect());

/// A value of a paper.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// Which one of the paper: the figure, and what, such as `table1.write_random_ns`.
    pub id: &'static str,
    /// Where in the paper: a figure, a table or a section.
    pub figure: &'static str,
    /// What it is. Begins with `computed` where the paper has what it follows from.
    pub what: &'static str,
    /// Its unit; none of a plain number.
    pub unit: &'static str,
    /// The number as the paper writes it.
    pub text: &'static str,
    /// The number. Below zero where something falls.
    pub value: f64,
    /// A few words of the paper that show it.
    pub quote: &'static str,
}

/// The values of a paper.
#[derive(Clone, Debug)]
pub struct Paper {
    name: &'static str,
    all: Vec<Published>,
}

/// The values of a paper: `viper` (PVLDB 2021), `hikv` (ATC 2017), `chameleondb` (EuroSys 2021), `yang-fast20` or
/// `damon20` (the study of primitives).
///
/// # Panics
/// When there is no such paper.
pub fn paper(name: &str) -> &'static Paper {
    let named = PAPERS.iter().find(|paper| paper.name == name);
    named.unwrap_or_else(|| panic!("there is no paper `{name}`"))
}

impl Paper {
    fn parse(name: &'static str, text: &'static str) -> Self {
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some(HEADER), "{name}");
        let parse = |line: &'static str| {
            let row = Published::parse(line);
            row.unwrap_or_else(|| panic!("{name}: not a published value: {line}"))
        };
        Self { name, all: lines.map(parse).collect() }
    }

    /// All values, in the order of the paper.
    pub fn all(&self) -> &[Published] {
        &self.all
    }

    /// A value, with what is said of it.
    ///
    /// # Panics
    /// When the paper has no such value.
    pub fn get(&self, id: &str) -> &Published {
        let found = self.all.iter().find(|row| row.id == id);
        found.unwrap_or_else(|| panic!("{} has no value `{id}`", self.name))
    }

    /// A value.
    ///
    /// # Panics
    /// When the paper has no such value.
    pub fn value(&self, id: &str) -> f64 {
        self.get(id).value
    }
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
