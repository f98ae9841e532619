//! [`Bound`]: an engine and a client of it.

use std::sync::Arc;

use chimera_pmem::Pmem;

use crate::engine::contract::engine::Engine;

/// An engine and a client of it.
pub(crate) struct Bound<P: Pmem, E: Engine<P>> {
    pub(crate) engine: Arc<E>,
    pub(crate) client: E::Client,
}
