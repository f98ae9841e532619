//! [`Pmem`]: the only way any code touches persistent memory.

use std::io;
use std::sync::Arc;

use crate::environment::File;
use crate::journal::{Fenced, Journal, Lines};
use crate::sum::{part_sum, sum};
use crate::{Extent, Medium, Site};

/// The class an operation's counters are booked under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[repr(u8)]
pub enum Operation {
    /// Everything outside an operation: opening, closing, background work.
    Other,
    /// A put of a key that was not there.
    Insert,
    /// A put of a key that was there.
    Overwrite,
    /// A lookup.
    Get,
    /// A change of at most 8 bytes in place.
    UpdateInPlace,
    /// A read-modify-write that writes the record anew.
    Update,
    /// A delete.
    Delete,
    /// Handing an insert block to a session; nested in a put, booked apart from it.
    BlockHandOut,
    /// Recovery.
    Recovery,
    /// Moving records out of blocks, so that the blocks become free.
    Reclaim,
    /// The record of a batch. Its writes are booked as what they are.
    Batch,
}

impl Operation {
    /// Every class, in order of its number.
    pub const ALL: [Self; 11] = [
        Self::Other,
        Self::Insert,
        Self::Overwrite,
        Self::Get,
        Self::UpdateInPlace,
        Self::Update,
        Self::Delete,
        Self::BlockHandOut,
        Self::Recovery,
        Self::Reclaim,
        Self::Batch,
    ];
}

/// What was done to make stores durable, since the backend was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PersistenceCounts {
    /// Cache lines flushed, each time.
    pub lines_flushed: u64,
    /// Fences.
    pub fences: u64,
}

