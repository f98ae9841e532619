//! The text of a file with all its mutants. Lines stay what they are.

use std::ops::Range;

use crate::site::{Edit, NUMBER, Place, Site};

/// A site in force: with which form, and from which number its mutants count.
pub(crate) struct Placed<'a> {
    pub(crate) site: &'a Site,
    pub(crate) form: usize,
    pub(crate) first: u32,
    /// Of the caller's, to know the site again.
    pub(crate) id: usize,
}

/// A part of the new text.
struct Part {
    new: Range<usize>,
    /// Where it comes from: bytes of the original, or a site.
    from: From,
}

enum From {
    Original(usize),
    Site(usize),
}

/// The new text of a file, and where each part of it comes from.
pub(crate) struct Spliced {
    pub(crate) text: String,
    parts: Vec<Part>,
}

impl Spliced {
    /// Applies the forms of sites to a text. Sites come in the order in which they were found: what holds another comes
    /// before it.
    pub(crate) fn new(original: &str, sites: &[Placed<'_>]) -> Self {
        let edits = |placed: &'_ Placed<'_>| placed.site.forms[placed.form].edits.clone();
        let all = sites
            .iter()
            .flat_map(|placed| edits(placed).into_iter().map(move |edit| (placed, edit)));
        let mut edits: Vec<(usize, (&Placed<'_>, Edit))> = all.enumerate().collect();
        // What began first ends last.
        let inner = |order: usize, edit: &Edit| match edit.place {
            Place::Close => usize::MAX - order,
            _ => order,
        };
        edits.sort_by_key(|(order, (_, edit))| (edit.range.start, edit.place, inner(*order, edit)));

        let mut spliced =
            Self { text: String::with_capacity(original.len() * 3), parts: Vec::new() };
        let mut at = 0;
        for (_, (placed, edit)) in edits {
            spliced.push(&original[at..edit.range.start], From::Original(at));
            let text = edit.text.replace(NUMBER, &placed.first.to_string());
            spliced.push(&text, From::Site(placed.id));
            at = edit.range.end;
        }
        spliced.push(&original[at..], From::Original(at));
        spliced
    }

    fn push(&mut self, text: &str, from: From) {
        let start = self.text.len();
        self.text.push_str(text);
        if !text.is_empty() {
            self.parts.push(Part { new: start..self.text.len(), from });
        }
    }

    /// The site in whose inserted text a range of the new text begins, ends or lies.
    pub(crate) fn site_at(&self, range: &Range<usize>) -> Option<usize> {
        let touches = |part: &&Part| part.new.start < range.end && range.start < part.new.end;
        let inside = |part: &&Part| part.new.start <= range.start && range.end <= part.new.end;
        let site = |part: &Part| match part.from {
            From::Site(id) => Some(id),
            From::Original(_) => None,
        };
        // What begins with the text of a site is that site.
        let mut parts = self.parts.iter().filter(touches);
        let first = parts.next()?;
        site(first).filter(|_| inside(&first) || range.start == first.new.start)
    }

    /// Where a range of the new text lies in the original, inserted text left aside.
    pub(crate) fn original(&self, range: &Range<usize>) -> Range<usize> {
        let mut found: Option<Range<usize>> = None;
        let mut before = 0;
        for part in &self.parts {
            let From::Original(from) = part.from else { continue };
            if part.new.start < range.end.max(range.start + 1) {
                let start = from + range.start.clamp(part.new.start, part.new.end) - part.new.start;
                let end = from + range.end.clamp(part.new.start, part.new.end) - part.new.start;
                before = end;
                if range.start < part.new.end {
                    found = Some(found.map_or(start..end, |found| found.start..end));
                }
            }
        }
        found.unwrap_or(before..before)
    }
}
