//! [`Queue`]: changes of the key set that the tree has not seen yet. Bounded, without locks for writers.
//!
//! A change has a *ticket*, its number in the queue. Writers take tickets in turn; whoever applies, applies in the
//! order of tickets, one at a time. So changes of a key, which writers queue under the key's lock, are applied in
//! their order.
//!
//! # Protocol
//! A slot has a turn. It is `ticket` while the slot waits for the change with this ticket, `ticket + 1` once the change
//! is in it, and `ticket + slots` once the change was applied: then it waits for the change of the next round. A writer
//! owns the slot between taking its ticket and setting the turn, and waits for nothing meanwhile.

use std::sync::OnceLock;

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, lock};

/// Words of a key that lie in its slot; longer keys lie in an allocation of the slot's own.
const KEY_WORDS: usize = 5;
const KEY_BYTES: usize = 8 * KEY_WORDS;

/// How the key set has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The key is there.
    Present,
    /// The key is gone.
    Absent,
}

/// A line of its own, so that writers and whoever applies do not take turns at one.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Alone<T>(T);

/// One change that waits.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Slot {
    turn: AtomicU64,
    /// Twice the length of the key, and one if the key is there.
    about: AtomicU64,
    key: [AtomicU64; KEY_WORDS],
}

/// Changes that wait to be applied.
#[derive(Debug)]
pub(super) struct Queue {
    slots: Box<[Slot]>,
    /// Keys that are longer than a slot, by its number; made when there is one.
    long_keys: OnceLock<Box<[Mutex<Vec<u8>>]>>,
    /// The next ticket.
    issued: Alone<AtomicU64>,
    /// Changes with lower tickets were applied.
    applied: Alone<AtomicU64>,
    /// Held by whoever applies; has room for a key.
    applying: Alone<Mutex<Vec<u8>>>,
}

impl Queue {
    /// For so many changes, a power of two.
    pub(super) fn new(slots: usize) -> Self {
        let slot = |number| Slot { turn: AtomicU64::new(number as u64), ..Slot::default() };
        Self {
            slots: (0..slots).map(slot).collect(),
            long_keys: OnceLock::new(),
            issued: Alone::default(),
            applied: Alone::default(),
            applying: Alone::default(),
        }
    }

    fn number_of(&self, ticket: u64) -> usize {
        (ticket & (self.slots.len() as u64 - 1)) as usize
    }

    /// The next ticket: what has a lower one was queued before.
    pub(super) fn issued(&self) -> u64 {
        // Acquire: a writer that was acknowledged has taken its ticket before.
        self.issued.0.load(Ordering::Acquire)
    }

    /// Changes with lower tickets are in the tree.
    pub(super) fn applied(&self) -> u64 {
        self.applied.0.load(Ordering::Acquire)
    }

    /// Changes that wait, roughly while others queue and apply.
    pub(super) fn waiting(&self) -> u64 {
        self.issued().saturating_sub(self.applied())
    }

    /// Queues a change of `key`; its ticket. `None` when the queue is full.
    pub(super) fn push(&self, key: &[u8], change: Change) -> Option<u64> {
        let mut ticket = self.issued.0.load(Ordering::Relaxed);
        let number = loop {
            let number = self.number_of(ticket);
            // Acquire: whoever applied the change before is done with the slot.
            let turn = self.slots[number].turn.load(Ordering::Acquire);
            match turn.cmp(&ticket) {
                std::cmp::Ordering::Less => return None,
                std::cmp::Ordering::Greater => ticket = self.issued.0.load(Ordering::Relaxed),
                std::cmp::Ordering::Equal => {
                    let (next, order) = (ticket + 1, (Ordering::AcqRel, Ordering::Relaxed));
                    match self.issued.0.compare_exchange(ticket, next, order.0, order.1) {
                        Ok(_) => break number,
                        Err(now) => ticket = now,
                    }
                }
            }
        };
        self.fill(number, key, change);
        self.slots[number].turn.store(ticket + 1, Ordering::Release);
        Some(ticket)
    }

    fn fill(&self, number: usize, key: &[u8], change: Change) {
        let slot = &self.slots[number];
        let is_there = u64::from(change == Change::Present);
        slot.about.store(key.len() as u64 * 2 + is_there, Ordering::Relaxed);
        if key.len() > KEY_BYTES {
            let make = || (0..self.slots.len()).map(|_| Mutex::default()).collect();
            let mut long = lock(&self.long_keys.get_or_init(make)[number]);
            long.clear();
            long.extend_from_slice(key);
            return;
        }
        for (word, bytes) in slot.key.iter().zip(key.chunks(8)) {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_le_bytes(padded), Ordering::Relaxed);
        }
    }

    /// Hands the oldest changes to `apply`, in order, `most` at the most; how many. `None` when somebody else is at it.
    pub(super) fn apply(&self, most: usize, mut apply: impl FnMut(&[u8], Change)) -> Option<usize> {
        let mut key = match self.applying.0.try_lock() {
            Ok(key) => key,
            Err(std::sync::TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(std::sync::TryLockError::WouldBlock) => return None,
        };
        let mut done = 0;
        while done < most {
            let ticket = self.applied.0.load(Ordering::Relaxed);
            let number = self.number_of(ticket);
            // Acquire: the change is in its slot.
            if self.slots[number].turn.load(Ordering::Acquire) != ticket + 1 {
                break;
            }
            let change = self.take(number, &mut key);
            apply(&key, change);
            self.slots[number].turn.store(ticket + self.slots.len() as u64, Ordering::Release);
            // Release: who waits for this ticket sees the tree with the change.
            self.applied.0.store(ticket + 1, Ordering::Release);
            done += 1;
        }
        Some(done)
    }

    fn take(&self, number: usize, key: &mut Vec<u8>) -> Change {
        let slot = &self.slots[number];
        let about = slot.about.load(Ordering::Relaxed);
        let length = (about / 2) as usize;
        key.clear();
        if length > KEY_BYTES {
            // The allocation goes with the key: a queue that has seen long keys does not keep them all.
            let long_keys = self.long_keys.get().expect("made for this key");
            *key = std::mem::take(&mut *lock(&long_keys[number]));
        } else {
            for word in &slot.key {
                key.extend_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
            }
            key.truncate(length);
        }
        if about.is_multiple_of(2) { Change::Absent } else { Change::Present }
    }

    /// Bytes of memory once all of it is in use, without long keys that wait.
    pub(super) fn bytes(&self) -> u64 {
        (self.slots.len() * (size_of::<Slot>() + size_of::<Mutex<Vec<u8>>>())) as u64
    }
}

#[cfg(all(test, loom))]
mod models;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;
