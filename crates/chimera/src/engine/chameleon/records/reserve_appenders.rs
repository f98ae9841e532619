//! [`ReserveAppenders`]: who appends to the log to make room.

use chimera_pmem::Pmem;

use crate::pool::Purpose;
use crate::records::storage_log::{Appender, StorageLog};
use crate::sync::Mutex;

/// Who appends to make room.
pub(super) struct ReserveAppenders {
    pub(super) tombstones: Mutex<Appender>,
    pub(super) copies: Mutex<Appender>,
}

impl ReserveAppenders {
    pub(super) fn new<P: Pmem>(log: &StorageLog<P>) -> Self {
        let purposes = [Purpose::Delete, Purpose::Reclaim];
        let [tombstones, copies] = purposes.map(|purpose| Mutex::new(log.begin_for(purpose)));
        Self { tombstones, copies }
    }
}
