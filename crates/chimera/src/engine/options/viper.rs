//! [`ViperOptions`]: what of a store's options is Viper's.

#[cfg(feature = "baselines")]
mod baselines;

use crate::types::layout::{Geometry, RecordLayout};

/// What of a store's options is Viper's. See [`Options::viper`](crate::Options::viper).
#[derive(Clone, Debug)]
#[must_use]
pub struct ViperOptions {
    pub(in crate::engine) layout: Option<RecordLayout>,
    pub(in crate::engine) geometry: Option<Geometry>,
    #[cfg(feature = "baselines")]
    pub(in crate::engine) block_shift_bytes: u32,
    pub(in crate::engine) index_segment_slots: u32,
}

impl Default for ViperOptions {
    fn default() -> Self {
        Self {
            layout: None,
            geometry: None,
            #[cfg(feature = "baselines")]
            block_shift_bytes: 0,
            index_segment_slots: 1024,
        }
    }
}

impl ViperOptions {
    /// Page, block and segment sizes. Fixed at creation.
    pub fn geometry(mut self, geometry: Geometry) -> Self {
        self.geometry = Some(geometry);
        self
    }
}
