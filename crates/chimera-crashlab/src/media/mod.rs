//! [`Media`]: what is durable and what may be, after each step of a trace; and every state that a crash
//! can leave, as far as it is worth trying.

mod files;
mod states;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use chimera_pmem::Site;

use crate::simulated::{Change, Event, Machine, Mark, Order};
use files::FileMedia;
pub(crate) use states::{Patch, States};

/// Words in a cache line.
pub(crate) const LINE_WORDS: u32 = 8;

/// Lines between which two threads count as close to each other: a small page.
const CLOSE_LINES: u32 = 4;

/// In place of a thread: that of a process that was killed.
const NO_THREAD: u8 = u8::MAX;

/// A store that may or may not have reached media.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub(crate) word: u32,
    pub(crate) value: u64,
    pub(crate) order: Order,
    pub(crate) thread: u8,
    pub(crate) site: Site,
    sequence: u32,
}

/// The pending stores of a line, oldest first.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) number: u32,
    pub(crate) stores: Vec<Pending>,
}

/// What is durable and what may be.
///
/// What is durable lies in the memory of a machine, so that a state can be tried by patching it and
/// taking the patch back.
pub(crate) struct Media {
    pub(crate) durable: Arc<Machine>,
    /// Lines with pending stores, in no order.
    pub(crate) lines: Vec<Line>,
    /// Lines flushed and not yet fenced: thread, line, and the last store that is covered.
    flushed: Vec<(u8, u32, u32)>,
    pub(crate) files: FileMedia,
    sequence: u32,
    /// Hash of the durable memory: the sum of the hashes of its words.
    hash: u64,
    /// Emptied lists of stores.
    spare: Vec<Vec<Pending>>,
}

/// Hash of a word at its place; 0 for 0.
#[inline]
pub(crate) fn word_hash(word: u32, value: u64) -> u64 {
    if value == 0 {
        return 0;
    }
    let mixed = u128::from(value ^ u64::from(word).wrapping_mul(0x9e37_79b9_7f4a_7c15))
        * u128::from(0xd6e8_feb8_6659_fd93_u64 ^ u64::from(word) << 17);
    (mixed as u64) ^ (mixed >> 64) as u64 | 1
}

impl Media {
    /// Over the memory and files of `durable`, where everything is durable.
    pub(crate) fn new(durable: Arc<Machine>) -> Self {
        let hash = (0..durable.len() as u32)
            .fold(0_u64, |hash, word| hash.wrapping_add(word_hash(word, durable.peek(word))));
        let files = FileMedia::new(durable.state().tree.clone());
        Self {
            durable,
            lines: Vec::new(),
            flushed: Vec::new(),
            files,
            sequence: 0,
            hash,
            spare: Vec::new(),
        }
    }

    /// Hash of what is durable, without files.
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// Takes a step of a trace, which knows what `changes` of files there were.
    pub(crate) fn apply(&mut self, event: &Event, changes: &[Change]) {
        match *event {
            Event::Store { word, value, order, thread, site } => {
                self.sequence += 1;
                let sequence = self.sequence;
                let store = Pending { word, value, order, thread, site, sequence };
                let number = word / LINE_WORDS;
                if let Some(line) = self.lines.iter_mut().find(|line| line.number == number) {
                    line.stores.push(store);
                } else {
                    let mut stores = self.spare.pop().unwrap_or_default();
                    stores.push(store);
                    self.lines.push(Line { number, stores });
                }
            }
            Event::Flush { line, thread, .. } => self.flushed.push((thread, line, self.sequence)),
            Event::Fence { thread, .. } => self.fence(thread),
            Event::MapFresh { first, count } => self.make_fresh(first, count),
            Event::File(change) => self.files.apply(change, changes),
            Event::Mark(Mark::Killed) => self.forget_process(),
            Event::Publish { .. }
            | Event::Withdrawn { .. }
            | Event::Read { .. }
            | Event::Reread { .. }
            | Event::Begin { .. }
            | Event::Decided
            | Event::Acknowledge { .. }
            | Event::Mark(_)
            | Event::History(_) => {}
        }
    }

    /// The process is gone. Its stores may reach media still, but no fence waits for what it had flushed, and no
    /// thread has made them.
    fn forget_process(&mut self) {
        self.flushed.clear();
        let stores = self.lines.iter_mut().flat_map(|line| &mut line.stores);
        stores.for_each(|store| store.thread = NO_THREAD);
    }

