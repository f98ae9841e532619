//! Options that Viper's paper needs, and a knob of tests.

use super::ViperOptions;
use crate::types::layout::RecordLayout;

impl ViperOptions {
    /// What precedes each record. Default [`RecordLayout::Checked`]. Fixed at creation.
    pub fn layout(mut self, layout: RecordLayout) -> Self {
        self.layout = Some(layout);
        self
    }

    /// Bytes that the first block of a segment is shifted from the page boundary, where no geometry is given.
    /// Default 0; 2048 is the paper's unaligned variant. Fixed at creation.
    pub fn block_shift_bytes(mut self, bytes: u32) -> Self {
        self.block_shift_bytes = bytes;
        self
    }

    /// Slots per index segment: a power of two from 8 to 4096. Default 1024 (16 KiB). For tests.
    pub fn index_segment_slots(mut self, slots: u32) -> Self {
        self.index_segment_slots = slots;
        self
    }
}
