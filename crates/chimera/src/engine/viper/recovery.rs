//! Recovery (section 4.7): the used blocks are scanned in parallel and the index is built anew.
//!
//! Nothing on media tells where the sessions were. It is not needed, because a slot whose bit is not set is
//! free, whatever it holds. Of two records of a key the one with the higher version stays, whichever
//! thread finds it first; the other one's bit is cleared durably before the store serves anybody.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::OnceLock;

use chimera_pmem::{Operation, Pmem};

use super::records::{Records, no_index_memory};
use super::scan::{DamagedRecord, Finding, Scan};
use super::{sites, steps};
use crate::engine::{Options, Recovered};
use crate::index::{Resolve, TooManyCollisions};
use crate::pool::{Held, Location, Sums};
use crate::records::block_flags;
use crate::records::vpage::{self, PageBuffers, Pages, Room};
use crate::sync::{Mutex, lock};
use crate::types::error::{Error, Result};
use crate::types::stats::RecoveryStats;

/// Blocks, or up to twice as many, whose records are counted to see how large the index will be.
const SAMPLE_BLOCKS: u64 = 512;

/// What the threads have found together.
#[derive(Default)]
struct Findings {
    /// Old copies of keys, to be cleared.
    losers: Vec<Location>,
    damages: u64,
    /// The first damage by position.
    first_damage: Option<(u64, &'static str)>,
    /// Records were left out because the index takes no more of their hash.
    is_crowded: bool,
    /// An error that is not damage of records.
    failure: Option<Error>,
}

impl Findings {
    fn damage(&mut self, at: u64, what: &'static str) {
        self.damages += 1;
        if self.first_damage.is_none_or(|(first, _)| at < first) {
            self.first_damage = Some((at, what));
        }
    }
}

impl DamagedRecord {
    /// What of it the totals of closing have.
    fn held(self) -> Held {
        let location = self.place.location().raw();
        self.hash.map_or(Held::Located { location }, |hash| Held::Record { hash, location })
    }
}

/// Makes a store ready whose index is empty.
pub(super) struct Recovery<'r, P: Pmem, V: Pages> {
    records: &'r Records<P, V>,
    scan: Scan<'r, P, V>,
    findings: Mutex<Findings>,
}

/// Hashes of keys that have an old record in a damaged word, and where: salvage could not clear it.
pub(super) type Shadowed = BTreeMap<u64, u64>;

impl<'r, P: Pmem, V: Pages> Recovery<'r, P, V> {
    pub(super) fn new(records: &'r Records<P, V>, options: &Options) -> Self {
        let (values, salvage) = (options.verify_at_open.unwrap_or(true), options.pool.salvage);
        Self { records, scan: Scan { records, values, salvage }, findings: Mutex::default() }
    }

    /// Builds the index from the records of the first `blocks` blocks and brings them into order.
    pub(super) fn run(self, blocks: u64, options: &Options) -> Result<(Recovered, Shadowed)> {
        let (core, pool, salvage) = (self.records.core(), self.records.pool(), self.scan.salvage);
        let threads = core.recovery_threads(options.recovery_threads, blocks);
        self.records.space().blocks().ensure(blocks)?;
        self.records.index().reserve(self.estimate_records(blocks)).map_err(no_index_memory)?;

        let rooms: Vec<OnceLock<Room>> = (0..blocks).map(|_| OnceLock::new()).collect();
        core.in_chunks(threads, blocks, options.progress.as_ref(), |chunk, buffers| {
            pool.populate_blocks(chunk.clone());
            for block in chunk.clone() {
                if let Some(room) = self.recover_block(block, buffers) {
                    rooms[block as usize].get_or_init(|| room);
                }
            }
            self.write_back(chunk);
        });
        let findings = std::mem::take(&mut *lock(&self.findings));
        if let Some(failure) = findings.failure {
            return Err(failure);
        }
        if let (Some((at, what)), false) = (findings.first_damage, salvage) {
            return Err(Error::corrupted(what, at));
        }
        let compared =
            pool.compare_with_closing(salvage, Sums::Records, || self.records.totals())?;
        if findings.is_crowded {
            // At the next open others may be left out: also what was written meanwhile.
            core.poison.poison("more keys than chance allows have one 64-bit hash");
        }
        let shadowed = if !pool.read_only && !pool.pmem.skips(steps::CLEAR_LOSERS) {
            self.clear_losers(&findings.losers)?
        } else {
            Shadowed::new()
        };
        self.tidy(threads, &rooms, &findings.losers);
        let stats = RecoveryStats {
            blocks_scanned: blocks,
            records: self.records.index().len(),
            duplicates_cleared: findings.losers.len() as u64,
            records_damaged: findings.damages,
            threads,
            ..RecoveryStats::default()
        };
        Ok((Recovered { stats, compared }, shadowed))
    }

