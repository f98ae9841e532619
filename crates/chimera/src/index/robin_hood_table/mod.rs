//! [`RobinHoodTable`]: one large table in DRAM with robin hood hashing, for a store whose whole index is there (`Dram-Hash` of
//! ChameleonDB, EuroSys'21, section 3.2).
//!
//! An entry is a [`Slot`] of 16 bytes: the hash of a key, and the location of its record. The table knows no records. A lookup
//! hands the locations of a hash to a closure of the caller, which answers whether the record of its key lies there
//! ([`Probe`]).
//!
//! # Structure
//! The first bits of a hash choose a *part*, the next ones its *home* in the part. An entry lies in a slot from its home on,
//! going round at the end of the part. An entry that is made takes the slot of one that is nearer to its own home, which then
//! moves on; one that is removed lets those behind it move back. So entries lie in the order of their homes, and a lookup ends
//! at the first one that is nearer to its home than the one that is looked for would be.
//!
//! # Concurrency
//! A part has a [`VersionLock`]. Whoever changes entries holds it. Lookups take no lock: they read the version, probe, and
//! read the version again. Changes touch a few lines and wait for nothing.
//!
//! # Growth stops the world
//! When a part is four fifths full, all parts double at once, under all their locks: every entry moves, and all readers and
//! writers wait meanwhile. That is on purpose. It is what the table is compared with: the paper shows its largest put, which
//! takes 3.23 s. Slots double in place, so growth takes no memory but for one part.
//!
//! # Cost
//! 16 bytes for each slot. Between two and four fifths of the slots are in use, so 20 to 40 bytes for each key; 34.4 for a
//! billion keys in 2^31 slots, where the paper has 33.3. A lookup reads 1 line, sometimes 2.
//!
//! Hashes that agree in their first bits would double a table for ever: one that is nearly empty does not grow.

mod growth;
mod list;
mod shape;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use chimera_pmem::{Environment, prefetch_read};

use super::probing_table::{Found, Slot};
use super::{OutOfSpace, Probe, TooManyCollisions};
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::sync::{Arena, VersionGuard, VersionLock};
use shape::Shape;

/// Slots of a line of the cache.
const PER_LINE: u64 = 4;

/// A slot that many threads use.
#[derive(Debug, zerocopy::FromZeros)]
#[repr(C)]
struct SharedSlot {
    hash: AtomicU64,
    /// 0 if the slot is empty.
    location: AtomicU64,
}

/// A line of slots.
#[derive(Debug, zerocopy::FromZeros)]
#[repr(C, align(64))]
struct Line([SharedSlot; PER_LINE as usize]);

/// What is known of a part beside its slots.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Part {
    lock: VersionLock,
    /// Entries, and room that was reserved.
    entries: AtomicU64,
}

