//! [`Scan`]: the records of a range of keys, in the order of the keys.

use std::collections::VecDeque;
use std::fmt;
use std::iter::Take;
use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use chimera_pmem::{Hardware, Pmem};

use super::metered::Metered;
use super::{Db, Session};
use crate::ordered::{Cursor, Direction};
use crate::types::error::{Error, Result};
use crate::types::losses::Losses;

/// Records that are read at first, and at a time; and bytes, unless a single record has more.
const FIRST_RECORDS: usize = 16;
const BATCH_RECORDS: usize = 128;
const BATCH_BYTES: usize = 256 << 10;

/// A range of keys: `..`, `"a".."b"`, `from..`, `..=to`, a pair of [`Bound`]s; of anything that is bytes.
pub trait KeyRange {
    /// The lower and the upper bound.
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>);
}

impl KeyRange for RangeFull {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

impl<K: AsRef<[u8]>> KeyRange for Range<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Included(self.start.as_ref()), Bound::Excluded(self.end.as_ref()))
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeFrom<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Included(self.start.as_ref()), Bound::Unbounded)
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeTo<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Excluded(self.end.as_ref()))
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeInclusive<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Included(self.start().as_ref()), Bound::Included(self.end().as_ref()))
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeToInclusive<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Included(self.end.as_ref()))
    }
}

impl<K: AsRef<[u8]>> KeyRange for (Bound<K>, Bound<K>) {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (self.0.as_ref().map(AsRef::as_ref), self.1.as_ref().map(AsRef::as_ref))
    }
}

impl<R: KeyRange + ?Sized> KeyRange for &R {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (**self).bounds()
    }
}

/// The bounds of the keys that begin with `prefix`.
pub fn prefix_range(prefix: &[u8]) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    // The next prefix of this length or less: behind the last byte that can be one larger.
    let behind = prefix.iter().rposition(|&byte| byte < u8::MAX).map(|last| {
        let mut behind = prefix[..=last].to_vec();
        behind[last] += 1;
        behind
    });
    (Bound::Included(prefix.to_vec()), behind.map_or(Bound::Unbounded, Bound::Excluded))
}

/// A key and its value.
pub type Record = (Vec<u8>, Vec<u8>);

/// The records of a range of keys, in the order of the keys: see [`Db::scan`]. Read from either end.
///
/// It is a handle of the store, which is not closed before it is dropped.
#[must_use]
pub struct Scan<P: Pmem = Hardware> {
    db: Db<P>,
    cursor: Cursor,
    /// What was read and not handed out, of the lower end and of the upper end.
    front: VecDeque<Record>,
    back: VecDeque<Record>,
    /// What went wrong, to be told behind what was read before.
    failed: Option<Error>,
    /// Nothing more is read.
    is_over: bool,
    /// Records to read next.
    batch: usize,
}

impl<P: Pmem> Scan<P> {
    /// Of which so many records are read at first, if there are bytes for them.
    pub(super) fn new(db: &Db<P>, range: &impl KeyRange, first: usize) -> Result<Self> {
        let (from, to) = range.bounds();
        let mut scan = Self {
            db: db.clone(),
            cursor: Cursor::new(from, to),
            front: VecDeque::new(),
            back: VecDeque::new(),
            failed: None,
            is_over: false,
            batch: first.clamp(1, BATCH_RECORDS),
        };
        scan.with_client(|client, _| client.begin_scan())?;
        Ok(scan)
    }

    fn with_client<T>(
        &mut self,
        work: impl FnOnce(&mut Metered<P>, &mut Cursor) -> Result<T>,
    ) -> Result<T> {
        let cursor = &mut self.cursor;
        self.db.with_client(|client| work(client, cursor))
    }

    /// Reads the next records from this end of the range.
    fn fill(&mut self, direction: Direction) {
        let most = self.batch;
        self.batch = (2 * self.batch).min(BATCH_RECORDS);
        let (mut records, mut bytes) = (VecDeque::new(), 0);
        let take = |key: &[u8], value: &[u8]| {
            records.push_back((key.to_vec(), value.to_vec()));
            bytes += key.len() + value.len();
            bytes < BATCH_BYTES
        };
        match self.with_client(|client, cursor| client.scan(cursor, direction, most, take)) {
            Ok(is_more) => self.is_over = !is_more,
            Err(error) => (self.failed, self.is_over) = (Some(error), true),
        }
        match direction {
            Direction::Ascending => self.front = records,
            Direction::Descending => self.back = records,
        }
    }

