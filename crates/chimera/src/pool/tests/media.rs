//! [`Media`]: persistent memory that is photographed after each store and fence, and what a crash can leave
//! of a photograph.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use chimera_pmem::environment::File;
use chimera_pmem::{CACHE_LINE, Extent, Fenced, Medium, Pmem, Site};

/// Stores of an engine, to bytes that are its own.
pub(crate) const ENGINE: Site = Site::new("test.engine");

const LINE_WORDS: usize = (CACHE_LINE / 8) as usize;
/// Up to so many states of a photograph are all tried.
const STATES_MAX: usize = 1 << 10;

/// Stores to each line that may be missing after a crash, oldest first: word and content.
type Pending = BTreeMap<usize, Vec<(usize, u64)>>;

/// What is left out, to see that it is missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeftOut {
    Store(Site),
    Flush(Site),
    Fence(Site),
    Step(Site),
}

/// Something that is asked of the memory beside loads and stores. Ranges are lines, as offsets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Flush(Range<u64>),
    /// The next flush to be of what is new in a place that is shared.
    Shared,
    Fence,
    /// To load lines ahead of use: for reading, and for writing.
    Ahead(Range<u64>),
    AheadForWriting(Range<u64>),
    /// To be touched: from here on, so many bytes.
    Populate(u64, u64),
    /// That pages may be missing from now on.
    ExpectMisses,
    /// That what lies there now is not read: from here on, so many bytes.
    ExpectStores(u64, u64),
    /// As before.
    ExpectLoads(u64, u64),
    Sync,
}

/// Where a word was published, and where the bytes begin and end that it depends on.
pub(crate) type Published = (u64, Vec<(u64, u64)>);

/// The memory at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Photo {
    durable: Vec<u64>,
    pending: Pending,
}

#[derive(Debug, Default)]
struct State {
    /// What the processors see.
    words: Vec<u64>,
    /// Offset and length of what means nothing any more.
    withdrawn: Vec<(u64, u64)>,
    photo: Photo,
    /// Lines flushed since the last fence, and how many of their stores that covers.
    flushed: BTreeMap<usize, usize>,
    photos: Option<Vec<Photo>>,
    left_out: Option<LeftOut>,
    lines_flushed: u64,
    fences: u64,
    asked: Option<Vec<Asked>>,
    /// How many words are kept at each fence, and these.
    fenced: Option<(usize, Vec<Vec<u64>>)>,
    published: Vec<Published>,
    decided: u64,
    /// What it says it is, where that is neither simulated nor tmpfs.
    medium: Option<Medium>,
    is_journaled: bool,
    /// On tmpfs: offset and length of what was populated.
    populated: Option<Vec<(u64, u64)>>,
}

/// See the module. Clones are the same memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Media(Arc<Mutex<State>>);

impl Photo {
    /// Every state that a crash at this moment can leave: of each line the stores up to any one. `None` for
    /// too many to try them all.
    pub(crate) fn states(&self) -> Option<impl Iterator<Item = Vec<u64>>> {
        let count = self.pending.values().try_fold(1_usize, |count, stores| {
            count.checked_mul(stores.len() + 1).filter(|count| *count <= STATES_MAX)
        })?;
        Some((0..count).map(|number| self.state(number)))
    }

    /// As [`states`](Self::states); where there are too many, none, all, and so many others that a seed chooses.
    pub(crate) fn some_states(&self, others: usize, mut seed: u64) -> Vec<Vec<u64>> {
        if let Some(states) = self.states() {
            return states.collect();
        }
        let mut next = |below: usize| {
            seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (seed >> 33) as usize % below
        };
        let mut states = vec![self.survivors(|_| 0), self.survivors(|stores| stores)];
        states.extend((0..others).map(|_| self.survivors(|stores| next(stores + 1))));
        states
    }

    fn state(&self, mut number: usize) -> Vec<u64> {
        self.survivors(|stores| {
            let survive = number % (stores + 1);
            number /= stores + 1;
            survive
        })
    }

    /// The state in which of each line so many stores survive as `choose` says, of how many there are.
    fn survivors(&self, mut choose: impl FnMut(usize) -> usize) -> Vec<u64> {
        let mut words = self.durable.clone();
        for stores in self.pending.values() {
            let survive = choose(stores.len());
            stores[..survive].iter().for_each(|&(word, value)| words[word] = value);
        }
        words
    }
}

/// Words as bytes of files.
pub(crate) fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The lines of a range, as offsets.
fn lines_of(range: Extent) -> Range<u64> {
    let lines = range.lines();
    lines.start * CACHE_LINE..lines.end * CACHE_LINE
}