    /// About how many records there are, from those of some blocks, evenly spread.
    fn estimate_records(&self, blocks: u64) -> u64 {
        let _booked = self.records.core().book(Operation::Recovery, 0);
        let (pool, pages) = (self.records.pool(), self.records.pages());
        let step = (blocks / SAMPLE_BLOCKS).max(1);
        let sample = (0..blocks).step_by(step as usize);
        let has_records = |block: &u64| !block_flags::is_for_batches(pool, *block);
        sample.filter(has_records).map(|block| pages.usage(pool, block).live_records * step).sum()
    }

    /// Makes durable what was found in some blocks. A process that was killed may have stored a word without a
    /// fence: a record that is seen and then lost would be a write that somebody was told of, and a retired one
    /// that comes back has lost its place to another.
    fn write_back(&self, blocks: Range<u64>) {
        let pool = self.records.pool();
        if !pool.may_hold_undurable() {
            return;
        }
        for block in blocks {
            let whole = pool.extent(pool.map.block_at(block), pool.map.block_bytes);
            pool.pmem.flush(whole, sites::FOUND);
        }
        pool.pmem.fence(sites::FOUND);
    }

    /// Enters the records of a block into the index. The room in it, where it holds records.
    fn recover_block(&self, block: u64, buffers: &mut Buffers) -> Option<Room> {
        let Buffers { pages, found, key } = buffers;
        let index = self.records.index();
        found.clear();
        let room = self.scan.read_block(block, pages, &mut |finding| match finding {
            Finding::Record { record, hash, .. } => {
                // The index's lines arrive while the rest of the block is read.
                index.prefetch(hash);
                found.push((hash, record.place.location(), record.version()));
            }
            Finding::Damage { at, what, record } => {
                let held = record.map_or(Held::Unknown, DamagedRecord::held);
                self.note_damage(block, (at, what, held), &mut lock(&self.findings));
            }
        });
        let newest = found.iter().map(|(_, _, version)| *version).max().unwrap_or_default();
        self.records.space().note_version(newest);
        for &(hash, location, version) in found.iter() {
            if let Err(error) = index.prepare_insert() {
                lock(&self.findings).failure.get_or_insert(no_index_memory(error));
                return None;
            }
            let newer = |old| self.newer_of(old, (location, version), key);
            match index.upsert_with(hash, location, newer) {
                Ok(None) => {}
                Ok(Some(loser)) => lock(&self.findings).losers.push(loser),
                Err(TooManyCollisions) => {
                    let at = self.records.pages().place_of(location).record_at;
                    let what = "more keys than chance allows have one 64-bit hash";
                    let held = Held::Record { hash, location: location.raw() };
                    let mut findings = lock(&self.findings);
                    findings.is_crowded = true;
                    self.note_damage(block, (at, what, held), &mut findings);
                }
            }
        }
        room
    }

