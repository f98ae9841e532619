//! Results as text, and as one page that needs nothing else.

mod chart;
mod figures;
mod page;
mod table;

pub use page::page;
pub use table::{overhead_text, text};