    fn fence(&mut self, thread: u8) {
        let mut flushed = std::mem::take(&mut self.flushed);
        flushed.retain(|&(of, line, covered)| {
            if of == thread {
                self.retire(line, covered);
            }
            of != thread
        });
        self.flushed = flushed;
    }

    /// Makes the stores of a line up to number `covered` durable.
    fn retire(&mut self, number: u32, covered: u32) {
        let Some(at) = self.lines.iter().position(|line| line.number == number) else { return };
        let mut stores = std::mem::take(&mut self.lines[at].stores);
        stores.retain(|store| {
            if store.sequence <= covered {
                self.make_durable(store.word, store.value);
            }
            store.sequence > covered
        });
        if stores.is_empty() {
            self.lines.swap_remove(at);
            self.spare.push(stores);
        } else {
            self.lines[at].stores = stores;
        }
    }

    fn make_durable(&mut self, word: u32, value: u64) {
        let old = self.durable.peek(word);
        self.hash =
            self.hash.wrapping_sub(word_hash(word, old)).wrapping_add(word_hash(word, value));
        self.durable.poke(word, value);
    }

    /// The file behind these words is a new one.
    fn make_fresh(&mut self, first: u32, count: u32) {
        let range = first..first + count;
        self.lines.retain(|line| !range.contains(&(line.number * LINE_WORDS)));
        for word in range {
            if self.durable.peek(word) != 0 {
                self.make_durable(word, 0);
            }
        }
    }

    /// A store to a range of words, up to store number `until`, that may be missing after a crash.
    pub(crate) fn pending_in(&self, words: std::ops::Range<u32>, until: u32) -> Option<&Pending> {
        let lines = words.start / LINE_WORDS..words.end.div_ceil(LINE_WORDS);
        let near = self.lines.iter().filter(|line| lines.contains(&line.number));
        near.flat_map(|line| &line.stores).find(|store| {
            words.contains(&store.word)
                && store.sequence <= until
                && store.value != self.durable.peek(store.word)
        })
    }

    /// A store to a range of words that may be missing after a crash which leaves a later store to `later`:
    /// stores to its line go before it, unless they are past the cache.
    pub(crate) fn pending_without(
        &self,
        words: std::ops::Range<u32>,
        later: u32,
    ) -> Option<&Pending> {
        self.lines.iter().flat_map(|line| &line.stores).find(|store| {
            let is_beside = store.word / LINE_WORDS == later / LINE_WORDS;
            words.contains(&store.word)
                && store.value != self.durable.peek(store.word)
                && !(is_beside && store.order != Order::NonTemporal)
        })
    }

    /// Stores so far.
    pub(crate) fn sequence(&self) -> u32 {
        self.sequence
    }

    /// A store of `thread` after store number `begin` that may be missing after a crash.
    pub(crate) fn pending_since(&self, thread: u8, begin: u32) -> Option<&Pending> {
        self.lines.iter().flat_map(|line| &line.stores).find(|store| {
            store.thread == thread
                && store.sequence > begin
                && !store.site.is_deferred()
                && store.value != self.durable.peek(store.word)
        })
    }

    /// Whether two threads have stores pending close to each other.
    pub(crate) fn is_contended(&self) -> bool {
        let pairs = self.lines.iter().enumerate();
        pairs.into_iter().any(|(at, line)| {
            let near = |other: &&Line| other.number.abs_diff(line.number) <= CLOSE_LINES;
            let mut others = self.lines[at..].iter().filter(near);
            let thread = line.stores[0].thread;
            others.any(|other| other.stores.iter().any(|store| store.thread != thread))
        })
    }

    /// What is in a word as the processors see it.
    pub(crate) fn stored(&self, word: u32) -> u64 {
        let line = self.lines.iter().find(|line| line.number == word / LINE_WORDS);
        let stores = line.map_or(&[][..], |line| &line.stores);
        let last = stores.iter().rfind(|store| store.word == word);
        last.map_or_else(|| self.durable.peek(word), |store| store.value)
    }

    /// Whether a line has stores that no flush has covered yet.
    pub(crate) fn has_news(&self, number: u32) -> bool {
        let Some(line) = self.lines.iter().find(|line| line.number == number) else { return false };
        let covered = self.flushed.iter().filter(|(_, flushed, _)| *flushed == number);
        let covered = covered.map(|(_, _, covered)| *covered).max().unwrap_or_default();
        line.stores.iter().any(|store| store.sequence > covered)
    }
}
