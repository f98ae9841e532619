//! Several sessions at once. Everything is bounded by counts; nothing is timed.

#[path = "../tools/mod.rs"]
mod tools;

mod hot_keys;
mod ranges;
mod without_sums;

use chimera::Options;

/// Small pages and index segments, so that everything grows, splits and is reused often.
fn options() -> Options {
    tools::small()
        .populate_ahead_bytes(8 << 10)
        .viper(|viper| viper.index_segment_slots(16))
        .reclaim_percent(20)
}

/// Runs `work(0)` .. `work(count - 1)` at once; a panic in one fails the test.
fn at_once(count: u64, work: impl Fn(u64) + Sync) {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|number| {
                scope.spawn({
                    let work = &work;
                    move || work(number)
                })
            })
            .collect();
        for thread in threads {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
}
