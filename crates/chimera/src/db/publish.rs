//! Publishing metrics: a background task writes them to a file in the store's directory.
//!
//! # Protocol
//! The text goes to a file under another name, which then takes the place of the one before. So a reader
//! finds one text or the other, whole. Nothing is synced, because metrics of a machine that went down are
//! worth nothing. Opening a store never looks at the file.

use std::path::Path;
use std::sync::Arc;

use chimera_pmem::Pmem;
use chimera_pmem::environment::{Task, TaskStep};

use super::Inner;
use crate::metrics::FILE;
use crate::types::error::{Error, Result};

/// What is published, and its name while it is being written.
pub(super) const FILES: [&str; 2] = [FILE, NEW_FILE];
/// The name while it is being written.
const NEW_FILE: &str = "metrics.new";

/// Starts the task, if metrics are to be published.
///
/// # Errors
/// When no thread can be had.
pub(super) fn publisher<P: Pmem>(inner: &Arc<Inner<P>>) -> Result<Option<Box<dyn Task>>> {
    let Some((every, directory)) = inner.published_every.zip(inner.engine.core().pool.directory())
    else {
        return Ok(None);
    };
    let inner = inner.clone();
    let environment = inner.engine.core().pool.environment.clone();
    let path = directory.to_owned();
    let mut is_failing = false;
    let publishing = inner.clone();
    let step = move || {
        let text = publishing.metrics_text();
        let pool = &publishing.engine.core().pool;
        match pool.replace_file(NEW_FILE, FILE, text.as_bytes()) {
            Err(error) if !is_failing => {
                is_failing = true;
                log::warn!("cannot publish metrics in {}: {error}", path.display());
            }
            outcome => is_failing = outcome.is_err(),
        }
        TaskStep::WaitAtMost(every)
    };
    let started = environment.spawn("chimera-metrics", Box::new(step));
    let path = inner.engine.core().pool.directory().unwrap_or(Path::new(""));
    started.map(Some).map_err(Error::io("start a thread for", path))
}

impl<P: Pmem> Inner<P> {
    /// Removes the published text.
    pub(super) fn withdraw(&self) {
        let pool = &self.engine.core().pool;
        for name in FILES {
            // A text that was never published need not be removed.
            let _ = pool.remove_file(name);
        }
    }
}
