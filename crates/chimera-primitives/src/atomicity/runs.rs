//! [`Runs`]: the first two levels of an LSM tree in persistent memory (Figure 4): data is moved to the first (E6), whose four
//! runs are merged into the second (E7).
//!
//! # Layout
//! One line whose first word, `Run_Ptr`, says what there is: in its lowest byte how many runs of the first level are filled,
//! in the next which of two places holds the run of the second level (1 or 2; 0: none). Four runs of the first level; two
//! places of the second; the undo log.
//!
//! # Protocol
//! A run that `Run_Ptr` does not count is free, whatever it holds. So a run is written and flushed first, and `Run_Ptr` stored
//! afterwards: by itself, in a transaction, or in one with the run.

use chimera_pmem::{CACHE_LINE, Extent, Pmem};

use super::run::{Run, RunBuffer, RunGeometry};
use super::{FailureAtomicity, UndoLog, sites};
use crate::error::{PrimitivesError, Result};

/// Runs of the first level.
pub const L0_RUNS: usize = 4;

/// How runs are merged (Figures 3b and 3c).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// Pairs to buffers in DRAM, and the two buffers then.
    TwoWay,
    /// All at once.
    KWay,
}

/// What they are merged into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeInto {
    /// The run itself, entry by entry.
    Direct,
    /// A buffer in DRAM, which is copied then.
    Buffered,
}

/// Two levels of runs. One at a time uses them.
#[derive(Clone, Copy, Debug)]
pub struct Runs {
    at: u64,
    geometry: RunGeometry,
    /// Entries of the second level's run.
    second: usize,
    kind: FailureAtomicity,
    log: UndoLog,
}

/// Something that is merged: newer ones first.
enum Source<'a> {
    Run(Run),
    Buffer(&'a RunBuffer),
}

impl Source<'_> {
    fn count<P: Pmem>(&self, pmem: &P) -> Result<usize> {
        match self {
            Source::Run(run) => run.count(pmem),
            Source::Buffer(buffer) => Ok(buffer.count),
        }
    }
}

/// The next entry of a source.
struct Head {
    source: usize,
    next: usize,
    count: usize,
    /// The key at `next`.
    key: Vec<u64>,
}

impl Runs {
    /// Bytes of a region with runs of this geometry and a second level with room for `second` entries.
    pub fn bytes(geometry: RunGeometry, second: usize) -> u64 {
        let (first, other) = (geometry.run_bytes(geometry.entries), geometry.run_bytes(second));
        CACHE_LINE + L0_RUNS as u64 * first + 2 * other + Self::log_bytes(geometry, second)
    }

    fn log_bytes(geometry: RunGeometry, second: usize) -> u64 {
        UndoLog::bytes_for(&[geometry.run_bytes(second.max(geometry.entries)), 8])
    }

    /// Opens the runs in a region, which consists of zeros or has runs already. Takes back what a crash has cut off.
    ///
    /// # Errors
    /// `Corrupted` when the region holds something else.
    pub fn open<P: Pmem>(
        pmem: &P,
        at: u64,
        geometry: RunGeometry,
        second: usize,
        kind: FailureAtomicity,
    ) -> Result<Self> {
        let bytes = Self::bytes(geometry, second);
        if !at.is_multiple_of(CACHE_LINE) || pmem.check(at, bytes).is_none() {
            return PrimitivesError::corrupted("runs lie nowhere", at);
        }
        let log_bytes = Self::log_bytes(geometry, second);
        let log = UndoLog::new(pmem, at + bytes - log_bytes, log_bytes)?;
        log.recover(pmem)?;
        let runs = Self { at, geometry, second, kind, log };
        runs.state(pmem)?;
        Ok(runs)
    }

    fn pointer(&self) -> Extent {
        Extent::new_checked(self.at, 8)
    }

    /// Runs of the first level that are filled, and the place of the second.
    fn state<P: Pmem>(&self, pmem: &P) -> Result<(usize, u64)> {
        let word = pmem.load_u64(self.at);
        let (filled, place) = (word & 0xFF, word >> 8);
        if filled > L0_RUNS as u64 || place > 2 {
            return PrimitivesError::corrupted("Run_Ptr counts runs that are not there", self.at);
        }
        Ok((filled as usize, place))
    }

    fn first(&self, number: usize) -> Run {
        let bytes = self.geometry.run_bytes(self.geometry.entries);
        let at = self.at + CACHE_LINE + number as u64 * bytes;
        Run { at, entries: self.geometry.entries, geometry: self.geometry }
    }

    /// The second level's run in place 1 or 2.
    fn second(&self, place: u64) -> Run {
        let base = self.first(L0_RUNS).at;
        let at = base + (place - 1) * self.geometry.run_bytes(self.second);
        Run { at, entries: self.second, geometry: self.geometry }
    }

