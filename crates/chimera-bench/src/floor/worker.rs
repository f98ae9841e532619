//! The operations of a floor.

use std::hint::black_box;
use std::ops::Range;
use std::sync::atomic::Ordering;

use chimera_pmem::{Operation, Pmem, prefetch_read};

use super::{FLOOR, Floor, Place};
use crate::driver::clock::{Load, Measure, drive};
use crate::driver::ledger::split;
use crate::driver::worker::Data;
use crate::error::{BenchError, Result};
use crate::results::measured::Measured;
use crate::workload::random::{Permutation, Random};

/// An operation of a floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FloorAction {
    /// Copy, flush, fence; bit, flush, fence; one line of the index.
    Insert,
    /// One miss in the index, the stored key, the record.
    Get,
    /// One miss in the index, the stored key; a word, flush, fence.
    Update,
    /// As an insert; one more miss in the index; the old bit, flush, fence.
    Overwrite,
    /// One miss in the index, the stored key; the bit, flush, fence.
    Delete,
}

impl FloorAction {
    /// The class that the engine books the same under.
    pub(crate) fn class(self) -> Operation {
        match self {
            Self::Insert => Operation::Insert,
            Self::Get => Operation::Get,
            Self::Update => Operation::UpdateInPlace,
            Self::Overwrite => Operation::Overwrite,
            Self::Delete => Operation::Delete,
        }
    }
}

/// Independent gets whose misses overlap. Half of them wait for the index, the others for the record.
const AHEAD: usize = 8;

/// One thread at a floor.
struct Worker<'a, P: Pmem> {
    floor: &'a Floor<P>,
    data: &'a Data,
    session: u32,
    key: Vec<u8>,
    value: Vec<u8>,
    /// The slot read last.
    record: Vec<u8>,
    counter_at: u64,
    random: Random,
    order: Permutation,
    version: u64,
    /// The numbers of the next independent gets: a ring, and the turn in it.
    ahead: [u64; AHEAD],
    turn: usize,
    /// Where the next record goes, and the pages it goes round in.
    place: Place,
    pages: Range<u64>,
    next_number: u64,
}

/// Runs an operation `operations` times, in the same loop as the engine's.
pub(crate) fn run<P: Pmem>(
    floor: &Floor<P>,
    data: &Data,
    action: FloorAction,
    (threads, operations): (usize, u64),
    (measure, chained): (Measure, bool),
    stream: u64,
) -> Result<Measured> {
    let pages = floor.insert_pages.end - floor.insert_pages.start;
    let mut start = floor.insert_pages.start;
    let workers = split(pages, threads)
        .into_iter()
        .enumerate()
        .map(|(thread, length)| {
            let pages = start..start + length;
            start = pages.end;
            Worker::new(floor, data, pages, thread as u32, stream << 8 | thread as u64)
        })
        .collect();
    let load = Load { shares: split(operations, threads), duration: None, measure, chained };
    let loaded = floor.loaded;
    let (measured, _) = match action {
        FloorAction::Insert => drive(workers, &load, |worker, after| {
            worker.next_number += 1;
            let number = worker.next_number + after;
            worker.booked(action, |worker| Ok(worker.write(number)))
        }),
        FloorAction::Get if !chained => drive(workers, &load, |worker, after| {
            let number = worker.next_independent() + after;
            worker.booked(action, |worker| worker.get(number))
        }),
        FloorAction::Get => drive(workers, &load, |worker, after| {
            let number = worker.random.below(loaded) + after;
            worker.booked(action, |worker| worker.get(number))
        }),
        FloorAction::Update => drive(workers, &load, |worker, after| {
            let number = worker.random.below(loaded) + after;
            worker.booked(action, |worker| worker.update(number))
        }),
        FloorAction::Overwrite => drive(workers, &load, |worker, after| {
            let number = worker.random.below(loaded) + after;
            worker.booked(action, |worker| Ok(worker.overwrite(number)))
        }),
        FloorAction::Delete => drive(workers, &load, |worker, after| {
            let number = worker.order.next() + after;
            worker.booked(action, |worker| worker.delete(number))
        }),
    }?;
    Ok(measured)
}

impl<'a, P: Pmem> Worker<'a, P> {
    fn new(
        floor: &'a Floor<P>,
        data: &'a Data,
        pages: Range<u64>,
        session: u32,
        stream: u64,
    ) -> Self {
        let mut random = Random::new(data.seed, stream);
        Self {
            floor,
            data,
            session,
            key: Vec::new(),
            value: vec![0; data.values.sizes().max()],
            record: vec![0; floor.layout.slot_bytes as usize],
            counter_at: data.values.counter_at().unwrap_or_default() as u64,
            order: Permutation::new(floor.loaded, &mut random),
            ahead: std::array::from_fn(|_| random.below(floor.loaded)),
            turn: 0,
            random,
            version: stream << 40,
            place: Place { page: pages.start, slot: 0 },
            next_number: floor.loaded + (u64::from(session) << 40),
            pages,
        }
    }

