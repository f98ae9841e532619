//! [`Pace`]: what one thread owes to a latency profile; [`Injection`]: what all threads share of it.
//! The rules are those of [`Latencies`].

use std::sync::atomic::{AtomicU64, Ordering};

use super::clock::{self, Started};
use super::lines::{LineSet, READ};
use super::profile::{Bandwidth, Latencies};
use crate::CACHE_LINE;

/// A profile's constants and its bandwidth, shared by all threads.
#[derive(Debug)]
pub(super) struct Injection {
    latencies: Latencies,
    reads: Throttle,
    writes: Throttle,
}

impl Injection {
    pub(super) fn new(latencies: Latencies) -> Self {
        let limit = |which: fn(&Bandwidth) -> u64| latencies.bandwidth.as_ref().map_or(0, which);
        Self {
            latencies,
            reads: Throttle::new(limit(|bandwidth| bandwidth.read_mb_per_s)),
            writes: Throttle::new(limit(|bandwidth| bandwidth.write_mb_per_s)),
        }
    }

    fn unit(&self, line: u64) -> u64 {
        line * CACHE_LINE / self.latencies.unit_bytes
    }

    /// When `bytes` will have been fetched.
    fn fetched_at_ns(&self, bytes: u64) -> u64 {
        if self.reads.is_idle(bytes) { 0 } else { self.reads.reserve(clock::now_ns(), bytes) }
    }

    /// When `bytes` will have been written.
    fn written_at_ns(&self, bytes: u64) -> u64 {
        if self.writes.is_idle(bytes) { 0 } else { self.writes.reserve(clock::now_ns(), bytes) }
    }
}

/// A channel of limited bandwidth: transfers follow each other on it, whoever asks.
#[derive(Debug)]
pub(super) struct Throttle {
    /// 0: unlimited.
    mb_per_s: u64,
    /// When the last transfer ends, in picoseconds of the shared clock.
    free_at_ps: AtomicU64,
}

impl Throttle {
    pub(super) fn new(mb_per_s: u64) -> Self {
        Self { mb_per_s, free_at_ps: AtomicU64::new(0) }
    }

    /// Whether a transfer takes no time: there is no limit, or nothing to transfer.
    pub(super) fn is_idle(&self, bytes: u64) -> bool {
        self.mb_per_s == 0 || bytes == 0
    }

    /// Queues a transfer that takes some time; says when it ends, in nanoseconds.
    pub(super) fn reserve(&self, now_ns: u64, bytes: u64) -> u64 {
        let takes_ps = bytes * 1_000_000 / self.mb_per_s;
        let end_of = |free_at_ps: u64| free_at_ps.max(now_ns * 1000) + takes_ps;
        let update =
            self.free_at_ps.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free_at| {
                Some(end_of(free_at))
            });
        let (Ok(before) | Err(before)) = update;
        end_of(before) / 1000
    }
}

/// What a call has to wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Charge {
    /// Latency charged, from the start of the call.
    pub(super) latency_ns: u64,
    /// When its transfers end, by the shared clock; 0 when there is nothing to wait for.
    pub(super) transferred_ns: u64,
}

impl Charge {
    /// Keeps the processor busy until a call that started then has taken what it is charged.
    #[inline]
    pub(super) fn wait(self, started: Started) {
        if self.latency_ns > 0 {
            started.wait(self.latency_ns);
        }
        if self.transferred_ns > 0 {
            while clock::now_ns() < self.transferred_ns {}
        }
    }
}

/// One thread's state.
#[derive(Debug)]
pub(super) struct Pace {
    last_read: Option<u64>,
    last_persist: Option<u64>,
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
    bytes: u64,
}

/// Misses that nobody waits for yet.
#[derive(Debug)]
struct Group {
    lines: LineSet,
    latency_ns: u64,
    transferred_ns: u64,
}

/// Lines on their way to media since the last fence.
#[derive(Debug, Default)]
struct Persist {
    latency_ns: u64,
    bytes: u64,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self {
            last_read: None,
            last_persist: None,
            call: Call::default(),
            group: Group { lines: LineSet::new(), latency_ns: 0, transferred_ns: 0 },
            persist: Persist::default(),
        }
    }

    /// The current call loads a line that is cached, or on its way.
    pub(super) fn hit(&mut self, line: u64) {
        if !self.group.lines.is_empty() && self.group.lines.has(line, READ) {
            self.call.waits_for_group = true;
        }
    }

    /// The current call missed a line.
    pub(super) fn miss(&mut self, injection: &Injection, line: u64) {
        let latencies = &injection.latencies;
        let unit = injection.unit(line);
        let added = if !self.call.missed {
            self.call.bytes += latencies.unit_bytes;
            if is_near(self.last_read, unit) {
                latencies.read_sequential_ns
            } else {
                latencies.read_random_ns
            }
        } else if self.last_read == Some(unit) {
            0
        } else {
            self.call.bytes += latencies.unit_bytes;
            latencies.read_further_ns
        };
        self.call.missed = true;
        self.call.latency_ns += u64::from(added);
        self.last_read = Some(unit);
    }

    /// A missed line that the current call does not wait for.
    pub(super) fn join_group(&mut self, line: u64) {
        self.group.lines.mark(line, READ);
    }

    /// Ends a call whose misses nobody waits for yet.
    pub(super) fn end_overlapped(&mut self, injection: &Injection) {
        let call = std::mem::take(&mut self.call);
        if call.missed {
            let transferred_ns = injection.fetched_at_ns(call.bytes);
            self.group.latency_ns = self.group.latency_ns.max(call.latency_ns);
            self.group.transferred_ns = self.group.transferred_ns.max(transferred_ns);
        }
    }

    /// Ends a call that waits for its misses.
    pub(super) fn end_demand(&mut self, injection: &Injection) -> Charge {
        let call = std::mem::take(&mut self.call);
        if !call.missed && !call.waits_for_group {
            return Charge::default();
        }
        self.charge(call.latency_ns, injection.fetched_at_ns(call.bytes))
    }

    /// A line was flushed or copied past the cache.
    pub(super) fn persisting(&mut self, injection: &Injection, line: u64) {
        let unit = injection.unit(line);
        let latency_ns = if is_near(self.last_persist, unit) {
            injection.latencies.persist_sequential_ns
        } else {
            injection.latencies.persist_random_ns
        };
        self.persist.latency_ns = self.persist.latency_ns.max(u64::from(latency_ns));
        self.persist.bytes += CACHE_LINE;
        self.last_persist = Some(unit);
    }

    /// A fence: waits for everything under way.
    pub(super) fn fence(&mut self, injection: &Injection) -> Charge {
        let persist = std::mem::take(&mut self.persist);
        self.charge(persist.latency_ns, injection.written_at_ns(persist.bytes))
    }

    /// Closes the group and charges it together with what overlaps with it.
    fn charge(&mut self, latency_ns: u64, transferred_ns: u64) -> Charge {
        let latency_ns = latency_ns.max(self.group.latency_ns);
        let transferred_ns = transferred_ns.max(self.group.transferred_ns);
        self.group.lines.clear();
        self.group.latency_ns = 0;
        self.group.transferred_ns = 0;
        Charge { latency_ns, transferred_ns }
    }
}

/// Whether a unit is the last one or next to it.
fn is_near(last: Option<u64>, unit: u64) -> bool {
    last.is_some_and(|last| last.abs_diff(unit) <= 1)
}
