//! Recovery of the log: what its runs say, where open ones end, and the records that may not be in tables.
//!
//! # Where the log of an open run ends
//! The log ends at the first record that is not sound. Damage must not look like an end:
//! - Without batches a crash tears one record at most. So a sound head with the run's number anywhere behind the end is damage.
//! - With batches the heads of pending records begin less than a batch behind the last durable one. So one that begins later is
//!   damage. The size of the batch is that of the run's header, not that of the options.
//!
//! Damage of the last records of an open run cannot be told from a crash: docs/DURABILITY.md says which.
//!
//! Bytes of an earlier use of the run are no records, because they name another sequence number. So does what a crash cut off
//! in an earlier life, because a run that is opened again gets a new number. A record that is half old and half new does not
//! match its checksums, which cover the number.

use chimera_pmem::Pmem;

use super::header::{HEADER_BYTES, Header, HeaderAt};
use super::replay::Share;
use super::runs::{Entry, Slot, Table, Use};
use super::walk::Walk;
use super::{StorageLog, sites};
use crate::pool::Held;
use crate::pool::runs::Run;
use crate::types::error::{Error, Result};
use crate::types::totals::Totals;

/// Bytes of keys that are looked at behind the end of a run, for each byte there: what looks like a record and is none is
/// hardly ever there, so more than this was put there on purpose.
const LOOKED_AT_MAX: u64 = 2;

/// Sequence numbers that were given at most since one that is known.
const SEQUENCES_LOST_MAX: u64 = 1 << 24;

/// A record that may not be in a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replayed<'a> {
    pub(crate) at: u64,
    pub(crate) bytes: u64,
    /// The hash of its key.
    pub(crate) hash: u64,
    pub(crate) version: u64,
    pub(crate) is_tombstone: bool,
    #[cfg_attr(
        not(any(test, feature = "baselines")),
        expect(dead_code, reason = "ChameleonDB goes by the hash")
    )]
    pub(crate) key: &'a [u8],
}

/// What recovery did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recovered {
    pub(crate) runs: u64,
    /// Runs that were not sealed.
    pub(crate) open_runs: u64,
    /// What was replayed.
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    /// Places where records are missing (salvage only).
    pub(crate) damaged: u64,
    /// Of these, runs whose header is damaged.
    pub(crate) damaged_headers: u64,
    /// As [`StorageLog::totals`], of what was found.
    pub(crate) totals: Totals,
}

/// What recovery has found and not changed yet: it is to be [settled](StorageLog::settle).
#[must_use]
pub(crate) struct Unsettled(Vec<FoundRun>);

struct FoundRun {
    slot: Slot,
    /// It is to be sealed, with records that were not sealed before from here on.
    open_from: Option<u64>,
}

/// A run that was found, and up to where its records are sound.
struct Found {
    entry: Entry,
    /// Where replay begins.
    start: u64,
    /// It is to be sealed, with records that were not sealed before from here on.
    open_from: Option<u64>,
}

