//! [`Progress`]: how long work tells how far it is.

use std::sync::Arc;

/// Called during long work with (done, of how much).
pub type Progress = Arc<dyn Fn(u64, u64) + Send + Sync>;
