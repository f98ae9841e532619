//! [`Viper`]: one open store.

use chimera_pmem::Pmem;

use super::reclaim::Reclaim;
use super::records::Records;
use super::write::Writer;
use crate::records::vpage::{LogPages, PageParameters, Pages, SlottedPages};

/// Viper for records of one size.
pub(crate) type FixedSize<P> = Viper<P, SlottedPages>;
/// Viper for records of any size.
pub(crate) type AnySize<P> = Viper<P, LogPages>;

/// The engine: one open store.
pub(crate) struct Viper<P: Pmem, V: Pages> {
    pub(super) parameters: PageParameters,
    pub(super) writer: Writer<P, V>,
    pub(super) reclaim: Reclaim,
}

impl<P: Pmem, V: Pages> Viper<P, V> {
    #[inline(always)]
    pub(super) fn records(&self) -> &Records<P, V> {
        self.writer.records()
    }
}