impl<P: Pmem> StorageLog<P> {
    /// As [`recover_from`](Self::recover_from), of the records alone that may not be in a table.
    ///
    /// # Errors
    /// As there.
    #[cfg(any(test, feature = "baselines"))]
    pub(crate) fn recover(
        &self,
        runs: Vec<Run>,
        salvage: bool,
        visit: impl FnMut(Replayed<'_>) -> Result<bool>,
    ) -> Result<(Recovered, Unsettled)> {
        self.recover_from(runs, salvage, false, visit)
    }

    /// Takes over the runs that [`recover_runs`](crate::pool::Pool::recover_runs) found, and tells `visit` of every record
    /// that may not be in a table; `visit` says whether it is not. Such a record is to be
    /// [counted as in a table](Self::flushed) later. The order is that of the log for records of one session, and none
    /// otherwise. Where `tells_all`, as in a store that has lost tables, `visit` is told of the records that are in tables as
    /// well.
    ///
    /// Nothing is stored, and what was found may not be durable, until it is [settled](Self::settle). Nothing is freed until
    /// references are [counted](Self::end_counting).
    ///
    /// # Errors
    /// `Corrupted` when a header or a record is damaged. With `salvage` the rest of such a run is left out, and the run
    /// is neither freed nor appended to. What `visit` returns.
    ///
    /// # Cost
    /// The header of each run; all of an open one; the lines of what is replayed.
    pub(crate) fn recover_from(
        &self,
        runs: Vec<Run>,
        salvage: bool,
        tells_all: bool,
        mut visit: impl FnMut(Replayed<'_>) -> Result<bool>,
    ) -> Result<(Recovered, Unsettled)> {
        self.runs.set_counting(true);
        let mut recovered = Recovered { runs: runs.len() as u64, ..Recovered::default() };
        let found = runs.into_iter().map(|run| self.find_run(run, salvage, &mut recovered));
        let mut found: Vec<_> = found.collect::<Result<_>>()?;
        for found in &found {
            found.entry.add_to(&mut recovered.totals);
        }
        if tells_all {
            let first = |header: HeaderAt| header.0 + HEADER_BYTES;
            for found in &mut found {
                found.start = first(found.entry.header);
            }
        }
        if recovered.damaged_headers > 0 {
            // They may have said how high sequence numbers are.
            self.runs.skip_sequences(self.runs.next_sequence() + SEQUENCES_LOST_MAX);
        }
        found.sort_by_key(|found| found.entry.sequence);
        let replay = |found| self.replay(found, salvage, &mut recovered, &mut visit);
        let unsettled = found.into_iter().map(replay).collect::<Result<_>>()?;
        Ok((recovered, Unsettled(unsettled)))
    }

    /// Makes durable what was found, seals the open runs, and makes what is sound ready to be appended to and marked. Before
    /// anything durable is made of what was replayed, and before there are sessions. Nothing in a store that is open for
    /// reading only.
    ///
    /// # Durability
    /// What was found is durable on return, and so is that all runs are sealed. A crash before leaves runs open.
    ///
    /// # Cost
    /// 2 fences, the lines of records in open runs, and 1 line for each of these; 1 line for each run where the last process
    /// may have left stores that are not durable.
    pub(crate) fn settle(&self, Unsettled(found): Unsettled) {
        if self.pool.read_only {
            return;
        }
        let mut table = self.runs.lock(&*self.pool.environment);
        self.write_back(&mut table, &found);
        for FoundRun { slot, .. } in found {
            if table.entry(slot).usage == Use::Sealed {
                self.offer(&mut table, slot);
                self.mark_flushed(&mut table, slot);
            }
        }
    }

    /// What a run says, and where its records end.
    fn find_run(&self, run: Run, salvage: bool, recovered: &mut Recovered) -> Result<Found> {
        let (at, end) = self.place_of(&run);
        let (start, sequence, flushed) = (at.0 + HEADER_BYTES, 0, 0);
        let header = match at.load(&self.pool, end.saturating_sub(at.0)) {
            Err(error) if salvage => {
                self.pool.note_lost(&error, at.0);
                recovered.damaged += 1;
                recovered.damaged_headers += 1;
                let (usage, tail, share) = (Use::Condemned, start, Share::default());
                let entry = Entry { run, header: at, sequence, tail, end, usage, flushed, share };
                return Ok(Found { entry, start, open_from: None });
            }
            header => header?,
        };
        let Header { sequence, state, flushed, .. } = header;
        self.runs.skip_sequences(header.highest.max(sequence));
        let (mut tail, mut usage, mut open_from) = (at.0 + state.tail, Use::Sealed, None);
        if !state.is_sealed {
            let sealed = tail;
            recovered.open_runs += 1;
            tail = self.find_end(sealed, end, sequence as u32);
            open_from = Some(sealed);
            match self.check_behind(tail, end, &header) {
                Err(error) if salvage => {
                    self.pool.note_lost(&error, tail);
                    recovered.damaged += 1;
                    (usage, open_from) = (Use::Condemned, None);
                }
                checked => checked?,
            }
        }
        let start = start.max(at.0 + flushed);
        let (flushed, share) = (at.0 + flushed, Share::default());
        let entry = Entry { run, header: at, sequence, tail, end, usage, flushed, share };
        Ok(Found { entry, start, open_from })
    }

    /// Where the records of an open run end that begin at `at`: the first place without a sound record of this use of the
    /// run.
    fn find_end(&self, at: u64, end: u64, use_number: u32) -> u64 {
        let mut walk = Walk::between(at, end);
        while let Some((head, _)) = self.judge(&mut walk, Some(use_number)) {
            walk.at += head.span();
        }
        walk.at
    }

    /// Checks that nothing behind the end of an open run was durable when its session appended further: a session has at
    /// most one record more than a batch that is not.
    fn check_behind(&self, tail: u64, end: u64, header: &Header) -> Result<()> {
        let (mut key, mut looked_at) = (Vec::new(), 0);
        let damage = || Error::corrupted("a run of the log has records behind a damaged one", tail);
        let first = tail.saturating_add(header.batch_bytes.next_multiple_of(8).max(8));
        let use_number = Some(header.sequence as u32);
        for at in (first..end).step_by(8) {
            let Some(head) = self.head_at(at, end, use_number) else { continue };
            if head.is_sound(at, self.read_hash(at, &head, &mut key)) {
                return Err(damage());
            }
            looked_at += head.key_bytes as u64;
            if looked_at > LOOKED_AT_MAX * (end - tail) {
                return Err(damage());
            }
        }
        Ok(())
    }

    /// Makes what was found durable, and then seals the open runs: the last process may have been killed before it did.
    fn write_back(&self, table: &mut Table, found: &[FoundRun]) {
        let (pool, may_hold) = (&self.pool, self.pool.may_hold_undurable());
        let mut is_any = false;
        for FoundRun { slot, open_from } in found {
            let entry = table.entry(*slot);
            if let Some(from) = open_from.filter(|from| *from < entry.tail) {
                pool.pmem.flush(pool.extent(from, entry.tail - from), sites::FOUND);
                is_any = true;
            }
            if may_hold {
                entry.header.flush(pool, sites::FOUND);
                is_any = true;
            }
        }
        if is_any {
            pool.pmem.fence(sites::FOUND);
        }
        let mut is_any_sealed = false;
        for FoundRun { slot, .. } in found.iter().filter(|found| found.open_from.is_some()) {
            let entry = table.entry(*slot);
            entry.header.seal(pool, entry.tail - entry.header.0, sites::SEAL);
            is_any_sealed = true;
        }
        if is_any_sealed {
            pool.pmem.fence(sites::SEAL);
        }
    }

    /// Adds a run, and tells of its records that may not be in tables.
    fn replay(
        &self,
        found: Found,
        salvage: bool,
        recovered: &mut Recovered,
        visit: &mut impl FnMut(Replayed<'_>) -> Result<bool>,
    ) -> Result<FoundRun> {
        let (tail, open_from) = (found.entry.tail, found.open_from);
        let environment = &*self.pool.environment;
        let added = self.runs.add(&mut self.runs.lock(environment), found.entry);
        let slot = added.map_err(|(_, error)| error)?;
        let mut walk = Walk::between(found.start, tail);
        loop {
            let at = walk.at;
            let walked = match self.next(&mut walk) {
                Ok(walked) => walked,
                Err(error @ Error::Corrupted { .. }) if salvage => {
                    recovered.damaged += 1;
                    self.runs.set_use(&mut self.runs.lock(environment), slot, Use::Condemned);
                    walk.at = at;
                    // What its key had before is not its value.
                    let walked = self.next_without_value(&mut walk);
                    // Where its value alone is damaged, it is told of.
                    let held = if walked.is_some() { Held::Nothing } else { Held::Unknown };
                    self.pool.note_lost_of(held, &error, at);
                    walked
                }
                Err(error) => return Err(error),
            };
            let Some(walked) = walked else { break };
            recovered.records += 1;
            recovered.bytes += walked.bytes;
            let (at, bytes, hash, key) = (walked.at, walked.bytes, walked.hash, walked.key);
            let (version, is_tombstone) = (walked.version, walked.value.is_none());
            if visit(Replayed { at, bytes, hash, version, is_tombstone, key })? {
                self.runs.get(slot).write();
            }
        }
        Ok(FoundRun { slot, open_from })
    }
}
