//! [`Extent`]: a range of the pool that has been checked, and the lines it lies in.

/// Bytes in a cache line: the unit of flushing on every supported machine.
pub const CACHE_LINE: u64 = 64;

/// A range of the pool's address space that was checked to be mapped.
///
/// Made only by [`Pmem::check`](crate::Pmem::check). Nothing is unmapped while a pool is open, so an
/// extent stays valid as long as its `Pmem` lives. An offset read from media enters the store as an
/// extent or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extent {
    offset: u64,
    length: u64,
}

impl Extent {
    /// For backends of the seam only: the caller has checked the range against what is mapped.
    #[must_use]
    #[inline(always)]
    pub fn new_checked(offset: u64, length: u64) -> Self {
        Self { offset, length }
    }

    /// First byte, as an offset into the pool.
    #[inline(always)]
    pub fn offset(self) -> u64 {
        self.offset
    }

    /// Length in bytes.
    #[inline(always)]
    pub fn length(self) -> u64 {
        self.length
    }

    /// One past the last byte.
    #[inline(always)]
    pub fn end(self) -> u64 {
        self.offset + self.length
    }

    /// The part of this extent that starts `at` bytes in and is `length` bytes long, if it lies
    /// inside.
    #[inline(always)]
    pub fn part(self, at: u64, length: u64) -> Option<Self> {
        let end = at.checked_add(length)?;
        (end <= self.length).then_some(Self { offset: self.offset + at, length })
    }

    /// The cache lines this extent touches: first line number and how many, computed from the true
    /// start and end.
    #[inline(always)]
    pub fn lines(self) -> std::ops::Range<u64> {
        if self.length == 0 {
            return 0..0;
        }
        let first = self.offset / CACHE_LINE;
        let last = (self.end() - 1) / CACHE_LINE;
        first..last + 1
    }
}
