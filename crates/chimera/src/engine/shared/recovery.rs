//! Work on many blocks by several threads.

use std::ops::Range;

use chimera_pmem::{Operation, Pmem};

use crate::engine::contract::core::Core;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::types::progress::Progress;

/// Blocks that a thread takes at a time.
const CHUNK_BLOCKS: u64 = 256;

impl<P: Pmem> Core<P> {
    /// Threads to recover `blocks` blocks with: `asked`, or one for each processor where that is 0.
    pub(crate) fn recovery_threads(&self, asked: usize, blocks: u64) -> usize {
        let threads = if asked == 0 { self.environment().parallelism() } else { asked };
        threads.min(blocks.div_ceil(CHUNK_BLOCKS) as usize).max(1)
    }

    /// Runs `work` on chunks of blocks, on several threads, each with buffers of its own.
    pub(crate) fn in_chunks<B: Default>(
        &self,
        threads: usize,
        blocks: u64,
        progress: Option<&Progress>,
        work: impl Fn(Range<u64>, &mut B) + Sync,
    ) {
        let next = AtomicU64::new(0);
        let done = AtomicU64::new(0);
        self.environment().run_parallel(threads, &|number| {
            let _booked = self.book(Operation::Recovery, number as u32);
            let mut buffers = B::default();
            loop {
                let start = next.fetch_add(CHUNK_BLOCKS, Ordering::Relaxed);
                if start >= blocks {
                    return;
                }
                let end = (start + CHUNK_BLOCKS).min(blocks);
                work(start..end, &mut buffers);
                let done = done.fetch_add(end - start, Ordering::Relaxed) + end - start;
                if let Some(progress) = progress {
                    progress(done, blocks);
                }
            }
        });
    }
}
