//! [`PersistentTable`]: a table in persistent memory, which never changes.

use std::ops::RangeInclusive;

use chimera_pmem::{CACHE_LINE, Extent, Pmem};

use super::header::{
    CHUNK_BYTES, Checksum, HEADER_BYTES, Header, SLOT_BYTES, TABLE_ALIGN, is_slot_count,
};
use super::slot::{Found, Slot, decode_unchecked};
use super::{begins_chain, chain, distance, home, is_behind, steps};
use crate::index::Probe;
use crate::types::error::{Error, Result};

const LINE_BYTES: usize = CACHE_LINE as usize;
const SLOTS_IN_LINE: usize = LINE_BYTES / SLOT_BYTES as usize;

/// A table in persistent memory. Any number of threads may use it at any time until its place is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PersistentTable {
    /// Where its slots lie.
    place: Extent,
}

impl PersistentTable {
    /// Bytes of a table of so many slots.
    pub(crate) fn bytes_of(slots: u32) -> u64 {
        HEADER_BYTES + u64::from(slots) * SLOT_BYTES
    }

    /// The table that `place` begins with, which its owner [wrote](super::Image::write) with the word `owner`.
    ///
    /// # Errors
    /// `Corrupted` when there is no such table. Its slots are not looked at.
    ///
    /// # Cost
    /// 1 line.
    pub(crate) fn open<P: Pmem>(pmem: &P, place: Extent, owner: u64) -> Result<Self> {
        let at = place.offset();
        if !at.is_multiple_of(TABLE_ALIGN) || place.length() < HEADER_BYTES {
            return Err(Error::corrupted("no table of the index can be", at));
        }
        let header = Header::load(pmem, at)?;
        let place = header.slots_in(place)?;
        if header.owner != owner && !pmem.skips(steps::HEADER_CHECK) {
            return Err(Error::corrupted("a table of the index is not the one that was meant", at));
        }
        Ok(Self { place })
    }

    /// A table that was opened or written before, from where it [begins](Self::at) and its slots: for a reader that keeps
    /// them in words of its own, and finds out later whether they belonged together. None where nothing of this size can
    /// lie.
    #[inline(always)]
    pub(crate) fn from_parts<P: Pmem>(pmem: &P, at: u64, slots: u32) -> Option<Self> {
        let place = pmem.check(at, Self::bytes_of(slots)).filter(|_| is_slot_count(slots))?;
        Some(Self::in_force(place))
    }

    /// The table that fills `place`, header included.
    #[inline(always)]
    pub(super) fn in_force(place: Extent) -> Self {
        let slots = place.part(HEADER_BYTES, place.length() - HEADER_BYTES);
        Self { place: slots.expect("a header is shorter") }
    }

    /// Offset of the table, that is of its header.
    pub(crate) fn at(self) -> u64 {
        self.place.offset() - HEADER_BYTES
    }

    /// Slots.
    #[inline(always)]
    pub(crate) fn slots(self) -> u32 {
        (self.place.length() / SLOT_BYTES) as u32
    }

    /// Entries, as the header says.
    ///
    /// # Errors
    /// `Corrupted` when the header is damaged.
    ///
    /// # Cost
    /// 1 line.
    pub(crate) fn entries<P: Pmem>(self, pmem: &P) -> Result<u32> {
        Ok(self.header(pmem)?.entries)
    }

    /// The checksum of all slots, as the header says: two tables with different entries differ in it.
    ///
    /// # Errors
    /// `Corrupted` when the header is damaged.
    ///
    /// # Cost
    /// 1 line.
    pub(crate) fn checksum<P: Pmem>(self, pmem: &P) -> Result<u64> {
        Ok(self.header(pmem)?.checksum.word())
    }

    /// Starts loading the slots where the entries of a hash are.
    #[inline(always)]
    pub(crate) fn prefetch<P: Pmem>(self, pmem: &P, hash: u64) {
        let at = u64::from(home(hash, self.slots())) * SLOT_BYTES;
        pmem.prefetch(self.place.part(at, SLOT_BYTES).expect("a slot of the table"));
    }

