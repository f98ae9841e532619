//! Metrics: what is counted, which operations are timed, the text, publishing it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../tools/mod.rs"]
mod tools;

mod counting;
mod publishing;
mod sampling;
mod text;

use std::path::Path;
use std::sync::Arc;

use chimera::{Db, Options};
use chimera_pmem::{Environment, Hardware, SteppedEnvironment};

/// A store in anonymous memory, under a clock that stands still.
fn stepped(options: &Options) -> (Db, Arc<SteppedEnvironment>) {
    let environment = Arc::new(SteppedEnvironment::in_memory(1));
    let shared: Arc<dyn Environment> = environment.clone();
    let options = options.clone().anonymous(4 << 20);
    let pmem = Hardware::new(options.hardware_options()).unwrap();
    (Db::open_on(pmem, &shared, Path::new(""), &options).unwrap(), environment)
}
