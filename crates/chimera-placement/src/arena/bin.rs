//! [`Bin`]: chunks whose objects have one size, and which objects are free.
//!
//! What is free is known in DRAM alone, so that taking and giving back objects never touches persistent memory.

use super::CHUNK;

/// A chunk that is cut into objects.
#[derive(Debug)]
struct Slab {
    chunk: usize,
    /// A bit for each object that is live.
    live: Box<[u64]>,
    count: usize,
    /// Whether the slab is in the list of those with room.
    is_listed: bool,
}

/// Chunks of one size class.
#[derive(Debug)]
pub(super) struct Bin {
    size: usize,
    per_chunk: usize,
    slabs: Vec<Option<Slab>>,
    /// Places in `slabs` that are empty.
    vacant: Vec<usize>,
    /// Slabs with room; the last one is taken from.
    with_room: Vec<usize>,
}

/// What giving an object back led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Given {
    /// Nothing else.
    Object,
    /// The chunk has no object left, and the bin keeps it.
    EmptyChunk,
    /// The chunk has no object left and was dropped from the bin.
    Chunk,
    /// No live object begins there.
    Nothing,
}

impl Bin {
    pub(super) fn new(size: usize) -> Self {
        Self {
            size,
            per_chunk: CHUNK / size,
            slabs: Vec::new(),
            vacant: Vec::new(),
            with_room: Vec::new(),
        }
    }

    /// Takes an object; its offset in the region. `None` when no chunk has room.
    pub(super) fn take(&mut self) -> Option<usize> {
        while let Some(&index) = self.with_room.last() {
            let slab = self.slabs[index].as_mut();
            if let Some(slab) = slab {
                if let Some(object) = slab.take(self.per_chunk) {
                    return Some(slab.chunk * CHUNK + object * self.size);
                }
                slab.is_listed = false;
            }
            self.with_room.pop();
        }
        None
    }

    /// Adds an empty chunk; says its place here.
    pub(super) fn add(&mut self, chunk: usize) -> usize {
        let live = vec![0; self.per_chunk.div_ceil(64)].into_boxed_slice();
        let slab = Some(Slab { chunk, live, count: 0, is_listed: true });
        let index = self.vacant.pop().unwrap_or(self.slabs.len());
        if index == self.slabs.len() {
            self.slabs.push(slab);
        } else {
            self.slabs[index] = slab;
        }
        self.with_room.push(index);
        index
    }

    /// Gives back the object at an offset in the chunk that has place `index` here.
    pub(super) fn give(&mut self, index: usize, offset: usize) -> Given {
        let Some(Some(slab)) = self.slabs.get_mut(index) else { return Given::Nothing };
        let object = offset / self.size;
        if !offset.is_multiple_of(self.size) || object >= self.per_chunk || !slab.clear(object) {
            return Given::Nothing;
        }
        if !slab.is_listed {
            slab.is_listed = true;
            self.with_room.push(index);
        }
        if slab.count > 0 {
            return Given::Object;
        }
        // One empty chunk is kept, so that a bin at its limit does not take and give one all the time.
        if self.with_room.len() < 2 {
            return Given::EmptyChunk;
        }
        self.drop_slab(index);
        Given::Chunk
    }

    /// Gives up an empty chunk that was kept.
    pub(super) fn give_up_empty(&mut self) -> Option<usize> {
        let slab_of = |index: usize| self.slabs[index].as_ref().filter(|slab| slab.count == 0);
        let is_empty = |index: &&usize| slab_of(**index).is_some();
        let index = *self.with_room.iter().find(is_empty)?;
        let chunk = slab_of(index).map(|slab| slab.chunk);
        self.drop_slab(index);
        chunk
    }

    fn drop_slab(&mut self, index: usize) {
        self.with_room.retain(|listed| *listed != index);
        self.slabs[index] = None;
        self.vacant.push(index);
    }
}

impl Slab {
    fn take(&mut self, per_chunk: usize) -> Option<usize> {
        if self.count == per_chunk {
            return None;
        }
        let word = self.live.iter().position(|word| *word != u64::MAX)?;
        let bit = (!self.live[word]).trailing_zeros() as usize;
        let object = word * 64 + bit;
        debug_assert!(object < per_chunk, "the count is less than the capacity");
        self.live[word] |= 1 << bit;
        self.count += 1;
        Some(object)
    }

    /// Marks an object as free; false when it was not live.
    fn clear(&mut self, object: usize) -> bool {
        let (word, bit) = (object / 64, 1 << (object % 64));
        let was_live = self.live[word] & bit != 0;
        self.live[word] &= !bit;
        self.count -= usize::from(was_live);
        was_live
    }
}
