//! [`Chameleon`]: one open store, and what a session keeps.

use chimera_pmem::Pmem;

use super::collector::Collector;
use super::creation::Parameters;
use super::flusher::Flusher;
use super::index::Index;
use super::latency::Sampler;
use super::recovery::Opened;
use crate::engine::contract::client::{Client, SharedClient};
use crate::records::limits::Limits;
use crate::records::storage_log::Appender;

/// The engine: one open store.
pub(crate) struct Chameleon<P: Pmem> {
    pub(super) collector: Collector<P>,
    pub(super) parameters: Parameters,
    pub(super) limits: Limits,
    /// Puts look for their key in the MemTable alone.
    pub(super) blind_puts: bool,
    pub(super) opened: Opened,
}

impl<P: Pmem> Chameleon<P> {
    #[inline(always)]
    pub(super) fn flusher(&self) -> &Flusher<P> {
        self.collector.flusher()
    }

    #[inline(always)]
    pub(super) fn index(&self) -> &Index<P> {
        self.collector.flusher().index()
    }
}

/// What a session keeps between operations.
#[derive(Debug)]
pub(crate) struct ChameleonClient {
    pub(super) shared: SharedClient,
    pub(super) appender: Appender,
    /// Times some gets.
    pub(super) sampler: Sampler,
}

impl Client for ChameleonClient {
    #[inline(always)]
    fn shared(&mut self) -> &mut SharedClient {
        &mut self.shared
    }

    #[inline(always)]
    fn shared_ref(&self) -> &SharedClient {
        &self.shared
    }
}