    /// Asks `probe` about the entries of a hash, one after the other, until it answers anything but `NotThis`, and gives
    /// that answer: `NotThis` if it was asked about all.
    ///
    /// # Errors
    /// `Corrupted` when a slot on the way is damaged. A reader that finds out that the table was not in force any more
    /// forgets that, as any answer.
    ///
    /// # Cost
    /// 1 line, sometimes 2, in a table that is three quarters full; the same when nothing is found.
    #[inline(always)]
    pub(crate) fn probe<P: Pmem, T>(
        self,
        pmem: &P,
        hash: u64,
        mut probe: impl FnMut(Found) -> Probe<T>,
    ) -> Result<Probe<T>> {
        let slots = self.slots();
        let mut line = [0; LINE_BYTES];
        for (step, number) in (0..).zip(chain(hash, slots)) {
            let in_line = number as usize % SLOTS_IN_LINE;
            if step == 0 || in_line == 0 {
                self.load_line(pmem, number, &mut line);
            }
            let slot = Slot::from_bytes(&line.as_chunks().0[in_line], self.offset(number));
            if slot.is_empty() {
                break;
            }
            let found = match slot.found() {
                Some(found) => found,
                None => unsound(pmem, slot, self.offset(number))?,
            };
            if slot.hash == hash {
                match probe(found) {
                    Probe::NotThis => continue,
                    answer => return Ok(answer),
                }
            }
            if distance(number, slot.hash, slots) < step {
                break;
            }
        }
        Ok(Probe::NotThis)
    }

    /// Loads the slots that share a line with this one.
    #[inline(always)]
    fn load_line<P: Pmem>(self, pmem: &P, number: u32, line: &mut [u8; LINE_BYTES]) {
        let at = u64::from(number) * SLOT_BYTES / CACHE_LINE * CACHE_LINE;
        pmem.read(self.place.part(at, CACHE_LINE).expect("a line of the table"), line);
    }

    /// Hands the entries whose hashes have their lower half in this range to `visit`; `damaged` is told of each slot on the
    /// way that is damaged, by its offset.
    ///
    /// # Cost
    /// The lines of that part of the table.
    pub(crate) fn for_range<P: Pmem>(
        self,
        pmem: &P,
        halves: RangeInclusive<u32>,
        mut visit: impl FnMut(Slot),
        mut damaged: impl FnMut(u64),
    ) {
        let slots = self.slots();
        for (step, number) in (0..).zip(chain((*halves.start()).into(), slots)) {
            let at = self.offset(number);
            let slot = Slot::from_media([pmem.load_u64(at), pmem.load_u64(at + 8)], at);
            if slot.is_empty() {
                if is_behind(&halves, slots, step) {
                    break;
                }
            } else if slot.found().is_none() && !pmem.skips(steps::SLOT_CHECK) {
                damaged(at);
            } else if halves.contains(&(slot.hash as u32)) {
                visit(slot);
            }
        }
    }

    /// Hands every entry to `visit`, in the order of the slots, those of a chain from the end of the table last: entries of
    /// one hash as a probe comes to them. Verifies the table: header, checksum, number of entries, the check of each slot.
    /// `visit` sees at most as many entries as the header says.
    ///
    /// # Errors
    /// `Corrupted` for damage, `visit` having seen some of the entries: what it has made of them is to be thrown away. An
    /// error of `visit`.
    ///
    /// # Cost
    /// All lines, loaded in order.
    pub(crate) fn for_each<P: Pmem>(
        self,
        pmem: &P,
        mut visit: impl FnMut(Slot) -> Result<()>,
    ) -> Result<()> {
        let (header, mut entries) = (self.header(pmem)?, 0);
        let (mut first, mut has_begun) = (Vec::new(), false);
        let checksum = self.scan(pmem, |number, slot| {
            has_begun |= begins_chain(number, slot, self.slots());
            if slot.is_empty() {
                return Ok(());
            }
            if slot.found().is_none() {
                unsound(pmem, slot, self.offset(number))?;
            }
            entries += 1;
            if entries > header.entries {
                return Err(self.damaged());
            }
            if has_begun {
                return visit(slot);
            }
            first.push(slot);
            Ok(())
        })?;
        first.into_iter().try_for_each(&mut visit)?;
        let is_whole = header.checksum == checksum && header.entries == entries;
        if is_whole || pmem.skips(steps::TABLE_CHECK) { Ok(()) } else { Err(self.damaged()) }
    }

