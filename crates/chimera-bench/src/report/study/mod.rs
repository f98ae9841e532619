//! The report of the primitives study: tables as text, figures, one page.

mod findings;
mod page;
mod profile;
mod svg;
mod table;

#[cfg(test)]
mod tests;

pub(crate) use findings::findings;
pub(crate) use page::page;
pub(crate) use profile::profile;
pub(crate) use svg::figure;
pub(crate) use table::text;