/// Bytes of files as words.
pub(crate) fn words_of(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

impl Media {
    /// Memory that says it is a file system's.
    pub(crate) fn on_tmpfs() -> Self {
        let media = Self::default();
        media.state().populated = Some(Vec::new());
        media
    }

    /// Memory that says it is an ordinary file's.
    pub(crate) fn on_file() -> Self {
        let media = Self::default();
        media.state().medium = Some(Medium::File);
        media
    }

    /// Memory that says it is a DAX file system's.
    pub(crate) fn on_dax() -> Self {
        let media = Self::default();
        media.state().medium = Some(Medium::FsDax);
        media
    }

    /// From now on it says that what is flushed passes a journal, and is ordered as it was.
    pub(crate) fn set_journaled(&self) {
        self.state().is_journaled = true;
    }

    /// Offset and length of what was populated on tmpfs since the last call.
    pub(crate) fn take_populated(&self) -> Vec<(u64, u64)> {
        self.state().populated.as_mut().map(std::mem::take).expect("on tmpfs")
    }

    pub(crate) fn leave_out(&self, what: Option<LeftOut>) {
        self.state().left_out = what;
    }

    /// Offset and length of what was said to mean nothing any more.
    pub(crate) fn withdrawn_ranges(&self) -> Vec<(u64, u64)> {
        self.state().withdrawn.clone()
    }

    pub(crate) fn left_out(&self) -> Option<LeftOut> {
        self.state().left_out
    }

    /// What the processors see, as bytes of files.
    pub(crate) fn image(&self) -> Vec<u8> {
        bytes_of(&self.state().words)
    }

    /// The memory as it is now.
    pub(crate) fn photo(&self) -> Photo {
        self.state().photo.clone()
    }

    /// The processors see the memory as it is, but of what they see only this is on media: a process was
    /// killed, and the machine went on.
    pub(crate) fn was_killed(&self, mut photo: Photo) {
        let mut state = self.state();
        // A segment that the superblock does not count yet is not mapped.
        photo.durable.truncate(state.words.len());
        photo.pending.retain(|line, _| line * LINE_WORDS < state.words.len());
        assert_eq!(photo.durable.len(), state.words.len());
        state.photo = photo;
    }

    /// Photographs what `work` does after each step.
    pub(crate) fn photograph<T>(&self, work: impl FnOnce() -> T) -> (T, Vec<Photo>) {
        self.state().photos = Some(Vec::new());
        let done = work();
        let photos = self.state().photos.take().expect("set above");
        (done, photos)
    }

    /// What `work` asks of the memory, in order.
    pub(crate) fn watch<T>(&self, work: impl FnOnce() -> T) -> (T, Vec<Asked>) {
        self.state().asked = Some(Vec::new());
        let done = work();
        let asked = self.state().asked.take().expect("set above");
        (done, asked)
    }

    /// The first so many words of what is durable after each fence of `work`.
    pub(crate) fn durable_at_fences(&self, words: usize, work: impl FnOnce()) -> Vec<Vec<u64>> {
        self.state().fenced = Some((words, Vec::new()));
        work();
        self.state().fenced.take().expect("set above").1
    }

    /// What was published since the last call.
    pub(crate) fn take_published(&self) -> Vec<Published> {
        std::mem::take(&mut self.state().published)
    }

    /// How often an operation was said to be decided.
    pub(crate) fn decided(&self) -> u64 {
        self.state().decided
    }

    /// Lines flushed and fences so far.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let state = self.state();
        (state.lines_flushed, state.fences)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl State {
    fn store(&mut self, at: u64, value: u64, site: Site) {
        if self.left_out == Some(LeftOut::Store(site)) {
            return;
        }
        let word = (at / 8) as usize;
        self.words[word] = value;
        self.photo.pending.entry(word / LINE_WORDS).or_default().push((word, value));
        if site == ENGINE {
            return;
        }
        self.take_photo();
    }

    fn publish(&mut self, at: u64, depends_on: &[Extent]) {
        let ranges = depends_on.iter().map(|range| (range.offset(), range.end())).collect();
        self.published.push((at, ranges));
    }

    fn note(&mut self, asked: Asked) {
        if let Some(all) = &mut self.asked {
            all.push(asked);
        }
    }

    fn take_photo(&mut self) {
        if let Some(photos) = &mut self.photos {
            photos.push(self.photo.clone());
        }
    }
}

impl Pmem for Media {
    fn map(&self, at: u64, file: &Arc<dyn File>, file_offset: u64, length: u64) -> io::Result<()> {
        let mut bytes = vec![0; length as usize];
        file.read_at(file_offset, &mut bytes)?;
        let mut state = self.state();
        assert_eq!(state.words.len() as u64 * 8, at);
        let (words, _) = bytes.as_chunks::<8>();
        let words: Vec<_> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        state.words.extend_from_slice(&words);
        state.photo.durable.extend_from_slice(&words);
        Ok(())
    }

    fn mapped(&self) -> u64 {
        8 * self.state().words.len() as u64
    }

    fn populate(&self, at: u64, length: u64) -> io::Result<()> {
        let mut state = self.state();
        state.note(Asked::Populate(at, length));
        state.populated.iter_mut().for_each(|populated| populated.push((at, length)));
        Ok(())
    }

    fn expect_misses(&self) {
        self.state().note(Asked::ExpectMisses);
    }

    fn expect_stores(&self, range: Extent) {
        self.state().note(Asked::ExpectStores(range.offset(), range.length()));
    }

    fn expect_loads(&self, range: Extent) {
        self.state().note(Asked::ExpectLoads(range.offset(), range.length()));
    }

    fn medium(&self) -> Medium {
        let state = self.state();
        let default = if state.populated.is_some() { Medium::Tmpfs } else { Medium::Simulated };
        state.medium.unwrap_or(default)
    }

    fn is_journaled(&self) -> bool {
        self.state().is_journaled
    }

    fn load_u64(&self, at: u64) -> u64 {
        self.state().words[(at / 8) as usize]
    }

    fn store_u64(&self, at: u64, value: u64, site: Site) {
        self.state().store(at, value, site);
    }

    fn cas_u64(&self, at: u64, current: u64, new: u64, site: Site) -> Result<u64, u64> {
        let mut state = self.state();
        let found = state.words[(at / 8) as usize];
        if found != current {
            return Err(found);
        }
        state.store(at, new, site);
        Ok(current)
    }

    fn cas_u128(&self, _: u64, _: u128, _: u128, _: Site) -> Result<u128, u128> {
        unreachable!("the pool swaps no two words")
    }

    fn read(&self, from: Extent, into: &mut [u8]) {
        let first = (from.offset() / 8) as usize;
        let bytes = bytes_of(&self.state().words[first..first + into.len().div_ceil(8)]);
        into.copy_from_slice(&bytes[..into.len()]);
    }

    fn compare(&self, with: Extent, bytes: &[u8]) -> bool {
        let mut found = vec![0; bytes.len()];
        self.read(with, &mut found);
        found == bytes
    }

    fn prefetch(&self, range: Extent) {
        self.state().note(Asked::Ahead(lines_of(range)));
    }

    fn prefetch_write(&self, range: Extent) {
        self.state().note(Asked::AheadForWriting(lines_of(range)));
    }

    fn copy(&self, to: Extent, bytes: &[u8], site: Site) {
        for (number, bytes) in (0..).zip(bytes.chunks(8)) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            self.store_u64(to.offset() + 8 * number, u64::from_le_bytes(word), site);
        }
    }

    fn copy_nt(&self, to: Extent, bytes: &[u8], site: Site) {
        self.copy(to, bytes, site);
        self.flush(to, site);
    }

    fn zero(&self, range: Extent, site: Site) {
        self.copy(range, &vec![0; range.length() as usize], site);
    }

    fn flush_new_shared(&self, range: Extent, _emptied: Fenced, site: Site) {
        self.state().note(Asked::Shared);
        self.flush(range, site);
    }

    fn flush(&self, range: Extent, site: Site) {
        let mut state = self.state();
        if state.left_out == Some(LeftOut::Flush(site)) {
            return;
        }
        state.note(Asked::Flush(lines_of(range)));
        for line in range.lines() {
            let covers = state.photo.pending.get(&(line as usize)).map_or(0, Vec::len);
            state.flushed.insert(line as usize, covers);
            state.lines_flushed += 1;
        }
    }

    fn fence(&self, site: Site) {
        let mut state = self.state();
        if state.left_out == Some(LeftOut::Fence(site)) {
            return;
        }
        state.fences += 1;
        state.note(Asked::Fence);
        for (line, covers) in std::mem::take(&mut state.flushed) {
            let Photo { durable, pending } = &mut state.photo;
            if let Some(stores) = pending.get_mut(&line) {
                stores.drain(..covers).for_each(|(word, value)| durable[word] = value);
            }
        }
        state.photo.pending.retain(|_, stores| !stores.is_empty());
        let State { fenced, photo, .. } = &mut *state;
        if let Some((words, all)) = fenced {
            all.push(photo.durable[..*words].to_vec());
        }
        state.take_photo();
    }

    fn publish(&self, at: u64, value: u64, depends_on: &[Extent], site: Site) {
        self.state().publish(at, depends_on);
        self.store_u64(at, value, site);
    }

    fn publish_cas(
        &self,
        at: u64,
        current: u64,
        new: u64,
        depends_on: &[Extent],
        site: Site,
    ) -> Result<u64, u64> {
        self.state().publish(at, depends_on);
        self.cas_u64(at, current, new, site)
    }

    fn operation_decided(&self) {
        self.state().decided += 1;
    }

    fn sync_punched(&self, _: Site) -> io::Result<()> {
        Ok(())
    }

    fn punch(&self, _: Extent, _: Site) -> io::Result<bool> {
        unreachable!("the pool punches files")
    }

    fn sync(&self, _: Site) -> io::Result<()> {
        self.state().note(Asked::Sync);
        Ok(())
    }

    fn withdrawn(&self, range: Extent) {
        self.state().withdrawn.push((range.offset(), range.length()));
    }

    fn skips(&self, step: Site) -> bool {
        self.state().left_out == Some(LeftOut::Step(step))
    }
}
