//! [`Recorder`]: one thread's stack of operations and what it counts.

use std::collections::BTreeMap;
use std::ops::Range;

use super::cache::CacheModel;
use super::clock;
use super::counters::{OperationCounters, SessionLines};
use super::device::{Device, Timing};
use super::lines::{FLUSHED, LineSet, READ};
use super::pace::{Charge, PS, Pace};
use crate::{CACHE_LINE, Operation};

/// Nested operations a thread may have open. More means that some are never acknowledged.
const DEPTH_MAX: usize = 64;

/// The models, shared by all threads.
#[derive(Debug)]
pub(super) struct Models {
    /// `None` when it does not matter which reads miss: no counters, and reads are free of charge.
    pub(super) cache: Option<CacheModel>,
    pub(super) device: Option<Device>,
}

impl Models {
    /// How long accesses take, if they do.
    pub(super) fn timing(&self) -> Option<&Timing> {
        self.device.as_ref().and_then(|device| device.parameters().timing.as_ref())
    }

    /// Now, as the device has it.
    fn now_ps(&self) -> u64 {
        if self.timing().is_some() { clock::now_ns() * PS } else { 0 }
    }
}

/// Counts added up over operations: what threads hand over.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub(super) operations: BTreeMap<Operation, OperationCounters>,
    pub(super) sessions: BTreeMap<u32, SessionLines>,
    pub(super) operations_open: u64,
}

impl Totals {
    pub(super) fn book(&mut self, operation: Operation, counters: OperationCounters) {
        if counters != OperationCounters::default() {
            *self.operations.entry(operation).or_default() += counters;
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        other.operations.iter().for_each(|(operation, counters)| self.book(*operation, *counters));
        for (session, lines) in &other.sessions {
            self.sessions.entry(*session).or_default().add(lines);
        }
        self.operations_open += other.operations_open;
    }
}

/// How a line comes to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Demand,
    Prefetch,
    Store,
}

/// An operation under way. The first frame of a thread stands for everything outside operations.
#[derive(Debug)]
struct Frame {
    operation: Operation,
    session: Option<usize>,
    counters: OperationCounters,
    lines: LineSet,
}

impl Frame {
    fn new() -> Self {
        Self {
            operation: Operation::Other,
            session: None,
            counters: OperationCounters::default(),
            lines: LineSet::new(),
        }
    }
}

/// One thread's stack of operations, its totals, and what it owes to the latency profile.
#[derive(Debug)]
pub(super) struct Recorder {
    /// Frames in use up to `depth`, and spare ones above it.
    frames: Vec<Frame>,
    depth: usize,
    booked: [OperationCounters; Operation::ALL.len()],
    session_numbers: BTreeMap<u32, usize>,
    sessions: Vec<SessionLines>,
    pace: Pace,
}

impl Recorder {
    pub(super) fn new() -> Self {
        Self {
            frames: vec![Frame::new()],
            depth: 0,
            booked: Default::default(),
            session_numbers: BTreeMap::new(),
            sessions: Vec::new(),
            pace: Pace::new(),
        }
    }

    // ---- operations --------------------------------------------------------------------------

    pub(super) fn begin(&mut self, models: &Models, operation: Operation, session: u32) {
        assert!(
            self.depth < DEPTH_MAX,
            "{DEPTH_MAX} operations were begun on this thread and not acknowledged"
        );
        let session = models.device.as_ref().map(|device| self.session(session, device.dimms()));
        self.depth += 1;
        if self.depth == self.frames.len() {
            self.frames.push(Frame::new());
        }
        let frame = self.top();
        frame.operation = operation;
        frame.session = session;
    }

    pub(super) fn relabel(&mut self, operation: Operation) {
        debug_assert!(self.depth > 0, "no operation was begun on this thread");
        if self.depth > 0 {
            self.top().operation = operation;
        }
    }

    pub(super) fn acknowledge(&mut self) {
        debug_assert!(self.depth > 0, "no operation was begun on this thread");
        if self.depth == 0 {
            return;
        }
        let frame = self.top();
        let operation = frame.operation;
        let mut counters = std::mem::take(&mut frame.counters);
        frame.lines.clear();
        counters.operations += 1;
        self.depth -= 1;
        self.book(operation, counters);
    }

    /// Adds to a class directly, whatever operation is under way.
    pub(super) fn book(&mut self, operation: Operation, counters: OperationCounters) {
        self.booked[operation as usize] += counters;
    }

    fn session(&mut self, session: u32, dimms: usize) -> usize {
        let next = self.sessions.len();
        let index = *self.session_numbers.entry(session).or_insert(next);
        if index == next {
            self.sessions.push(SessionLines::new(dimms));
        }
        index
    }

    fn top(&mut self) -> &mut Frame {
        &mut self.frames[self.depth]
    }

    // ---- totals ------------------------------------------------------------------------------

    /// Adds everything counted so far to `totals`, operations under way included.
    pub(super) fn add_to(&self, totals: &mut Totals) {
        for operation in Operation::ALL {
            totals.book(operation, self.booked[operation as usize]);
        }
        for frame in &self.frames[..=self.depth] {
            totals.book(frame.operation, frame.counters);
        }
        for (session, index) in &self.session_numbers {
            totals.sessions.entry(*session).or_default().add(&self.sessions[*index]);
        }
        totals.operations_open += self.depth as u64;
    }

