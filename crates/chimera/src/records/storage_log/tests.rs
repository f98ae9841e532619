//! What the log promises to engines.
