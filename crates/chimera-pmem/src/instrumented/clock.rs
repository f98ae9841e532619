//! The clock that injected latency is measured with: the processor's tick counter, in nanoseconds.

use std::hint;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::arch;

/// How long the counter is compared with the operating system's clock, once per process. The reading
/// of that clock, some tens of nanoseconds, over this is the error: about 10 ppm.
const CALIBRATION: Duration = Duration::from_millis(5);

/// Pairs of readings of which the closest one is taken.
const READINGS: usize = 16;

/// The counter's value when the clock was first used, and nanoseconds per tick times 2^32.
#[derive(Debug)]
struct Clock {
    start: u64,
    scale: u64,
}

impl Clock {
    fn get() -> &'static Self {
        static CLOCK: OnceLock<Clock> = OnceLock::new();
        CLOCK.get_or_init(|| {
            let (first, start) = read_both();
            while first.elapsed() < CALIBRATION {
                hint::spin_loop();
            }
            let (last, end) = read_both();
            let ticks = u128::from(end.saturating_sub(start)).max(1);
            let scale = (last.duration_since(first).as_nanos() << 32) / ticks;
            Self { start, scale: scale as u64 }
        })
    }

    fn ns(&self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.scale)) >> 32) as u64
    }
}

/// Reads both clocks at the same time. An interruption between the two readings would make the rate
/// wrong for good, so of several pairs the one that took least is taken.
fn read_both() -> (Instant, u64) {
    let read = || {
        let before = arch::timestamp();
        let instant = Instant::now();
        let after = arch::timestamp();
        let took = after.saturating_sub(before);
        (took, (instant, before + took / 2))
    };
    let first = read();
    let (_, both) = (1..READINGS)
        .map(|_| read())
        .fold(first, |best, other| if other.0 < best.0 { other } else { best });
    both
}

/// Nanoseconds since the first use of this clock in the process; shared by all threads. The first use
/// calibrates for some milliseconds.
pub(super) fn now_ns() -> u64 {
    let clock = Clock::get();
    // Another processor's counter may be a few ticks behind the one that started the clock.
    clock.ns(arch::timestamp().saturating_sub(clock.start))
}

/// Keeps the processor busy until then.
#[inline]
pub(super) fn wait_until(ns: u64) {
    // No pause instruction: it would take longer than the delays asked for.
    while now_ns() < ns {}
}