    /// Runs of the first level that are filled.
    ///
    /// # Errors
    /// `Corrupted` when the region is damaged.
    pub fn filled<P: Pmem>(&self, pmem: &P) -> Result<usize> {
        Ok(self.state(pmem)?.0)
    }

    /// Entries of the second level.
    ///
    /// # Errors
    /// `Corrupted` when the region is damaged.
    pub fn second_count<P: Pmem>(&self, pmem: &P) -> Result<usize> {
        match self.state(pmem)?.1 {
            0 => Ok(0),
            place => self.second(place).count(pmem),
        }
    }

    /// Moves entries to the next free run of the first level (E6).
    ///
    /// # Errors
    /// `Full` when all runs are filled, or there are more entries than fit.
    ///
    /// # Durability
    /// All of them survive a power loss when the call returns; before that, all or nothing.
    ///
    /// # Cost
    /// The lines of the run and one more; two fences, five with the pointer in a transaction, six with all.
    pub fn push<P: Pmem>(&self, pmem: &P, entries: &RunBuffer) -> Result<()> {
        let (filled, place) = self.state(pmem)?;
        if filled == L0_RUNS || entries.count > self.geometry.entries {
            return Err(PrimitivesError::Full);
        }
        let run = self.first(filled);
        let pointer = (filled as u64 + 1) | (place << 8);
        if self.kind == FailureAtomicity::Transactional {
            let mut transaction = self.log.begin(pmem);
            transaction.snapshot(run.used(entries.count))?;
            transaction.snapshot(self.pointer())?;
            run.write(pmem, entries);
            transaction.store(self.at, pointer);
            transaction.commit();
            return Ok(());
        }
        run.write(pmem, entries);
        run.persist(pmem, entries.count);
        self.set_pointer(pmem, pointer, run.used(entries.count))
    }

    /// Makes `Run_Ptr` durable, by itself or in a transaction.
    fn set_pointer<P: Pmem>(&self, pmem: &P, pointer: u64, run: Extent) -> Result<()> {
        if self.kind == FailureAtomicity::Individual {
            let mut transaction = self.log.begin(pmem);
            transaction.snapshot(self.pointer())?;
            pmem.publish(self.at, pointer, &[run], sites::RUN_POINTER);
            transaction.commit();
        } else {
            pmem.publish(self.at, pointer, &[run], sites::RUN_POINTER);
            pmem.flush(self.pointer(), sites::RUN_POINTER);
            pmem.fence(sites::RUN_POINTER);
        }
        Ok(())
    }

    /// Merges the runs of the first level, and that of the second if there is one, into a new run of the second (E7). Of equal
    /// keys the newest stays.
    ///
    /// # Errors
    /// `Full` when the new run has no room for all.
    ///
    /// # Durability
    /// The new run survives a power loss when the call returns; before that the old ones are in force.
    ///
    /// # Cost
    /// All entries are read once and written once. In a transaction, the place of the new run is snapshot first: all of it,
    /// where how many entries there will be is not known beforehand.
    pub fn merge<P: Pmem>(&self, pmem: &P, how: Merge, into: MergeInto) -> Result<()> {
        let (filled, place) = self.state(pmem)?;
        let mut sources: Vec<Source<'_>> =
            (0..filled).rev().map(|number| Source::Run(self.first(number))).collect();
        if place > 0 {
            sources.push(Source::Run(self.second(place)));
        }
        let (target, target_place) = match place {
            1 => (self.second(2), 2),
            _ => (self.second(1), 1),
        };
        let mut buffers = Vec::new();
        if how == Merge::TwoWay {
            for pair in sources.chunks(2) {
                let mut buffer = RunBuffer::default();
                self.merge_sources(pmem, pair, &mut |_, entry| {
                    buffer.bytes.extend_from_slice(entry);
                    buffer.count += 1;
                    Ok(())
                })?;
                buffers.push(buffer);
            }
            sources = buffers.iter().map(Source::Buffer).collect();
        }
        let pointer = target_place << 8;
        match into {
            MergeInto::Direct => self.merge_direct(pmem, &sources, target, pointer),
            MergeInto::Buffered => self.merge_buffered(pmem, &sources, target, pointer),
        }?;
        // What was merged is reachable no more.
        (0..filled).for_each(|number| pmem.withdrawn(self.first(number).extent()));
        if place > 0 {
            pmem.withdrawn(self.second(place).extent());
        }
        Ok(())
    }

