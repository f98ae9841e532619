//! [`HashGeometry`]: how large a segment is, and which buckets of it a hash may live in.

/// Slots in a bucket.
pub(super) const BUCKET_SLOTS: u32 = 4;
/// Words in a bucket: a cache line.
pub(super) const BUCKET_WORDS: u32 = 2 * BUCKET_SLOTS;
/// log2 of the most buckets a segment can have.
const BUCKET_BITS_MAX: u32 = 10;

/// The shape of a table's segments.
///
/// A segment is an array of buckets, a bucket is one cache line of four slots. Which segment a hash
/// belongs to is said by its low bits, which two buckets by its high bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HashGeometry {
    bucket_bits: u32,
    bucket_mask: u32,
}

impl HashGeometry {
    /// Fewest slots a segment can have.
    pub(crate) const SLOTS_MIN: u32 = 2 * BUCKET_SLOTS;
    /// Most slots a segment can have.
    pub(crate) const SLOTS_MAX: u32 = BUCKET_SLOTS << BUCKET_BITS_MAX;

    /// Segments of `slots_per_segment` slots of 16 bytes: a power of two from
    /// [`SLOTS_MIN`](Self::SLOTS_MIN) to [`SLOTS_MAX`](Self::SLOTS_MAX). `None` for anything else.
    ///
    /// Larger segments split later relative to their size and keep the directory small, but stop
    /// their writers longer when they do.
    pub(crate) const fn new(slots_per_segment: u32) -> Option<Self> {
        if !slots_per_segment.is_power_of_two()
            || slots_per_segment < Self::SLOTS_MIN
            || slots_per_segment > Self::SLOTS_MAX
        {
            return None;
        }
        let buckets = slots_per_segment / BUCKET_SLOTS;
        Some(Self { bucket_bits: buckets.ilog2(), bucket_mask: buckets - 1 })
    }

    /// Slots in a segment.
    #[inline(always)]
    pub(crate) const fn slots_per_segment(self) -> u32 {
        self.buckets() * BUCKET_SLOTS
    }

    /// Buckets in a segment.
    #[inline(always)]
    pub(super) const fn buckets(self) -> u32 {
        self.bucket_mask + 1
    }

    /// log2 of the buckets in a segment.
    #[inline(always)]
    pub(super) const fn bucket_bits(self) -> u32 {
        self.bucket_bits
    }

    /// The two buckets `hash` may live in, its home first. They are never the same.
    #[inline(always)]
    pub(super) const fn candidates(self, hash: u64) -> [u32; 2] {
        let home = self.home(hash);
        [home, self.other(hash, home)]
    }

    /// The first of the two buckets `hash` may live in: from its topmost bits.
    #[inline(always)]
    pub(super) const fn home(self, hash: u64) -> u32 {
        (hash >> (u64::BITS - BUCKET_BITS_MAX)) as u32 & self.bucket_mask
    }

    /// The bucket `hash` may live in beside `bucket`. Its own inverse: an entry can be displaced
    /// knowing no more than its hash and where it is. The distance is made of the bits below the
    /// topmost ones, and odd, hence never zero.
    #[inline(always)]
    pub(super) const fn other(self, hash: u64, bucket: u32) -> u32 {
        let below = (hash >> (u64::BITS - 2 * BUCKET_BITS_MAX)) as u32;
        bucket ^ ((below | 1) & self.bucket_mask)
    }
}

impl Default for HashGeometry {
    /// 1024 slots: 16 KiB.
    fn default() -> Self {
        const { Self::new(1024).expect("a power of two within the limits") }
    }
}
