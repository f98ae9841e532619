//! Destroying a store: it and nothing else is removed.

use std::path::Path;
use std::sync::Arc;

use chimera_pmem::{Environment, Hardware, HardwareOptions, Pmem, RealEnvironment};

use super::{Db, publish};
use crate::pool::destroy::destroy;
use crate::types::error::{Error, Result};

impl Db {
    /// Removes the store in the directory or on the DAX device `path`, and nothing else. Nobody has it open.
    ///
    /// In a directory the files of the store are removed, then the directory itself if nothing else is in it; a
    /// directory that cannot be removed, such as a mount point, stays. On a device the first 8192 bytes
    /// become zero, so that it is free for a new store; records stay readable to whoever reads the device, as
    /// they do in the blocks of a file system.
    ///
    /// A damaged or incomplete store is removed like any other. A call that failed, or was interrupted by a
    /// crash, can be repeated.
    ///
    /// ```
    /// use chimera::{Db, ErrorKind, Options};
    ///
    /// # fn main() -> Result<(), chimera::Error> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("data");
    /// let db = Db::open(&path, &Options::new().segment_bytes(4 << 20))?;
    /// db.put(b"key", b"value")?;
    /// assert_eq!(Db::destroy(&path).unwrap_err().kind(), ErrorKind::InUse);
    /// db.close()?;
    /// Db::destroy(&path)?;
    /// assert!(!path.exists());
    /// assert_eq!(Db::destroy(&path).unwrap_err().kind(), ErrorKind::NotFound);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no store; [`Error::NotAStore`] when there is something else, or files
    /// of a store without its superblock; [`Error::Locked`] when somebody has it open; what the system says
    /// when a file cannot be removed.
    ///
    /// # Durability
    /// On return the store is durably gone. After a crash before, opening finds the whole store, is refused, or
    /// finds none.
    ///
    /// # Cost
    /// One removal for each file, 3 syncs of directories. On a device 141 lines, 3 fences.
    pub fn destroy(path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let hardware = Hardware::new(HardwareOptions::default());
        let pmem = hardware.map_err(Error::io("reserve address space for", path))?;
        let environment: Arc<dyn Environment> = Arc::new(RealEnvironment::new());
        Self::destroy_on(&pmem, &environment, path)
    }
}

impl<P: Pmem> Db<P> {
    /// As [`destroy`](Db::destroy), in a given environment, and for a store on a device by a given backend of
    /// the persistence seam in which nothing is mapped.
    ///
    /// # Errors
    /// As [`destroy`](Db::destroy).
    #[doc(hidden)]
    pub fn destroy_on(
        pmem: &P,
        environment: &Arc<dyn Environment>,
        path: impl AsRef<Path>,
    ) -> Result<()> {
        destroy(pmem, &**environment, path.as_ref(), &publish::FILES)
    }
}