    fn next_from(&mut self, direction: Direction) -> Option<Result<Record>> {
        let near = match direction {
            Direction::Ascending => &self.front,
            Direction::Descending => &self.back,
        };
        if near.is_empty() && !self.is_over {
            self.fill(direction);
        }
        let (near, far) = match direction {
            Direction::Ascending => (self.front.pop_front(), &mut self.back),
            Direction::Descending => (self.back.pop_front(), &mut self.front),
        };
        if let Some(record) = near {
            return Some(Ok(record));
        }
        // After an error there is nothing more.
        if let Some(error) = self.failed.take() {
            far.clear();
            return Some(Err(error));
        }
        // Where the range is used up, what the other end has read is left.
        far.pop_back().map(Ok)
    }
}

impl<P: Pmem> Scan<P> {
    /// What damage has kept out so far, of this range and of others: see [`Db::losses`].
    pub fn losses(&self) -> Losses {
        self.db.losses()
    }
}

impl<P: Pmem> Iterator for Scan<P> {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_from(Direction::Ascending)
    }
}

impl<P: Pmem> DoubleEndedIterator for Scan<P> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.next_from(Direction::Descending)
    }
}

impl<P: Pmem> std::iter::FusedIterator for Scan<P> {}

impl<P: Pmem> fmt::Debug for Scan<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scan").field("cursor", &self.cursor).finish_non_exhaustive()
    }
}

impl<P: Pmem> Db<P> {
    /// Applies changes that wait for the order of keys, some hundred from each of those queues that fall to thread `number`
    /// of `count`; how many. For programs that divide threads of their own between serving and this, as
    /// [`ThreadSplit`](crate::baselines::ThreadSplit) says, in stores whose [`OrderOptions::threads`](crate::OrderOptions::threads) are
    /// 0. 0 when nothing waits, or the store keeps no order.
    ///
    /// # Cost
    /// A change of the tree for each.
    #[cfg(feature = "baselines")]
    pub fn apply_changes(&self, number: usize, count: usize) -> u64 {
        if self.refuse_forked().is_err() {
            return 0;
        }
        let order = self.inner.engine.core().changes.order();
        order.map_or(0, |order| order.apply_share(number, count))
    }

    /// The records of a range of keys, in the order of the keys, which are compared as bytes; `rev()` reads them from
    /// the end. For stores that were opened with [`Options::ordered`](crate::Options::ordered).
    ///
    /// What was acknowledged before the call is there. A key that is there from beginning to end comes exactly once,
    /// with a value that it has meanwhile; a key that comes or goes meanwhile may come or not. It is no snapshot. Others
    /// may write, and wait for nothing. After an error the iterator ends. A range whose start lies behind its end has no
    /// records.
    ///
    /// ```
    /// # use chimera::{Db, Options};
    /// # fn main() -> Result<(), chimera::Error> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let options = Options::new().segment_bytes(1 << 20);
    /// let db = Db::open(directory.path().join("data"), &options.ordered(true))?;
    /// for name in ["apples", "cherries", "pears", "plums"] {
    ///     db.put(name.as_bytes(), b"fresh")?;
    /// }
    /// let mut names = Vec::new();
    /// for record in db.scan("b".."pf")? {
    ///     names.push(record?.0);
    /// }
    /// assert_eq!(names, ["cherries", "pears"].map(Vec::from));
    /// let last = db.scan(..)?.next_back().transpose()?.map(|record| record.0);
    /// assert_eq!(last.as_deref(), Some(&b"plums"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`NotOrdered`](crate::Error::NotOrdered) when the store was opened without order;
    /// [`NotYetOrdered`](crate::Error::NotYetOrdered) while the order of a store that was opened is being made, if
    /// scans are not to [wait](crate::OrderOptions::wait); [`OrderIncomplete`](crate::Error::OrderIncomplete) when there
    /// was no memory for all keys; [`Corrupted`](crate::Error::Corrupted) when one could not be read;
    /// [`OrderFailed`](crate::Error::OrderFailed) when a thread that made the order has panicked. Items are
    /// [`Corrupted`](crate::Error::Corrupted) when a record does not match its checksums; a store that was opened with
    /// salvage leaves it out, and [`Scan::losses`] says so.
    ///
    /// # Cost
    /// Soon after the store was opened, what is left of making the order. Then the changes of the key set that wait for
    /// the tree, at most what the queues hold. Then a descent of the tree
    /// for each leaf, and a [`get`](Self::get) for each record, of which 16 overlap. Memory for 128 records or 256 KiB of
    /// them, whichever is less, a record, and their keys. Stopping early is free.
    pub fn scan(&self, range: impl KeyRange) -> Result<Scan<P>> {
        Scan::new(self, &range, FIRST_RECORDS)
    }

    /// The records of the first `count` keys from `start` on. As [`scan`](Self::scan), without reading more of them.
    ///
    /// # Errors
    /// As [`scan`](Self::scan).
    pub fn scan_n(&self, start: impl AsRef<[u8]>, count: usize) -> Result<Take<Scan<P>>> {
        Ok(Scan::new(self, &(start..), count)?.take(count))
    }