    /// Notes damage in a block, which salvage leaves out.
    #[cold]
    fn note_damage(
        &self,
        block: u64,
        (at, what, held): (u64, &'static str, Held),
        findings: &mut Findings,
    ) {
        self.records.space().blocks().note_damaged(block);
        findings.damage(at, what);
        if self.scan.salvage {
            self.records.pool().note_loss_of(held, at, what);
        }
    }

    /// Which of two records stays, if they are of one key: the one in the index or a new one. `key` is a buffer.
    #[cold]
    fn newer_of(&self, old: Location, new: (Location, u64), key: &mut Vec<u8>) -> Resolve {
        let (pool, pages) = (self.records.pool(), self.records.pages());
        if self.records.decode_with_key(&pages.place_of(new.0), key).is_none() {
            return Resolve::OtherKey;
        }
        let record = pages.decode(pool, &pages.place_of(old));
        let record = record.filter(|record| pages.key_is(pool, record, key));
        let Some(old_version) = record.map(|record| record.version()) else {
            return Resolve::OtherKey;
        };
        // A bit that came up by damage must not bring back a record that was retired.
        let is_intact = |at| pages.is_live(pool, &pages.place_of(at)).is_ok();
        if pool.pmem.skips(steps::VERSION_ORDER) {
            return Resolve::KeepOld;
        }
        let is_newer = (is_intact(new.0), new.1, new.0) > (is_intact(old), old_version, old);
        if is_newer { Resolve::KeepNew } else { Resolve::KeepOld }
    }

    /// Clears the bits of records that lost against a newer one of their key, durably. When salvaging,
    /// those in damaged words stay: they lose again at the next open, as long as the newer one is there.
    fn clear_losers(&self, losers: &[Location]) -> Result<Shadowed> {
        let _booked = self.records.core().book(Operation::Recovery, 0);
        let (pool, pages) = (self.records.pool(), self.records.pages());
        let (mut shadowed, mut key) = (Shadowed::new(), Vec::new());
        for place in losers.iter().map(|loser| pages.place_of(*loser)) {
            if self.scan.salvage && pages.is_live(pool, &place).is_err() {
                if self.records.decode_with_key(&place, &mut key).is_some() {
                    shadowed.insert(self.records.core().hash.of(&key), place.record_at);
                }
            } else {
                pages.retire(pool, &place, |_| {})?;
            }
        }
        Ok(shadowed)
    }

    /// Tidies all blocks. `rooms` is the room in each, as it was before the records that lost were cleared.
    fn tidy(&self, threads: usize, rooms: &[OnceLock<Room>], losers: &[Location]) {
        let pages = self.records.pages();
        let changed: BTreeSet<u64> =
            losers.iter().map(|loser| pages.place_of(*loser).block).collect();
        let blocks = rooms.len() as u64;
        self.records.core().in_chunks(threads, blocks, None, |chunk, (): &mut ()| {
            let mut is_any_sealed = false;
            for block in chunk {
                let room = rooms[block as usize].get().filter(|_| !changed.contains(&block));
                is_any_sealed |= self.tidy_block(block, room.copied());
            }
            if is_any_sealed {
                self.records.pool().pmem.fence(vpage::sites::SEAL);
            }
        });
    }

    /// Ends what a session of the last process left in a block, and queues it if it has room; `room` if that is
    /// known. Whether it sealed pages, which is durable with the caller's next fence.
    fn tidy_block(&self, block: u64, room: Option<Room>) -> bool {
        let (pool, pages) = (self.records.pool(), self.records.pages());
        let blocks = self.records.space().blocks();
        // Where they are damaged and salvaged, nobody writes again.
        let Ok(flags) = block_flags::read(pool, block) else { return false };
        if flags & block_flags::BATCH != 0 {
            self.records.space().note_piece(block);
            return false;
        }
        let is_left_alone = blocks.is_damaged(block) && flags & block_flags::FREE != 0;
        if is_left_alone || pool.read_only {
            return false;
        }
        let logs = pages.spilling().filter(|_| !pool.was_clean());
        let is_sealed = logs.is_some_and(|logs| logs.seal_open(pool, block));
        let tidied = if flags & block_flags::OWNED != 0 {
            block_flags::change(pool, block, 0, block_flags::OWNED)
        } else {
            Ok(())
        };
        if let Err(error) = tidied {
            log::warn!("block {block} is not used again: {error}");
            return is_sealed;
        }
        let count = || room.unwrap_or_else(|| pages.room_in(pool, block));
        blocks.leave(block, None, count);
        is_sealed
    }
}

/// What one thread needs to read blocks.
#[derive(Default)]
struct Buffers {
    pages: PageBuffers,
    /// Hash, location, version.
    found: Vec<(u64, Location, u64)>,
    key: Vec<u8>,
}
