//! [`Table`]: columns of text.

use std::fmt::Write;

/// Columns of text: the first to the left, the others to the right.
pub struct Table {
    rows: Vec<Vec<String>>,
    names_engines: bool,
}

impl Table {
    /// A table with this header.
    pub fn new(header: &[&str]) -> Self {
        let header = header.iter().map(|name| (*name).to_owned()).collect();
        Self { rows: vec![header], names_engines: false }
    }

    /// A table that names the engine of each row behind the first column, where that is wanted.
    pub(super) fn of_engines(names_engines: bool, header: &[&str]) -> Self {
        let mut table = Self { names_engines, ..Self::new(header) };
        if names_engines {
            table.rows[0].insert(1, "engine".to_owned());
        }
        table
    }

    /// A further row, of as many cells as the header has.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub(super) fn row_of(&mut self, engine: &str, mut cells: Vec<String>) {
        if self.names_engines {
            cells.insert(1, engine.to_owned());
        }
        self.row(cells);
    }

    /// Whether it has no row.
    pub fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    /// Writes it behind an empty line.
    ///
    /// # Errors
    /// None: a string takes everything.
    pub fn write(&self, out: &mut String) -> std::fmt::Result {
        let width = |column: usize| {
            self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
        };
        let widths: Vec<_> = (0..self.rows[0].len()).map(width).collect();
        writeln!(out)?;
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                match column {
                    0 => write!(line, "{cell:<width$}")?,
                    _ => write!(line, "  {cell:>width$}")?,
                }
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// A number with a comma after each third digit.
pub fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(&["name", "n"]);
        table.row(vec!["a".to_owned(), "100".to_owned()]);
        let mut text = String::new();
        table.write(&mut text).expect("a string takes everything");
        assert_eq!(text, "\nname    n\na     100\n");
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(number(0), "0");
        assert_eq!(number(999), "999");
        assert_eq!(number(1000), "1,000");
        assert_eq!(number(12_345_678), "12,345,678");
    }
}
