//! [`Image`]: a node that is being built, before anybody can see it.
//!
//! Numbers of long keys belong to the image until it is stored to a node, and are freed with it if it never
//! is. So whatever is given up half-way leaves no trace.

use std::mem::take;
use std::sync::Arc;

use super::format::{Header, Place, Slot, common, unit_of};
use super::locked::{LockedNode, write_entry};
use super::node::{Context, Node};
use super::shape::{HEADER_UNITS, HEADER_WORDS, Layout, SLOT_UNITS, UNIT};

/// A node in the making.
pub(super) struct Image<'a> {
    words: Vec<u64>,
    header: Header,
    context: &'a Context,
    /// Numbers that belong to the image.
    long_keys: Vec<u32>,
    scratch: Vec<u8>,
}

impl<'a> Image<'a> {
    /// Without entries. The prefix is what both fences have in common.
    pub(super) fn new(
        context: &'a Context,
        level: u32,
        low: Option<&Arc<[u8]>>,
        high: Option<&Arc<[u8]>>,
    ) -> Self {
        let layout = context.layout;
        let prefix = prefix_of(layout, low.map(|low| &**low), high.map(|high| &**high));
        let mut image = Self {
            words: vec![0; layout.words as usize],
            header: Header { level, heap: layout.units(), ..Header::default() },
            context,
            long_keys: Vec::new(),
            scratch: Vec::new(),
        };
        image.header.prefix = prefix.len() as u32;
        image.put_bytes(prefix);
        let [low, high] = [low, high].map(|fence| image.put_fence(fence).half());
        image.words[2] = u64::from(low) << 32 | u64::from(high);
        image
    }

    fn layout(&self) -> Layout {
        self.context.layout
    }

    /// Puts bytes in front of the heap; where.
    fn put_bytes(&mut self, bytes: &[u8]) -> u32 {
        self.header.heap -= (bytes.len() as u32).div_ceil(UNIT);
        for (unit, bytes) in (self.header.heap..).zip(bytes.chunks(UNIT as usize)) {
            put(&mut self.words, unit, unit_of(bytes, 0));
        }
        self.header.heap
    }

    fn put_fence(&mut self, fence: Option<&Arc<[u8]>>) -> Place {
        let Some(fence) = fence else { return Place::ABSENT };
        let rest = &fence[self.header.prefix as usize..];
        if rest.len() <= self.layout().rest_max as usize {
            return Place::new(self.put_bytes(rest), rest.len() as u32);
        }
        let number = self.keep(fence.clone());
        Place::long(self.put_bytes(&number.to_be_bytes()))
    }

    fn keep(&mut self, key: Arc<[u8]>) -> u32 {
        let number = self.context.long_keys.insert(key);
        self.long_keys.push(number);
        number
    }

    /// Units between slots and heap.
    pub(super) fn free(&self) -> u32 {
        self.header.heap - HEADER_UNITS - SLOT_UNITS * self.header.count
    }

    /// Appends an entry, in inner nodes with a child. The key of the first one of an inner node is left out: all keys of the node are above
    /// it. `false` if there is no room.
    pub(super) fn push(&mut self, key: &[u8], child: u32) -> bool {
        let rest = &key[self.header.prefix as usize..];
        if rest.len() <= self.layout().rest_max as usize {
            return self.put_entry(key, None, child);
        }
        self.put_entry(key, Some(&Arc::from(key)), child)
    }

    /// Appends an entry, whose key is kept whole if it is one of the [`LongKeys`](super::long_keys).
    fn put_entry(&mut self, key: &[u8], long_key: Option<&Arc<[u8]>>, child: u32) -> bool {
        let (layout, header) = (self.layout(), self.header);
        let is_first_child = header.level > 0 && header.count == 0;
        let rest = if is_first_child { &[] } else { &key[header.prefix as usize..] };
        let long_key = long_key.filter(|_| !is_first_child);
        let length = if long_key.is_some() { u32::MAX } else { rest.len() as u32 };
        let units = layout.entry_units(header.level, length);
        if SLOT_UNITS + units > self.free() {
            return false;
        }
        let number = long_key.map(|key| self.keep(key.clone()));
        self.header.heap -= units;
        let words = &mut self.words;
        let put = |unit, value| put(words, unit, value);
        let slot = write_entry(header.level, self.header.heap, (rest, number), child, put);
        self.put_slot(slot);
        true
    }

