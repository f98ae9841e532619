//! [`ViperOptions`]: what of a store's options is Viper's.

use crate::types::layout::{Geometry, RecordLayout};

/// What of a store's options is Viper's. See [`Options::viper`](crate::Options::viper).
#[derive(Clone, Debug)]
#[must_use]
pub struct ViperOptions {
    pub(in crate::engine) layout: Option<RecordLayout>,
    pub(in crate::engine) geometry: Option<Geometry>,
    pub(in crate::engine) block_shift_bytes: u32,
    pub(in crate::engine) index_segment_slots: u32,
}

impl Default for ViperOptions {
    fn default() -> Self {
        Self { layout: None, geometry: None, block_shift_bytes: 0, index_segment_slots: 1024 }
    }
}

impl ViperOptions {
    /// What precedes each record. Default [`RecordLayout::Checked`]. Fixed at creation.
    pub fn layout(mut self, layout: RecordLayout) -> Self {
        self.layout = Some(layout);
        self
    }

    /// Page, block and segment sizes. Fixed at creation.
    pub fn geometry(mut self, geometry: Geometry) -> Self {
        self.geometry = Some(geometry);
        self
    }

    /// Bytes that the first block of a segment is shifted from the page boundary, where no geometry is given.
    /// Default 0; 2048 is the paper's unaligned variant, for comparison. Fixed at creation.
    #[doc(hidden)]
    pub fn block_shift_bytes(mut self, bytes: u32) -> Self {
        self.block_shift_bytes = bytes;
        self
    }

    /// Slots per index segment: a power of two from 8 to 4096. Default 1024 (16 KiB). For tests.
    #[doc(hidden)]
    pub fn index_segment_slots(mut self, slots: u32) -> Self {
        self.index_segment_slots = slots;
        self
    }
}