    /// Books an operation, for a backend that counts.
    #[inline(always)]
    fn booked(
        &mut self,
        action: FloorAction,
        work: impl FnOnce(&mut Self) -> Result<u64>,
    ) -> Result<u64> {
        let floor = self.floor;
        floor.pmem.operation_begin(action.class(), self.session);
        let outcome = work(self);
        floor.pmem.operation_acknowledge();
        outcome
    }

    /// Key and value are copied at once, with one check of bounds, and the key is compared in the copy by its first
    /// word, which no other key has.
    #[inline]
    fn get(&mut self, number: u64) -> Result<u64> {
        let floor = self.floor;
        floor.pmem.read(floor.record(floor.find(number)), &mut self.record);
        let (words, _) = self.record.as_chunks::<8>();
        let (Some(first), Some(last)) = (words.first(), words.last()) else { return lost(number) };
        if u64::from_le_bytes(*first) != self.data.keys.word(number) {
            return lost(number);
        }
        Ok(u64::from_le_bytes(*last))
    }

    /// The number of the next of many independent gets, whose misses were begun some gets ago. The processor by itself
    /// looks about 500 instructions ahead, which is little more than one get.
    #[inline]
    fn next_independent(&mut self) -> u64 {
        let floor = self.floor;
        let drawn = self.random.below(floor.loaded);
        floor.prefetch_entry(drawn);
        let half_way = self.ahead[(self.turn + AHEAD / 2) % AHEAD];
        floor.pmem.prefetch(floor.record(floor.find(half_way)));
        self.turn += 1;
        std::mem::replace(&mut self.ahead[(self.turn - 1) % AHEAD], drawn)
    }

    #[inline]
    fn update(&mut self, number: u64) -> Result<u64> {
        let place = self.place_of(number);
        let floor = self.floor;
        let Some(word) = floor.value(place).part(self.counter_at, 8) else { return Ok(0) };
        floor.pmem.prefetch_write(word);
        self.compare(number, place)?;
        let previous = floor.pmem.load_u64(word.offset());
        floor.pmem.store_u64(word.offset(), previous.wrapping_add(1), FLOOR);
        floor.pmem.flush(word, FLOOR);
        floor.pmem.fence(FLOOR);
        Ok(previous)
    }

    #[inline]
    fn delete(&mut self, number: u64) -> Result<u64> {
        let place = self.place_of(number);
        self.floor.pmem.prefetch_write(self.floor.bit(place).0);
        self.compare(number, place)?;
        self.change_bit(place, false);
        Ok(black_box(1))
    }

    #[inline]
    fn overwrite(&mut self, number: u64) -> u64 {
        let old = self.floor.find(number);
        self.floor.pmem.prefetch_write(self.floor.bit(old).0);
        let result = self.write(number);
        self.change_bit(old, false);
        result
    }

    /// Makes the key of a loaded record and looks for its place.
    #[inline(always)]
    fn place_of(&mut self, number: u64) -> Place {
        self.data.keys.write(number, &mut self.key);
        self.floor.find(number)
    }

    /// Compares the key at a place with the one made last.
    #[inline(always)]
    fn compare(&self, number: u64, place: Place) -> Result<()> {
        let floor = self.floor;
        if floor.pmem.compare(floor.key(place), &self.key) { Ok(()) } else { lost(number) }
    }

    /// Writes a record in the next slot.
    #[inline(always)]
    fn write(&mut self, number: u64) -> u64 {
        self.data.keys.write(number, &mut self.key);
        self.version += 1;
        self.data.values.write(number, self.version, &mut self.value);
        let floor = self.floor;
        let line = floor.line_of_new(number);
        prefetch_read(line);
        let place = self.place;
        floor.pmem.copy(floor.key(place), &self.key, FLOOR);
        floor.pmem.copy(floor.value(place), &self.value, FLOOR);
        floor.pmem.flush(floor.record(place), FLOOR);
        floor.pmem.fence(FLOOR);
        self.change_bit(place, true);
        line[4 + number as usize % 4].store(place.entry(), Ordering::Relaxed);
        self.place = floor.after(place, &self.pages);
        floor.pmem.prefetch_write(floor.record(self.place));
        floor.pmem.prefetch_write(floor.bit(self.place).0);
        black_box(1)
    }

    /// Sets or clears a slot's bit, durably.
    #[inline(always)]
    fn change_bit(&self, place: Place, set: bool) {
        let pmem = &self.floor.pmem;
        let (word, bit) = self.floor.bit(place);
        let old = pmem.load_u64(word.offset());
        let new = if set { old | bit } else { old & !bit };
        pmem.store_u64(word.offset(), new, FLOOR);
        pmem.flush(word, FLOOR);
        pmem.fence(FLOOR);
    }
}

#[cold]
fn lost<T>(number: u64) -> Result<T> {
    let what = "found another record in the floor's region";
    Err(BenchError::WrongAnswer { operation: "a floor", number, what })
}