/// Why there is no room for an entry. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoRoom {
    #[error(transparent)]
    OutOfSpace(#[from] OutOfSpace),
    /// Too many hashes begin with the same bits.
    #[error(transparent)]
    TooManyCollisions(#[from] TooManyCollisions),
}

/// The table. Any number of threads may call anything at any time. The caller keeps others from changing the entry of a key
/// while it does: by a lock of the key.
#[derive(Debug)]
pub(crate) struct RobinHoodTable {
    environment: Arc<dyn Environment>,
    lines: Arena<Line>,
    parts: Box<[Part]>,
    part_bits: u32,
    /// log2 of the slots of a part. Changes under the locks of all parts.
    slot_bits: AtomicU32,
}

impl RobinHoodTable {
    /// An empty table of 2^`part_bits` parts with 2^`slot_bits` slots each; at least 4 of each.
    ///
    /// # Errors
    /// When there is no memory.
    pub(crate) fn new(
        environment: Arc<dyn Environment>,
        part_bits: u32,
        slot_bits: u32,
        huge_pages: bool,
    ) -> Result<Self, OutOfSpace> {
        assert!(part_bits >= 2 && slot_bits >= 2, "a table has 4 parts of 4 slots");
        let first = 1 << (part_bits + slot_bits - PER_LINE.ilog2());
        let lines = Arena::new(first, huge_pages);
        lines.ensure(first as u64).map_err(|_| OutOfSpace)?;
        let parts = (0..1 << part_bits).map(|_| Part::default()).collect();
        Ok(Self { environment, lines, parts, part_bits, slot_bits: AtomicU32::new(slot_bits) })
    }

    // ---- readers -------------------------------------------------------------------------------

    /// Asks `probe` about the entries of a hash, one after the other, until it answers anything but `NotThis`, and gives that
    /// answer: `NotThis` if it was asked about all. `None` where somebody has changed the part meanwhile: what was asked and
    /// answered means nothing.
    ///
    /// # Cost
    /// 1 line, sometimes 2.
    #[inline]
    pub(crate) fn find_once<T>(
        &self,
        hash: u64,
        probe: &mut impl FnMut(Found) -> Probe<T>,
    ) -> Option<Probe<T>> {
        let lock = &self.part(hash).lock;
        let version = lock.read_begin()?;
        let answer = self.probe(hash, probe);
        lock.read_is_valid(version).then_some(answer)
    }

    #[inline(always)]
    fn probe<T>(&self, hash: u64, probe: &mut impl FnMut(Found) -> Probe<T>) -> Probe<T> {
        let shape = self.shape();
        for (number, distance) in shape.chain(hash) {
            let slot = self.load(number);
            if slot.location == 0 || shape.distance(slot.hash, number) < distance {
                break;
            }
            if slot.hash != hash {
                continue;
            }
            let Some(found) = slot.found() else { return Probe::Retry };
            match probe(found) {
                Probe::NotThis => {}
                answer => return answer,
            }
        }
        Probe::NotThis
    }

    /// Starts loading the slots where the entries of a hash are.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        if let Some((number, _)) = self.shape().chain(hash).next() {
            prefetch_read(self.slot(number));
        }
    }

    /// Entries, and room that was reserved; while others change the table, roughly.
    ///
    /// # Cost
    /// A load for each part.
    pub(crate) fn len(&self) -> u64 {
        self.parts.iter().map(|part| part.entries.load(Ordering::Relaxed)).sum()
    }

    /// Slots.
    pub(crate) fn slots(&self) -> u64 {
        self.shape().slots() << self.part_bits
    }

    /// Bytes of DRAM.
    pub(crate) fn bytes(&self) -> u64 {
        self.slots() * size_of::<SharedSlot>() as u64 + size_of_val(&*self.parts) as u64
    }

    // ---- writers -------------------------------------------------------------------------------

    /// Reserves room for an entry of a hash, which is [made](Self::insert) or [given up](Self::release) afterwards.
    ///
    /// # Errors
    /// When the table would have to grow and cannot.
    ///
    /// # Cost
    /// 1 atomic addition; where the table grows, all of it.
    #[inline]
    pub(crate) fn reserve(&self, hash: u64) -> Result<(), NoRoom> {
        let entries = &self.part(hash).entries;
        loop {
            let shape = self.shape();
            let add = |entries| (entries < shape.entries_max()).then_some(entries + 1);
            if entries.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok() {
                return Ok(());
            }
            self.grow(shape)?;
        }
    }

    /// Gives up room that was reserved for an entry of a hash.
    pub(crate) fn release(&self, hash: u64) {
        self.part(hash).entries.fetch_sub(1, Ordering::Relaxed);
    }

    /// Makes an entry of a key that has none, in room that was [reserved](Self::reserve).
    #[inline]
    pub(crate) fn insert(&self, new: Slot) {
        let _guard = self.lock(new.hash);
        self.enter(self.shape(), new);
    }

    /// Makes the entry of a hash that has the location `old` have another one, of the same key. `false`, with nothing done,
    /// when there is none.
    #[inline]
    pub(crate) fn replace(&self, hash: u64, old: u64, new: u64) -> bool {
        let _guard = self.lock(hash);
        let number = self.number_of(Slot { hash, location: old });
        if let Some(number) = number {
            self.store(number, Slot { hash, location: new });
        }
        number.is_some()
    }

    /// Removes the entry of a hash that has this location. `false`, with nothing done, when there is none.
    #[inline]
    pub(crate) fn remove(&self, hash: u64, location: u64) -> bool {
        let _guard = self.lock(hash);
        let Some(mut number) = self.number_of(Slot { hash, location }) else { return false };
        let shape = self.shape();
        loop {
            let next = shape.next(number);
            let behind = self.load(next);
            if behind.location == 0 || shape.distance(behind.hash, next) == 0 {
                break;
            }
            self.store(number, behind);
            number = next;
        }
        self.store(number, Slot::EMPTY);
        self.release(hash);
        true
    }

    /// Puts an entry where it belongs, and each one that it takes the slot of behind. There is room in the part, which is
    /// locked.
    fn enter(&self, shape: Shape, new: Slot) {
        let (mut carried, mut distance) = (new, 0);
        let mut number = shape.home(new.hash);
        loop {
            let there = self.load(number);
            if there.location == 0 {
                return self.store(number, carried);
            }
            let its_distance = shape.distance(there.hash, number);
            if its_distance < distance {
                self.store(number, carried);
                (carried, distance) = (there, its_distance);
            }
            (number, distance) = (shape.next(number), distance + 1);
        }
    }

    /// The slot with this entry, in a part that is locked.
    fn number_of(&self, wanted: Slot) -> Option<u64> {
        let shape = self.shape();
        for (number, distance) in shape.chain(wanted.hash) {
            let slot = self.load(number);
            if slot == wanted {
                return Some(number);
            }
            if slot.location == 0 || shape.distance(slot.hash, number) < distance {
                break;
            }
        }
        None
    }

    fn lock(&self, hash: u64) -> VersionGuard<'_> {
        self.part(hash).lock.lock(&*self.environment)
    }

    #[inline(always)]
    fn part(&self, hash: u64) -> &Part {
        &self.parts[(hash >> (u64::BITS - self.part_bits)) as usize]
    }

    #[inline(always)]
    fn shape(&self) -> Shape {
        // Acquire: the memory of so many slots is there.
        let slot_bits = self.slot_bits.load(Ordering::Acquire);
        Shape { part_bits: self.part_bits, slot_bits }
    }

    #[inline(always)]
    fn slot(&self, number: u64) -> &SharedSlot {
        let line = self.lines.get(number / PER_LINE).expect("memory that was ensured");
        &line.0[(number % PER_LINE) as usize]
    }

    #[inline(always)]
    fn load(&self, number: u64) -> Slot {
        let slot = self.slot(number);
        let location = slot.location.load(Ordering::Relaxed);
        Slot { hash: slot.hash.load(Ordering::Relaxed), location }
    }

    #[inline(always)]
    fn store(&self, number: u64, new: Slot) {
        let slot = self.slot(number);
        slot.hash.store(new.hash, Ordering::Relaxed);
        slot.location.store(new.location, Ordering::Relaxed);
    }
}