    fn merge_direct<P: Pmem>(
        &self,
        pmem: &P,
        sources: &[Source<'_>],
        target: Run,
        pointer: u64,
    ) -> Result<()> {
        let most = sources.iter().map(|source| source.count(pmem)).sum::<Result<usize>>()?;
        let most = most.min(target.entries);
        // Between buffers the sum is known; of runs that are merged at once the paper adds the whole place.
        let of_buffers = sources.iter().all(|source| matches!(source, Source::Buffer(_)));
        let known = if of_buffers { most } else { target.entries };
        let mut transaction = None;
        if self.kind == FailureAtomicity::Transactional {
            let mut begun = self.log.begin(pmem);
            begun.snapshot(target.used(known))?;
            begun.snapshot(self.pointer())?;
            transaction = Some(begun);
        }
        let mut count = 0;
        let merged = self.merge_sources(pmem, sources, &mut |number, entry| {
            if number == target.entries {
                return Err(PrimitivesError::Full);
            }
            target.write_entry(pmem, number, entry);
            count = number + 1;
            Ok(())
        });
        if let Err(error) = merged {
            if transaction.is_some() {
                self.log.recover(pmem)?;
            }
            return Err(error);
        }
        target.write_count(pmem, count);
        if let Some(mut transaction) = transaction {
            transaction.store(self.at, pointer);
            transaction.commit();
            return Ok(());
        }
        target.persist(pmem, count);
        self.set_pointer(pmem, pointer, target.used(count))
    }

    fn merge_buffered<P: Pmem>(
        &self,
        pmem: &P,
        sources: &[Source<'_>],
        target: Run,
        pointer: u64,
    ) -> Result<()> {
        let mut buffer = RunBuffer::default();
        self.merge_sources(pmem, sources, &mut |_, entry| {
            buffer.bytes.extend_from_slice(entry);
            buffer.count += 1;
            Ok(())
        })?;
        if buffer.count > target.entries {
            return Err(PrimitivesError::Full);
        }
        if self.kind == FailureAtomicity::Transactional {
            let mut transaction = self.log.begin(pmem);
            transaction.snapshot(target.used(buffer.count))?;
            transaction.snapshot(self.pointer())?;
            target.write(pmem, &buffer);
            transaction.store(self.at, pointer);
            transaction.commit();
            return Ok(());
        }
        target.write(pmem, &buffer);
        target.persist(pmem, buffer.count);
        self.set_pointer(pmem, pointer, target.used(buffer.count))
    }

    fn read_key<P: Pmem>(&self, pmem: &P, source: &Source<'_>, head: &mut Head) {
        let words = 0..self.geometry.key_words;
        head.key.clear();
        match source {
            Source::Run(run) => {
                let at = run.entry(head.next).offset();
                head.key.extend(words.map(|word| pmem.load_u64(at + 8 * word as u64)));
            }
            Source::Buffer(buffer) => {
                let at = head.next * self.geometry.entry_bytes();
                let (words, _) = buffer.bytes[at..][..8 * self.geometry.key_words].as_chunks::<8>();
                head.key.extend(words.iter().map(|word| u64::from_le_bytes(*word)));
            }
        }
    }

    /// Hands the entries of all sources to `take` with their numbers, in the order of keys; of equal ones the first source's.
    fn merge_sources<P: Pmem>(
        &self,
        pmem: &P,
        sources: &[Source<'_>],
        take: &mut dyn FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut heads = Vec::with_capacity(sources.len());
        for (number, source) in sources.iter().enumerate() {
            let count = source.count(pmem)?;
            let mut head = Head { source: number, next: 0, count, key: Vec::new() };
            if count > 0 {
                self.read_key(pmem, source, &mut head);
                heads.push(head);
            }
        }
        let mut entry = vec![0; self.geometry.entry_bytes()];
        let mut key = Vec::new();
        let mut number = 0;
        while let Some(least) = heads.iter().min_by(|a, b| a.key.cmp(&b.key)) {
            match &sources[least.source] {
                Source::Run(run) => pmem.read(run.entry(least.next), &mut entry),
                Source::Buffer(buffer) => {
                    let at = least.next * entry.len();
                    let length = entry.len();
                    entry.copy_from_slice(&buffer.bytes[at..][..length]);
                }
            }
            take(number, &entry)?;
            number += 1;
            key.clone_from(&least.key);
            for head in heads.iter_mut().filter(|head| head.key == key) {
                head.next += 1;
                if head.next < head.count {
                    self.read_key(pmem, &sources[head.source], head);
                }
            }
            heads.retain(|head| head.next < head.count);
        }
        Ok(())
    }

    /// The value of a key, newest first; whether there is one.
    ///
    /// # Errors
    /// `Corrupted` when the region is damaged.
    pub fn get<P: Pmem>(&self, pmem: &P, key: &[u64], value: &mut Vec<u8>) -> Result<bool> {
        let (filled, place) = self.state(pmem)?;
        for number in (0..filled).rev() {
            if self.first(number).find(pmem, key, value)? {
                return Ok(true);
            }
        }
        match place {
            0 => Ok(false),
            place => self.second(place).find(pmem, key, value),
        }
    }
}