    fn put_slot(&mut self, slot: Slot) {
        self.words[(HEADER_WORDS + self.header.count) as usize] = slot.word();
        self.header.count += 1;
    }

    /// Appends the entry `at` of a node that is locked. A key that was a long one stays one, so that an entry
    /// never becomes larger when the prefix does. `false` if there is no room.
    pub(super) fn push_from(&mut self, node: Node<'_>, from: Header, at: u32) -> bool {
        let slot = node.slot(at);
        let is_inner = from.level > 0;
        let child = if is_inner { node.child(at) } else { 0 };
        if is_inner && self.header.count == 0 {
            return self.put_entry(&[], None, child);
        }
        let mut key = take(&mut self.scratch);
        key.clear();
        if is_inner && at == 0 {
            // Its key is the low fence, which only the first child of the image can do without.
            let [low, _] = node.fences();
            node.append_fence(from, low, &mut key);
        } else if let Some(number) = node.long_key(from.level, slot) {
            let key = self.context.long_keys.get(number).expect("the key of an entry");
            return self.put_entry(&key, Some(&key), child);
        } else if from.prefix == self.header.prefix {
            return self.copy(node, from, slot);
        } else {
            node.append_key(from, slot, &mut key);
        }
        let is_done = self.push(&key, child);
        self.scratch = key;
        is_done
    }

    /// Appends an entry of a node with the same prefix, whose key is not a long one.
    fn copy(&mut self, node: Node<'_>, from: Header, slot: Slot) -> bool {
        let units = node.units_of(from.level, slot);
        if units > self.free() {
            return false;
        }
        let units = units - SLOT_UNITS;
        self.header.heap -= units;
        for unit in 0..units {
            put(&mut self.words, self.header.heap + unit, node.unit(slot.place.offset + unit));
        }
        let length = slot.place.length().unwrap_or_default();
        self.put_slot(Slot { place: Place::new(self.header.heap, length), ..slot });
        true
    }

    /// Stores the image to a node, which others see when its lock is released. The long keys that the node had
    /// are freed.
    pub(super) fn replace(mut self, node: &LockedNode<'_>) {
        let mut freed = Vec::new();
        node.for_each_long_key(|number| freed.push(number));
        self.store(node);
        for number in freed {
            self.context.long_keys.remove(number);
        }
    }

    /// As [`replace`](Self::replace), for a node that nobody uses: what it has says nothing.
    pub(super) fn fill(mut self, node: &LockedNode<'_>) {
        self.store(node);
    }

    fn store(&mut self, node: &LockedNode<'_>) {
        let slots_end = HEADER_WORDS + self.header.count;
        self.words[1] = self.header.word();
        for number in (1..slots_end).chain(self.header.heap / 2..self.layout().words) {
            node.store(number, self.words[number as usize]);
        }
        self.long_keys.clear();
    }
}

impl Drop for Image<'_> {
    fn drop(&mut self) {
        for number in self.long_keys.drain(..) {
            self.context.long_keys.remove(number);
        }
    }
}

/// What all keys between two fences have in common, as far as it is stored once.
fn prefix_of<'k>(layout: Layout, low: Option<&'k [u8]>, high: Option<&[u8]>) -> &'k [u8] {
    let (Some(low), Some(high)) = (low, high) else { return &[] };
    &low[..common(low, high).min(layout.prefix_max as usize)]
}

/// Bytes of the prefix of a node with these fences, and all units that it has without entries.
pub(super) fn frame_units(layout: Layout, low: Option<&[u8]>, high: Option<&[u8]>) -> (u32, u32) {
    let prefix = prefix_of(layout, low, high).len() as u32;
    let fence = |fence: Option<&[u8]>| {
        fence.map_or(0, |fence| layout.fence_units(fence.len() as u32 - prefix))
    };
    (prefix, HEADER_UNITS + prefix.div_ceil(UNIT) + fence(low) + fence(high))
}

fn put(words: &mut [u64], unit: u32, value: u32) {
    let word = &mut words[unit as usize / 2];
    *word = if unit.is_multiple_of(2) {
        *word & u64::from(u32::MAX) | u64::from(value) << 32
    } else {
        *word & !u64::from(u32::MAX) | u64::from(value)
    };
}