    /// As [`for_each`](Self::for_each), and verifies that a probe comes to every entry.
    ///
    /// # Errors
    /// `Corrupted` for damage.
    pub(crate) fn verify<P: Pmem>(self, pmem: &P) -> Result<()> {
        self.for_each(pmem, |_| Ok(()))?;
        let (mut first, mut before, mut is_reached) = (None, None, true);
        self.scan(pmem, |number, slot| {
            let distance = (!slot.is_empty()).then(|| distance(number, slot.hash, self.slots()));
            match number {
                0 => first = distance,
                _ => is_reached &= follows(before, distance),
            }
            before = distance;
            Ok(())
        })?;
        if is_reached && follows(before, first) {
            return Ok(());
        }
        let what = "an entry of a table of the index is not where it is looked for";
        Err(Error::corrupted(what, self.at()))
    }

    /// Reads all slots in order, and gives their checksum.
    fn scan<P: Pmem>(
        self,
        pmem: &P,
        mut visit: impl FnMut(u32, Slot) -> Result<()>,
    ) -> Result<Checksum> {
        let (mut buffer, mut number) = ([0; CHUNK_BYTES], 0);
        let (mut checksum, mut at) = (Checksum::default(), 0);
        while at < self.place.length() {
            let length = (self.place.length() - at).min(CHUNK_BYTES as u64);
            let from = self.place.part(at, length).expect("a part of the table");
            let chunk = &mut buffer[..length as usize];
            checksum = checksum.with(pmem.read_sum(from, 0, chunk));
            for bytes in chunk.as_chunks().0 {
                visit(number, Slot::from_bytes(bytes, self.offset(number)))?;
                number += 1;
            }
            at += length;
        }
        Ok(checksum)
    }

    /// The header once more, which says as many slots as when the table was opened.
    fn header<P: Pmem>(self, pmem: &P) -> Result<Header> {
        let header = Header::load(pmem, self.at())?;
        if header.slots != self.slots() && !pmem.skips(steps::HEADER_CHECK) {
            return Err(Error::corrupted("a table of the index has changed its size", self.at()));
        }
        Ok(header)
    }

    #[cold]
    fn damaged(self) -> Error {
        Error::corrupted("a table of the index does not match its checksum", self.at())
    }

    #[inline(always)]
    fn offset(self, number: u32) -> u64 {
        self.place.offset() + u64::from(number) * SLOT_BYTES
    }
}

/// What a slot at `at` says that is neither empty nor sound.
#[cold]
fn unsound<P: Pmem>(pmem: &P, slot: Slot, at: u64) -> Result<Found> {
    if pmem.skips(steps::SLOT_CHECK) {
        return Ok(decode_unchecked(slot.location));
    }
    Err(Error::corrupted("a slot of a table of the index is damaged", at))
}

/// Whether an entry at this distance from its home may lie behind a slot whose entry has that distance: entries are in the order
/// of their homes, and none is empty from a home on. So a probe comes to every entry if this holds for each two slots side by
/// side.
fn follows(before: Option<u32>, distance: Option<u32>) -> bool {
    distance.is_none_or(|distance| distance <= before.map_or(0, |before| before + 1))
}