/// Persistent memory as a flat space of bytes starting at offset 0.
///
/// # Contract
/// 1. Offsets, never pointers, go in; values, never references, come out.
/// 2. A word is 8 bytes at an offset that is a multiple of 8. All access is by words: ranges start at
///    a multiple of 8, and a range whose length is not a multiple of 8 is written with zeros up to
///    the next one.
/// 3. Only a word is failure-atomic. A word store reaches media when its line is flushed by
///    `flush` and the same thread then calls `fence`, or at any earlier moment, in any order between
///    lines; within one line in store order for `store_u64`/`cas_u64`. The words of one `copy` or
///    `zero` have no order among them, but go before a word that is stored to their line later;
///    those of `copy_nt` go at any time up to the fence.
/// 4. `read` and `compare` may race with writers: they return some mixture of old and new words.
///    Validate with a version before interpreting, or hold the lock that keeps writers away.
/// 5. Passing an offset outside of what is mapped is a programming error and panics. Offsets derived
///    from media go through [`check`](Self::check) first.
/// 6. Regions are mapped consecutively and never move or go away while the value lives.
pub trait Pmem: Send + Sync + Sized + 'static {
    // ---- space -------------------------------------------------------------------------------

    /// Maps `length` bytes of `file` from `file_offset` at pool offset `at`, which must be where the
    /// mapped space ends now.
    ///
    /// # Errors
    /// When the file cannot be mapped, or the reserved address space is used up.
    fn map(&self, at: u64, file: &Arc<dyn File>, file_offset: u64, length: u64) -> io::Result<()>;

    /// Bytes mapped so far, from offset 0.
    fn mapped(&self) -> u64;

    /// Touches a mapped range, for writing where that is allowed, so that later accesses do not fault.
    ///
    /// # Errors
    /// When memory or space runs out.
    fn populate(&self, at: u64, length: u64) -> io::Result<()>;

    /// What is mapped of plain files is larger than memory: from now on a page that is missing is read without those around
    /// it, and a long range that is read, stored to or [prefetched](Self::prefetch) is asked for as a whole. Nothing, where no
    /// plain file is mapped.
    fn expect_misses(&self) {}

    /// Nobody reads what lies in a range of a plain file before something is stored there: a page that is missing is read without
    /// those around it. So it is for the pages at both ends, too. Nothing, where no plain file is mapped.
    fn expect_stores(&self, range: Extent) {
        let _ = range;
    }

    /// Something was stored in a range of which that was [said](Self::expect_stores): it is read as any other.
    fn expect_loads(&self, range: Extent) {
        let _ = range;
    }

    /// Checks that `length` bytes at `offset` are mapped and that `offset` is a multiple of 8.
    #[inline(always)]
    fn check(&self, offset: u64, length: u64) -> Option<Extent> {
        let end = offset.checked_add(length)?;
        (end <= self.mapped() && offset.is_multiple_of(8))
            .then(|| Extent::new_checked(offset, length))
    }

    /// Keeps everything in private memory from now on and appends what is flushed and fenced to
    /// `journal`. Called before anything is mapped.
    ///
    /// # Errors
    /// `Unsupported` where the backend cannot.
    fn use_journal(&self, journal: Arc<Journal>) -> io::Result<()> {
        drop(journal);
        Err(io::Error::new(io::ErrorKind::Unsupported, "this backend keeps no journal"))
    }

    /// The journal in use.
    #[inline(always)]
    fn journal(&self) -> Option<&Arc<Journal>> {
        None
    }

    /// Whether what is flushed passes a journal: then each line is written twice, and a fence is no more than an entry.
    #[inline(always)]
    fn is_journaled(&self) -> bool {
        self.journal().is_some()
    }

    /// Shows `lines` over what the files hold, which stay as they are: for reading a store whose
    /// journal is not empty. Called before anything is mapped.
    ///
    /// # Errors
    /// `Unsupported` where the backend cannot.
    fn overlay(&self, lines: Lines) -> io::Result<()> {
        drop(lines);
        Err(io::Error::new(io::ErrorKind::Unsupported, "this backend cannot read a journal"))
    }

    /// How stores become durable here, decided from the media mapped so far.
    fn medium(&self) -> Medium;

    // ---- words -------------------------------------------------------------------------------

    /// Loads a word (Acquire).
    fn load_u64(&self, at: u64) -> u64;

    /// Stores a word (Release).
    fn store_u64(&self, at: u64, value: u64, site: Site);

    /// Compares and swaps a word (AcqRel): `Ok(current)` when it was `current`, else `Err` with what
    /// it was. Not a fence: the line still needs `flush` and `fence`.
    ///
    /// # Errors
    /// The value found when it was not `current`.
    fn cas_u64(&self, at: u64, current: u64, new: u64, site: Site) -> Result<u64, u64>;

    /// Compares and swaps 16 bytes at a multiple of 16, low word first. Atomic for readers, **not**
    /// for power loss: either word may survive alone.
    ///
    /// # Errors
    /// The value found when it was not `current`.
    fn cas_u128(&self, at: u64, current: u128, new: u128, site: Site) -> Result<u128, u128>;

    // ---- ranges ------------------------------------------------------------------------------

    /// Reads `into.len()` bytes from the start of `from` by relaxed words. `into` is at most as long
    /// as `from`.
    fn read(&self, from: Extent, into: &mut [u8]);

    /// As [`read`](Self::read); returns the [sum](crate::sum()) of what was read, as that of a part of a range which begins
    /// with its word `first_word`: 0 for a whole range. The sums of all parts add up to that of the range, where all but
    /// the last have whole words.
    #[inline]
    fn read_sum(&self, from: Extent, first_word: u64, into: &mut [u8]) -> u64 {
        self.read(from, into);
        part_sum(into, first_word)
    }

    /// Whether the bytes at the start of `with` equal `bytes`, by relaxed words.
    fn compare(&self, with: Extent, bytes: &[u8]) -> bool;

    /// Starts loading the lines of `range` into the cache for reading.
    fn prefetch(&self, range: Extent);

    /// Starts loading the lines of `range` into the cache for writing.
    fn prefetch_write(&self, range: Extent);

    /// Copies `bytes` to the start of `to` by relaxed words, the tail of the last word zeroed. Where a place was
    /// [taken](Self::take_new) what has 16 KiB or more may be written to its file instead: whoever reads it meanwhile has to find
    /// out.
    fn copy(&self, to: Extent, bytes: &[u8], site: Site);

    /// As [`copy`](Self::copy); returns the [sum](crate::sum()) of what was copied.
    #[inline]
    fn copy_sum(&self, to: Extent, bytes: &[u8], site: Site) -> u64 {
        self.copy(to, bytes, site);
        sum(bytes)
    }

    /// Copies whole lines past the cache; durable after the same thread's next `fence`. No thread,
    /// this one included, touches the lines before that fence.
    fn copy_nt(&self, to: Extent, bytes: &[u8], site: Site);

    /// Stores zeros over a range whose length is a multiple of 8.
    fn zero(&self, range: Extent, site: Site);

    // ---- persistence -------------------------------------------------------------------------

    /// Starts writing back every line that `range` touches; done at this thread's next `fence`.
    fn flush(&self, range: Extent, site: Site);

    /// As [`flush`](Self::flush), of bytes that are new in their place: nothing there means anything, neither now nor in a
    /// state that a crash can bring back, before something else that is flushed as usual leads to it. That was so when
    /// `emptied` was [fenced](Self::fenced). Then no thread had flushed any of the lines and not fenced. Since then nobody but
    /// the caller has stored to them, for this. On an ordinary file with a journal the bytes may go to their place at once, and
    /// survive a crash although what was fenced before does not.
    #[inline(always)]
    fn flush_new(&self, range: Extent, emptied: Fenced, site: Site) {
        let _ = emptied;
        self.flush(range, site);
    }

    /// As [`flush_new`](Self::flush_new), where other threads may flush lines of the place at any time: those that have just
    /// seen what was there before `emptied`. Pages with such lines pass the journal, and so do pages of which the caller has
    /// flushed lines since, unless these are [beside](Self::flush_beside_new) new ones.
    #[inline(always)]
    fn flush_new_shared(&self, range: Extent, emptied: Fenced, site: Site) {
        self.flush_new(range, emptied, site);
    }

    /// As [`flush`](Self::flush), of lines beside such that are [new in a shared place](Self::flush_new_shared): none of them is
    /// flushed as new before the place is emptied again. So they keep no others of their pages from their place.
    #[inline(always)]
    fn flush_beside_new(&self, range: Extent, site: Site) {
        self.flush(range, site);
    }

    /// Takes a range, and what may be taken next behind it, in which nothing means anything, neither now nor in a state that a
    /// crash can bring back, before something else that is flushed later leads to it. That was so when `emptied` was
    /// [fenced](Self::fenced). On an ordinary file with a journal what is stored there until the next sync may go to the file
    /// at once, and pass no journal. Nothing elsewhere.
    ///
    /// # Durability
    /// After the end of the process as elsewhere. After a power loss nothing that was fenced since the last sync is there, and the
    /// place has anything that was ever stored there: whoever takes it then must not take that for its own.
    #[inline(always)]
    fn take_new(&self, range: Extent, ahead: Extent, emptied: Fenced) {
        let _ = (range, ahead, emptied);
    }

    /// How much all threads have fenced so far, where a journal counts it. What is fenced later is not before it.
    #[inline(always)]
    fn fenced(&self) -> Fenced {
        Fenced::default()
    }

    /// Waits until everything this thread flushed or copied past the cache is durable.
    fn fence(&self, site: Site);

    /// Stores a word that makes `depends_on` reachable after a crash (Release). Everything in
    /// `depends_on` must be durable already or, in the word's own line, stored; the word itself still
    /// needs `flush` and `fence`.
    #[inline(always)]
    fn publish(&self, at: u64, value: u64, depends_on: &[Extent], site: Site) {
        let _ = depends_on;
        self.store_u64(at, value, site);
    }

    /// As [`publish`](Self::publish), by compare and swap.
    ///
    /// # Errors
    /// The value found when it was not `current`.
    #[inline(always)]
    fn publish_cas(
        &self,
        at: u64,
        current: u64,
        new: u64,
        depends_on: &[Extent],
        site: Site,
    ) -> Result<u64, u64> {
        let _ = depends_on;
        self.cas_u64(at, current, new, site)
    }

    /// Gives the storage behind whole pages of `range` back to the file system; they read as zeros
    /// afterwards. A no-op where the medium cannot: then `false`. No thread uses the range meanwhile.
    ///
    /// # Errors
    /// When the file system fails.
    ///
    /// # Durability
    /// When [`sync_punched`](Self::sync_punched) returns. A power loss before brings back what was there, in any part: so nobody
    /// uses the range before, not even by finding zeros in it.
    fn punch(&self, range: Extent, site: Site) -> io::Result<bool>;

    /// Makes durable that ranges were [punched](Self::punch) before the call.
    ///
    /// # Errors
    /// When a file cannot be synced; with a journal nothing more is written then.
    ///
    /// # Cost
    /// A sync of each file that was punched since the last call, where that survives a power loss.
    fn sync_punched(&self, site: Site) -> io::Result<()>;

    /// Makes everything flushed and fenced so far survive a power loss as far as the medium can; on
    /// an ordinary file without a journal, everything stored.
    ///
    /// # Errors
    /// When writing back fails; the store must not acknowledge anything afterwards.
    fn sync(&self, site: Site) -> io::Result<()>;

    // ---- for tools ---------------------------------------------------------------------------

    /// Tells tools that this thread begins an operation of `session`. Nests.
    #[inline(always)]
    fn operation_begin(&self, operation: Operation, session: u32) {
        let _ = (operation, session);
    }

    /// Tells tools that the innermost operation turned out to be of another class.
    #[inline(always)]
    fn operation_is(&self, operation: Operation) {
        let _ = operation;
    }

    /// Tells tools that nothing in `range` is reachable any more, now and after a crash, whatever was
    /// published there: something durable before it says so.
    #[inline(always)]
    fn withdrawn(&self, range: Extent) {
        let _ = range;
    }

    /// Tells tools that what the innermost operation of this thread has read so far is to be
    /// forgotten: it reads again.
    #[inline(always)]
    fn operation_rereads(&self) {}

    /// Tells tools that the innermost operation of this thread is going to be made, whatever crash comes now: a log that
    /// recovery reads says so, durably.
    #[inline(always)]
    fn operation_decided(&self) {}

    /// What was flushed and fenced so far, where that is counted.
    fn persistence_counts(&self) -> Option<PersistenceCounts> {
        None
    }

    /// Whether a tool wants this check, comparison or step of recovery to be left out, to see whether
    /// any test notices. Never, but in such tools.
    #[inline(always)]
    fn skips(&self, step: Site) -> bool {
        let _ = step;
        false
    }

    /// Tells tools that the innermost operation of this thread is acknowledged.
    #[inline(always)]
    fn operation_acknowledge(&self) {}
}