    /// The records whose keys begin with `prefix`. As [`scan`](Self::scan).
    ///
    /// # Errors
    /// As [`scan`](Self::scan).
    pub fn scan_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Scan<P>> {
        Scan::new(self, &prefix_range(prefix.as_ref()), FIRST_RECORDS)
    }

    /// The record with the lowest key.
    ///
    /// # Errors
    /// As [`scan`](Self::scan).
    pub fn first(&self) -> Result<Option<Record>> {
        Scan::new(self, &.., 1)?.next().transpose()
    }

    /// The record with the highest key.
    ///
    /// # Errors
    /// As [`scan`](Self::scan).
    pub fn last(&self) -> Result<Option<Record>> {
        Scan::new(self, &.., 1)?.next_back().transpose()
    }

    /// Removes the keys of a range, one after the other, in the order of the keys; how many. A key that comes meanwhile may stay.
    /// It is not all or nothing: others see some of the keys gone and others not.
    ///
    /// # Errors
    /// As [`scan`](Self::scan) and [`delete`](Self::delete). Keys before the one that fails are gone.
    ///
    /// # Durability
    /// As [`delete`](Self::delete), for each key. If the machine stops before, some of the keys are gone.
    ///
    /// # Cost
    /// As a [`scan`](Self::scan), and a [`delete`](Self::delete) for each key; on plain files with immediate durability a sync for each.
    pub fn delete_range(&self, range: impl KeyRange) -> Result<u64> {
        let mut deleted = 0;
        let mut keys: Vec<Vec<u8>> = Vec::new();
        self.with_client(|client| {
            client.begin_scan()?;
            let (from, to) = range.bounds();
            let mut cursor = Cursor::new(from, to);
            loop {
                let take = |key: &[u8], _: &[u8]| {
                    keys.push(key.to_vec());
                    true
                };
                let is_more =
                    client.scan(&mut cursor, Direction::Ascending, BATCH_RECORDS, take)?;
                for key in keys.drain(..) {
                    deleted += u64::from(client.delete(&key)?);
                }
                if !is_more {
                    return Ok(deleted);
                }
            }
        })
    }
}

impl<P: Pmem> Session<P> {
    /// The records of a range of keys, in the order of the keys. See [`Db::scan`]. The session can be used meanwhile. Counted
    /// under a session that the store keeps for such calls.
    ///
    /// # Errors
    /// As [`Db::scan`].
    pub fn scan(&self, range: impl KeyRange) -> Result<Scan<P>> {
        Scan::new(self.db(), &range, FIRST_RECORDS)
    }

    /// The records of the first `count` keys from `start` on. See [`Db::scan_n`].
    ///
    /// # Errors
    /// As [`Db::scan`].
    pub fn scan_n(&self, start: impl AsRef<[u8]>, count: usize) -> Result<Take<Scan<P>>> {
        Ok(Scan::new(self.db(), &(start..), count)?.take(count))
    }

    /// The records whose keys begin with `prefix`. See [`Db::scan_prefix`].
    ///
    /// # Errors
    /// As [`Db::scan`].
    pub fn scan_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Scan<P>> {
        Scan::new(self.db(), &prefix_range(prefix.as_ref()), FIRST_RECORDS)
    }

    /// The record with the lowest key. See [`Db::first`].
    ///
    /// # Errors
    /// As [`Db::scan`].
    pub fn first(&self) -> Result<Option<Record>> {
        self.db().first()
    }

    /// The record with the highest key. See [`Db::last`].
    ///
    /// # Errors
    /// As [`Db::scan`].
    pub fn last(&self) -> Result<Option<Record>> {
        self.db().last()
    }

    /// Removes the keys of a range. See [`Db::delete_range`].
    ///
    /// # Errors
    /// As [`Db::delete_range`].
    pub fn delete_range(&self, range: impl KeyRange) -> Result<u64> {
        self.db().delete_range(range)
    }

    /// Hands the records of the first `count` keys of a range to `take`, in the order of the keys, until it says
    /// `false`; how many it was handed. As [`scan`](Self::scan), without copies.
    ///
    /// # Errors
    /// As [`Db::scan`]. Records before the one that fails have been handed out.
    ///
    /// # Cost
    /// As [`Db::scan`], with some allocations for the keys of a page and none for records.
    pub fn scan_with(
        &mut self,
        range: impl KeyRange,
        count: usize,
        mut take: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<usize> {
        let client = self.metered();
        client.begin_scan()?;
        let (from, to) = range.bounds();
        let mut cursor = Cursor::new(from, to);
        let (mut taken, mut goes_on) = (0, true);
        while goes_on && taken < count {
            let most = (count - taken).min(BATCH_RECORDS);
            let counting = |key: &[u8], value: &[u8]| {
                taken += 1;
                goes_on = take(key, value);
                goes_on
            };
            if !client.scan(&mut cursor, Direction::Ascending, most, counting)? {
                break;
            }
        }
        Ok(taken)
    }
}
