//! [`Order`]: values under short keys, in order of use. No value is freed here: whoever takes one out drops it.

use hashbrown::HashTable;

/// The longest key. RocksDB's keys of blocks have 16 bytes.
pub(super) const KEY_BYTES_MAX: usize = 24;
/// No place.
const NONE: u32 = u32::MAX;

/// A key of at most [`KEY_BYTES_MAX`] bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    bytes: [u8; KEY_BYTES_MAX],
    length: u8,
}

impl Key {
    /// A key; `None` when it is too long.
    pub(super) fn new(key: &[u8]) -> Option<Self> {
        let mut bytes = [0; KEY_BYTES_MAX];
        bytes.get_mut(..key.len())?.copy_from_slice(key);
        Some(Self { bytes, length: key.len() as u8 })
    }
}

#[derive(Debug)]
struct Node<V> {
    key: Key,
    hash: u64,
    value: Option<V>,
    /// The node that was used right after this one.
    newer: u32,
    /// The node that was used right before this one.
    older: u32,
}

/// Values in order of use. Whoever calls hashes the keys, always in the same way.
#[derive(Debug)]
pub(super) struct Order<V> {
    /// The nodes, by the hash of their keys.
    places: HashTable<u32>,
    nodes: Vec<Node<V>>,
    vacant: Vec<u32>,
    newest: u32,
    oldest: u32,
}

impl<V> Default for Order<V> {
    fn default() -> Self {
        let (places, nodes, vacant) = (HashTable::new(), Vec::new(), Vec::new());
        Self { places, nodes, vacant, newest: NONE, oldest: NONE }
    }
}

impl<V> Order<V> {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Adds a value, which is the newest one then. There is none under its key.
    pub(super) fn insert(&mut self, hash: u64, key: Key, value: V) {
        let node = Node { key, hash, value: Some(value), newer: NONE, older: NONE };
        let place = self.vacant.pop().unwrap_or(self.nodes.len() as u32);
        if place as usize == self.nodes.len() {
            self.nodes.push(node);
        } else {
            self.nodes[place as usize] = node;
        }
        self.places.insert_unique(hash, place, |place| self.nodes[*place as usize].hash);
        self.link(place);
    }

    /// The value under a key, which is the newest one then.
    pub(super) fn touch(&mut self, hash: u64, key: &Key) -> Option<&V> {
        let is_it = |place: &u32| self.nodes[*place as usize].key == *key;
        let place = *self.places.find(hash, is_it)?;
        if self.newest != place {
            self.unlink(place);
            self.link(place);
        }
        self.nodes[place as usize].value.as_ref()
    }

    /// Takes out the value under a key.
    pub(super) fn remove(&mut self, hash: u64, key: &Key) -> Option<V> {
        let is_it = |place: &u32| self.nodes[*place as usize].key == *key;
        let (place, _) = self.places.find_entry(hash, is_it).ok()?.remove();
        self.unlink(place);
        self.vacant.push(place);
        self.nodes[place as usize].value.take()
    }

    /// All values, from the oldest on, with the hashes of their keys and the keys.
    pub(super) fn oldest_first(&self) -> impl Iterator<Item = (u64, &Key, &V)> {
        let first = self.nodes.get(self.oldest as usize);
        let nodes = std::iter::successors(first, |node| self.nodes.get(node.newer as usize));
        nodes.filter_map(|node| Some((node.hash, &node.key, node.value.as_ref()?)))
    }

    /// Takes out the oldest value.
    pub(super) fn remove_oldest(&mut self) -> Option<V> {
        let &Node { hash, key, .. } = self.nodes.get(self.oldest as usize)?;
        self.remove(hash, &key)
    }

    fn link(&mut self, place: u32) {
        let node = &mut self.nodes[place as usize];
        node.newer = NONE;
        node.older = self.newest;
        match self.nodes.get_mut(self.newest as usize) {
            Some(before) => before.newer = place,
            None => self.oldest = place,
        }
        self.newest = place;
    }

    fn unlink(&mut self, place: u32) {
        let Node { newer, older, .. } = self.nodes[place as usize];
        match self.nodes.get_mut(newer as usize) {
            Some(newer) => newer.older = older,
            None => self.newest = older,
        }
        match self.nodes.get_mut(older as usize) {
            Some(older) => older.newer = newer,
            None => self.oldest = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(number: u8) -> Key {
        Key::new(&[number]).unwrap()
    }

    /// Several keys have one hash.
    fn hash(number: u8) -> u64 {
        u64::from(number % 5)
    }

    #[test]
    fn keys_have_a_limit() {
        assert!(
            Key::new(&[7; KEY_BYTES_MAX]).is_some() && Key::new(&[7; KEY_BYTES_MAX + 1]).is_none()
        );
        assert_ne!(Key::new(&[0]), Key::new(&[0, 0]));
    }

    proptest! {
        /// Against a list that is kept in order.
        #[test]
        fn it_is_a_list(steps in prop::collection::vec((0..4_u8, 0..12_u8), 1..200)) {
            let (mut order, mut model) = (Order::default(), Vec::<u8>::new());
            for (what, number) in steps {
                let at = model.iter().position(|found| *found == number);
                match what {
                    0 if at.is_none() => {
                        order.insert(hash(number), key(number), number);
                        model.push(number);
                    }
                    0 | 1 => {
                        prop_assert_eq!(order.touch(hash(number), &key(number)).copied(), at.map(|_| number));
                        if let Some(at) = at {
                            let number = model.remove(at);
                            model.push(number);
                        }
                    }
                    2 => {
                        prop_assert_eq!(order.remove(hash(number), &key(number)), at.map(|at| model.remove(at)));
                    }
                    _ => {
                        let oldest = (!model.is_empty()).then(|| model.remove(0));
                        prop_assert_eq!(order.remove_oldest(), oldest);
                    }
                }
                prop_assert_eq!(order.len(), model.len());
                prop_assert!(order.oldest_first().map(|(_, _, number)| number).eq(&model));
            }
            let rest: Vec<u8> = std::iter::from_fn(|| order.remove_oldest()).collect();
            prop_assert_eq!(rest, model);
        }
    }
}
