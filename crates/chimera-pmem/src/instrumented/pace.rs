//! [`Pace`]: what one thread owes to the device, and when it waits for it.
//!
//! # Rules
//! - A call that loads misses for each line that the cache model does not have. Its misses overlap. Its first unit decides
//!   which latency the call has: *sequential* if it is the same as or next to the last unit that this thread missed, else
//!   *random*. The latency of each unit begins when the media begins with it.
//! - Misses of prefetches, and of stores that must fetch their line, delay nobody by themselves. They
//!   form a group with those before them; the dearest call of the group is charged once, when a load
//!   touches a line of it, together with the next missing load, or at the next fence, whichever comes
//!   first, and overlapping with what that call costs by itself.
//! - A persist is a fence with flushes or copies past the cache before it. It ends when all lines that were written since the
//!   fence before are in buffers of the device, and not before the latency of a persist has passed.

use super::clock;
use super::device::Timing;
use super::lines::{LineSet, READ};

/// Picoseconds of a nanosecond.
pub(super) const PS: u64 = 1000;

/// What a call has to wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Charge {
    /// Latency charged, waits for the media not included.
    pub(super) latency_ns: u64,
    /// When the call ends at the earliest, by the shared clock; 0 when there is nothing to wait for.
    pub(super) until_ps: u64,
}

impl Charge {
    /// Keeps the processor busy until then.
    #[inline]
    pub(super) fn wait(self) {
        if self.until_ps > 0 {
            clock::wait_until(self.until_ps / PS);
        }
    }
}

/// One thread's state.
#[derive(Debug)]
pub(super) struct Pace {
    last_read: Option<u64>,
    call: Call,
    group: Group,
    persist: Persist,
}

/// Misses of the current call.
#[derive(Debug, Default)]
struct Call {
    missed: bool,
    waits_for_group: bool,
    latency_ns: u64,
    /// When the media began with the last of its units.
    begun_ps: u64,
}

/// Misses that nobody waits for yet.
#[derive(Debug)]
struct Group {
    lines: LineSet,
    latency_ns: u64,
    begun_ps: u64,
}

/// Lines on their way to the device since the last fence.
#[derive(Debug, Default)]
struct Persist {
    has_lines: bool,
    taken_ps: u64,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self {
            last_read: None,
            call: Call::default(),
            group: Group { lines: LineSet::new(), latency_ns: 0, begun_ps: 0 },
            persist: Persist::default(),
        }
    }

    /// The current call loads a line that is cached, or on its way.
    pub(super) fn hit(&mut self, line: u64) {
        if !self.group.lines.is_empty() && self.group.lines.has(line, READ) {
            self.call.waits_for_group = true;
        }
    }

    /// The current call missed a line of `unit`, with which the media began then.
    pub(super) fn miss(&mut self, timing: &Timing, unit: u64, begun_ps: u64) {
        if !self.call.missed {
            self.call.latency_ns = u64::from(if is_near(self.last_read, unit) {
                timing.read_sequential_ns
            } else {
                timing.read_random_ns
            });
        }
        self.call.missed = true;
        self.call.begun_ps = self.call.begun_ps.max(begun_ps);
        self.last_read = Some(unit);
    }

    /// A missed line that the current call does not wait for.
    pub(super) fn join_group(&mut self, line: u64) {
        self.group.lines.mark(line, READ);
    }

    /// Ends a call whose misses nobody waits for yet.
    pub(super) fn end_overlapped(&mut self) {
        let call = std::mem::take(&mut self.call);
        if call.missed {
            self.group.latency_ns = self.group.latency_ns.max(call.latency_ns);
            self.group.begun_ps = self.group.begun_ps.max(call.begun_ps);
        }
    }

    /// Ends a call that waits for its misses.
    pub(super) fn end_demand(&mut self, now_ps: u64) -> Charge {
        let call = std::mem::take(&mut self.call);
        if !call.missed && !call.waits_for_group {
            return Charge::default();
        }
        self.charge(now_ps, call.latency_ns, call.begun_ps)
    }

    /// Lines are flushed or copied past the cache.
    pub(super) fn persisting(&mut self) {
        self.persist.has_lines = true;
    }

    /// A line is in a buffer of the device then.
    pub(super) fn taken(&mut self, at_ps: u64) {
        self.persist.taken_ps = self.persist.taken_ps.max(at_ps);
    }

    /// A fence: waits for everything under way.
    pub(super) fn fence(&mut self, timing: &Timing, now_ps: u64) -> Charge {
        let persist = std::mem::take(&mut self.persist);
        let latency_ns = if persist.has_lines { u64::from(timing.persist_ns) } else { 0 };
        let charge = self.charge(now_ps, latency_ns, 0);
        Charge { until_ps: charge.until_ps.max(persist.taken_ps), ..charge }
    }

    /// Closes the group and charges it together with what overlaps with it.
    fn charge(&mut self, now_ps: u64, latency_ns: u64, begun_ps: u64) -> Charge {
        let latency_ns = latency_ns.max(self.group.latency_ns);
        let begun_ps = begun_ps.max(self.group.begun_ps);
        self.group.lines.clear();
        self.group.latency_ns = 0;
        self.group.begun_ps = 0;
        let until_ps = if latency_ns == 0 && begun_ps <= now_ps {
            0
        } else {
            now_ps.max(begun_ps) + latency_ns * PS
        };
        Charge { latency_ns, until_ps }
    }
}

/// Whether a unit is the last one or next to it.
fn is_near(last: Option<u64>, unit: u64) -> bool {
    last.is_some_and(|last| last.abs_diff(unit) <= 1)
}
