//! [`Hikv`]: one open store.

use chimera_pmem::Pmem;

use super::creation::Parameters;
use super::items::Items;
#[cfg(feature = "baselines")]
use super::log::ChangeLog;
use super::order::LastDump;
use super::rebuild::Rebuild;
use super::reclaim::Reclaim;
use super::write::Writer;
use crate::records::limits::Limits;

/// The engine: one open store.
pub(crate) struct Hikv<P: Pmem> {
    pub(super) parameters: Parameters,
    pub(super) limits: Limits,
    pub(super) writer: Writer<P>,
    pub(super) reclaim: Reclaim,
    #[cfg(feature = "baselines")]
    pub(super) log: ChangeLog<P>,
    pub(super) last_dump: LastDump,
}

impl<P: Pmem> Hikv<P> {
    #[inline(always)]
    pub(super) fn items(&self) -> &Items<P> {
        self.writer.items()
    }

    pub(super) fn rebuild(&self) -> &Rebuild {
        self.writer.rebuild()
    }
}
