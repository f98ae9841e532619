//! What came out, as text and as a figure.

mod figure;
mod table;

pub use figure::draw;
pub use table::text;
