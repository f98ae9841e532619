//! Threads of a program, divided as the paper does.

/// What happened in a sampling window: operations, and how long one took on average.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampledOperations {
    /// Gets.
    pub gets: u64,
    /// Scans.
    pub scans: u64,
    /// Puts of new keys, updates and deletes.
    pub writes: u64,
    /// Of a get.
    pub get_ns: u64,
    /// Of a scan.
    pub scan_ns: u64,
    /// Of a write, until it is acknowledged.
    pub write_ns: u64,
    /// Of a change of the tree in the background.
    pub apply_ns: u64,
}

/// Threads that serve, and threads that apply changes in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadSplit {
    /// Threads that serve.
    pub serving: usize,
    /// Threads that apply changes.
    pub backend: usize,
}

impl ThreadSplit {
    /// Divides `threads` by the two equations of the paper, rounded to the nearest. Both kinds have at least one of two
    /// threads or more. One thread serves.
    ///
    /// ```
    /// use chimera::baselines::{SampledOperations, ThreadSplit};
    /// let half_gets = SampledOperations { gets: 1, writes: 1, get_ns: 100, write_ns: 440, apply_ns: 540, ..Default::default() };
    /// assert_eq!(ThreadSplit::of(&half_gets, 16), ThreadSplit { serving: 8, backend: 8 });
    /// ```
    pub fn of(sampled: &SampledOperations, threads: usize) -> Self {
        let time = |count: u64, each_ns: u64| u128::from(count) * u128::from(each_ns);
        let serving = time(sampled.gets, sampled.get_ns)
            .saturating_add(time(sampled.scans, sampled.scan_ns))
            .saturating_add(time(sampled.writes, sampled.write_ns));
        let backend = time(sampled.writes, sampled.apply_ns);
        // Not exact, and it need not be: only whole threads count.
        let part = backend as f64 / (serving as f64 + backend as f64).max(1.0);
        let most = threads.saturating_sub(1);
        let backend = ((threads as f64 * part).round() as usize).clamp(most.min(1), most);
        Self { serving: threads - backend, backend }
    }
}
