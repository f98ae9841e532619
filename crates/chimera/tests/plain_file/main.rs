//! Stores on plain files through the public API: durabilities and changing them, readers, power losses
//! told from kills, and devices that fail.

#[path = "../tools/mod.rs"]
mod tools;

mod budget;
mod closing;
mod damage;
mod failing;
mod modes;
mod storage;
mod written_once;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chimera::{Db, Durability, Options, Result};
use chimera_pmem::environment::FileProvider;
use chimera_pmem::{Environment, Hardware, Medium, SteppedEnvironment};

use tools::small;

const GROUP: Durability = Durability::Group { max_delay: Duration::from_millis(50) };

/// A small store with a small journal.
fn options(durability: Durability) -> Options {
    small().durability(durability).journal_bytes(16 << 10)
}

/// Opens a store in a stepped environment; `boot` tells one start of the machine from another.
fn open_at(
    boot: u64,
    files: Arc<dyn FileProvider>,
    path: &Path,
    options: &Options,
) -> Result<(Db, Arc<SteppedEnvironment>)> {
    let environment = Arc::new(SteppedEnvironment::with_files(boot, files));
    let as_trait: Arc<dyn Environment> = environment.clone();
    let pmem = Hardware::new(options.hardware_options()).expect("address space");
    Ok((Db::open_on(pmem, &as_trait, path, options)?, environment))
}

/// Whether files in a directory are plain ones: the durabilities of other media are tested elsewhere.
fn is_plain(db: &Db) -> bool {
    db.stats().medium == Medium::File
}