    /// Sets every count to zero; operations under way go on.
    pub(super) fn reset(&mut self) {
        self.booked = Default::default();
        self.frames.iter_mut().for_each(|frame| frame.counters = OperationCounters::default());
        for session in &mut self.sessions {
            session.written.fill(0);
            session.read.fill(0);
        }
    }

    // ---- accesses ----------------------------------------------------------------------------

    pub(super) fn load(&mut self, models: &Models, lines: Range<u64>) -> Charge {
        let now_ps = models.now_ps();
        self.read(models, now_ps, lines, Cause::Demand);
        if models.timing().is_none() {
            return Charge::default();
        }
        let charge = self.pace.end_demand(now_ps);
        self.top().counters.latency_ns += charge.latency_ns;
        charge
    }

    pub(super) fn prefetch(&mut self, models: &Models, lines: Range<u64>) {
        self.read(models, models.now_ps(), lines, Cause::Prefetch);
        self.pace.end_overlapped();
    }

    pub(super) fn store(&mut self, models: &Models, lines: Range<u64>, bytes: u64) {
        let counters = &mut self.top().counters;
        counters.stores += 1;
        counters.bytes_stored += bytes;
        self.read(models, models.now_ps(), lines, Cause::Store);
        self.pace.end_overlapped();
    }

    pub(super) fn store_past_cache(&mut self, models: &Models, lines: Range<u64>, bytes: u64) {
        let counters = &mut self.top().counters;
        counters.stores += 1;
        counters.bytes_stored += bytes;
        counters.nontemporal_lines += lines.end - lines.start;
        self.pace.persisting();
        let now_ps = models.now_ps();
        for line in lines {
            if let Some(cache) = &models.cache {
                cache.forget(line);
            }
            let taken_ps = self.write(models, now_ps, line);
            self.pace.taken(taken_ps);
        }
    }

    pub(super) fn flush(&mut self, models: &Models, lines: Range<u64>) {
        self.pace.persisting();
        let Some(cache) = &models.cache else { return };
        let now_ps = models.now_ps();
        for line in lines {
            let first = self.top().lines.mark(line, FLUSHED);
            let dirty = cache.flush(line);
            let counters = &mut self.top().counters;
            counters.lines_flushed += u64::from(first);
            counters.lines_reflushed += u64::from(!first);
            counters.lines_flushed_clean += u64::from(!dirty);
            if dirty {
                let taken_ps = self.write(models, now_ps, line);
                self.pace.taken(taken_ps);
            }
        }
    }

    pub(super) fn fence(&mut self, models: &Models) -> Charge {
        let outside = self.depth == 0;
        let frame = self.top();
        frame.counters.fences += 1;
        if outside {
            frame.lines.clear();
        }
        let Some(timing) = models.timing() else { return Charge::default() };
        let charge = self.pace.fence(timing, models.now_ps());
        self.top().counters.latency_ns += charge.latency_ns;
        charge
    }

    /// A dirty line leaves the cache on its own. Nobody waits for it.
    pub(super) fn evicted(&mut self, models: &Models, now_ps: u64, line: u64) {
        self.top().counters.lines_evicted += 1;
        self.write(models, now_ps, line);
    }

    /// Writes all that the cache model holds, and forgets it.
    pub(super) fn empty_cache(&mut self, models: &Models) {
        let now_ps = models.now_ps();
        for line in models.cache.iter().flat_map(CacheModel::clear) {
            self.evicted(models, now_ps, line);
        }
    }

    fn read(&mut self, models: &Models, now_ps: u64, lines: Range<u64>, cause: Cause) {
        let Some(cache) = &models.cache else { return };
        for line in lines {
            let touch = cache.touch(line, cause == Cause::Store);
            if let Some(evicted) = touch.evicted {
                self.evicted(models, now_ps, evicted);
            }
            // A store to a line that is there reads nothing.
            if cause != Cause::Store || !touch.hit {
                self.book_read(line, cause);
            }
            if touch.hit {
                if cause == Cause::Demand {
                    self.pace.hit(line);
                }
                continue;
            }
            self.fetch(models, now_ps, line);
            if cause != Cause::Demand && models.timing().is_some() {
                self.pace.join_group(line);
            }
        }
    }

    fn book_read(&mut self, line: u64, cause: Cause) {
        let frame = self.top();
        let new = u64::from(frame.lines.mark(line, READ));
        match cause {
            Cause::Demand => frame.counters.lines_read_demand += new,
            Cause::Prefetch => frame.counters.lines_read_prefetched += new,
            Cause::Store => frame.counters.lines_read_write_allocate += new,
        }
    }

    fn fetch(&mut self, models: &Models, now_ps: u64, line: u64) {
        let frame = &mut self.frames[self.depth];
        frame.counters.lines_missed += 1;
        let Some(device) = &models.device else { return };
        let access = device.read(line, now_ps, &mut frame.counters);
        if let Some(session) = frame.session {
            self.sessions[session].read[access.dimm] += 1;
        }
        if let Some(timing) = models.timing() {
            let unit = line * CACHE_LINE / device.parameters().xpline_bytes;
            self.pace.miss(timing, unit, access.at_ps);
        }
    }

    /// Hands a line over to be written; says when it is durable.
    fn write(&mut self, models: &Models, now_ps: u64, line: u64) -> u64 {
        let frame = &mut self.frames[self.depth];
        let Some(device) = &models.device else { return now_ps };
        let access = device.write(line, now_ps, &mut frame.counters);
        if let Some(session) = frame.session {
            self.sessions[session].written[access.dimm] += 1;
        }
        access.at_ps
    }
}
