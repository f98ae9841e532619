//! Building a tree from keys in order, from the leaves up, without a search.
//!
//! Each level gathers the entries of one node. When the next one comes, its key decides what the high fence of the
//! node would be, and so how long the prefix and how large all entries. If the node would be too full then, it is
//! closed in front of its last entry, and the level above gathers the node.

use std::io;
use std::sync::Arc;

use chimera_pmem::Environment;

use super::Tree;
use super::format::{Header, separator};
use super::image::{Image, frame_units};
use super::locked::LockedNode;
use super::shape::{Layout, SLOT_UNITS};

/// So many percent of a node are filled.
const FILL_PERCENT: u32 = 92;

/// The entries of a node that is not closed yet.
struct Level {
    number: u32,
    low: Option<Arc<[u8]>>,
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Of inner nodes.
    children: Vec<u32>,
    /// The prefix, and the units of all entries with it.
    sum: (u32, u32),
    /// Whether a node of this level was closed.
    is_divided: bool,
}

/// A tree that is being built.
struct Building<'t> {
    tree: &'t Tree,
    levels: Vec<Level>,
    /// Nodes that were taken, and their levels.
    taken: Vec<(u32, u32)>,
}

/// A tree that is built, and that nobody can see yet. Dropping it leaves nothing.
pub(in crate::ordered) struct Built<'t> {
    building: Building<'t>,
    /// The root, and its level; none of a tree without keys.
    root: Option<(Image<'t>, u32)>,
    keys: i64,
}

impl Level {
    fn new(number: u32) -> Self {
        let (bytes, ends, children) = (Vec::new(), Vec::new(), Vec::new());
        Self { number, low: None, bytes, ends, children, sum: (0, 0), is_divided: false }
    }

    fn count(&self) -> usize {
        self.ends.len()
    }

    fn key(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.bytes[start..self.ends[at]]
    }

    /// Units of an entry with its slot. The first child of a node needs no key.
    fn units(&self, layout: Layout, at: usize, prefix: u32) -> u32 {
        let is_first_child = self.number > 0 && at == 0;
        let length = if is_first_child { 0 } else { self.key(at).len() as u32 - prefix };
        SLOT_UNITS + layout.entry_units(self.number, length)
    }

    fn gather(&mut self, layout: Layout, key: &[u8], child: Option<u32>) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
        self.children.extend(child);
        let prefix = self.sum.0;
        // A key that does not have the prefix makes it shorter before the sum is used.
        if key.len() >= prefix as usize {
            self.sum.1 += self.units(layout, self.count() - 1, prefix);
        }
    }

    /// Whether all entries fit a node that ends at `high`, and leave some of it free.
    fn fits(&mut self, layout: Layout, high: Option<&[u8]>, percent: u32) -> bool {
        let (prefix, frame) = frame_units(layout, self.low.as_deref(), high);
        if self.sum.0 != prefix {
            let sum = (0..self.count()).map(|at| self.units(layout, at, prefix)).sum();
            self.sum = (prefix, sum);
        }
        frame + self.sum.1 <= layout.units() * percent / 100
    }

    /// The key from which on entries belong behind the last one, if the next one has this key.
    fn border<'k>(&self, at: usize, key: &'k [u8]) -> &'k [u8] {
        if self.number > 0 { key } else { separator(self.key(at), key) }
    }

    /// Forgets the first entries; those that are left are in a node that begins at `low`.
    fn advance(&mut self, layout: Layout, entries: usize, low: Arc<[u8]>) {
        let bytes = self.ends[entries - 1];
        self.bytes.drain(..bytes);
        self.ends.drain(..entries);
        self.ends.iter_mut().for_each(|end| *end -= bytes);
        self.children.drain(..entries.min(self.children.len()));
        self.low = Some(low);
        self.is_divided = true;
        self.sum = (0, (0..self.count()).map(|at| self.units(layout, at, 0)).sum());
    }
}

impl Tree {
    /// Builds a tree from keys in strictly ascending order, which is to be the content of this one. Its leaves are well
    /// filled.
    ///
    /// # Errors
    /// `OutOfMemory`; `InvalidInput` when the keys are not in order; `AlreadyExists` when this tree is not empty.
    ///
    /// # Cost
    /// Each key is copied twice.
    pub(in crate::ordered) fn build<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> io::Result<Built<'_>> {
        let mut building = Building { tree: self, levels: Vec::new(), taken: Vec::new() };
        let mut count = 0;
        for key in keys {
            let last = building
                .levels
                .first()
                .and_then(|leaf| Some(leaf.key(leaf.count().checked_sub(1)?)));
            if last.is_some_and(|last| last >= key.as_ref()) {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "keys out of order"));
            }
            building.push(0, key.as_ref(), None)?;
            count += 1;
        }
        let root = building.finish()?;
        building.levels = Vec::new();
        if root.is_some() {
            self.ensure_root()?;
        }
        Ok(Built { building, root, keys: count })
    }

    /// Makes an empty root, unless there is one.
    ///
    /// # Errors
    /// `OutOfMemory`; `AlreadyExists` when the tree is not empty.
    fn ensure_root(&self) -> io::Result<()> {
        if self.nodes.root().is_none() {
            let empty = Image::new(&self.nodes.context, 0, None, None);
            self.nodes.make_root(|root| empty.fill(root))?;
        }
        check_empty(self.nodes.root().expect("a root that was made").header())
    }
}

impl Built<'_> {
    /// Fills the tree with what was built. Nobody can see the keys before all are there.
    ///
    /// # Errors
    /// `AlreadyExists` when the tree is not empty. It is as it was.
    pub(in crate::ordered) fn publish(self, environment: &dyn Environment) -> io::Result<()> {
        let Self { mut building, root, keys } = self;
        let Some((image, level)) = root else { return Ok(()) };
        let nodes = &building.tree.nodes;
        let root = LockedNode::wait(nodes.root().expect("a root that was ensured"), environment);
        check_empty(root.header())?;
        image.replace(&root);
        nodes.note_level(0, level);
        building.tree.keys.add(0, keys);
        building.taken.clear();
        Ok(())
    }
}

impl<'t> Building<'t> {
    fn push(&mut self, number: usize, key: &[u8], child: Option<u32>) -> io::Result<()> {
        let layout = self.tree.nodes.layout();
        if number == self.levels.len() {
            self.levels.push(Level::new(number as u32));
        }
        let level = &mut self.levels[number];
        if let Some(last) = level.count().checked_sub(1) {
            let high = level.border(last, key);
            if !level.fits(layout, Some(high), FILL_PERCENT) && last > 0 {
                self.close(number, last)?;
            }
        }
        self.levels[number].gather(layout, key, child);
        Ok(())
    }

    /// Closes a node with the first entries of a level, of which at least one is left.
    fn close(&mut self, number: usize, entries: usize) -> io::Result<()> {
        let layout = self.tree.nodes.layout();
        let level = &mut self.levels[number];
        let high: Arc<[u8]> = level.border(entries - 1, level.key(entries)).into();
        let image = image(self.tree, level, entries, Some(&high));
        let low = level.low.clone();
        level.advance(layout, entries, high);
        self.keep(number, image, low.as_ref())
    }

    /// Stores a node, and enters it in the level above.
    fn keep(&mut self, number: usize, image: Image<'t>, low: Option<&Arc<[u8]>>) -> io::Result<()> {
        let node = self.tree.nodes.take(number as u32)?;
        self.taken.push((node.id, number as u32));
        image.fill(&node);
        let id = node.id;
        drop(node);
        self.push(number + 1, low.map_or(&[], |low| low), Some(id))
    }

    /// Closes what is left of all levels. The node of the highest one is to be the root, with its level.
    fn finish(&mut self) -> io::Result<Option<(Image<'t>, u32)>> {
        let layout = self.tree.nodes.layout();
        let mut number = 0;
        while number < self.levels.len() {
            // Without a high fence there is no prefix, and entries are larger.
            while !self.levels[number].fits(layout, None, 100) {
                self.close(number, self.levels[number].count() / 2)?;
            }
            let level = &self.levels[number];
            let image = image(self.tree, level, level.count(), None);
            if !level.is_divided {
                return Ok(Some((image, number as u32)));
            }
            let low = level.low.clone();
            self.keep(number, image, low.as_ref())?;
            number += 1;
        }
        Ok(None)
    }
}

/// A node with the first entries of a level.
fn image<'t>(tree: &'t Tree, level: &Level, entries: usize, high: Option<&Arc<[u8]>>) -> Image<'t> {
    let mut image = Image::new(&tree.nodes.context, level.number, level.low.as_ref(), high);
    for at in 0..entries {
        let is_done = image.push(level.key(at), level.children.get(at).copied().unwrap_or(0));
        assert!(is_done, "room for what was measured");
    }
    image
}

/// # Errors
/// `AlreadyExists`, by the header of a root, when its tree is not empty.
fn check_empty(root: Header) -> io::Result<()> {
    if root.level > 0 || root.count > 0 {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    Ok(())
}

impl Drop for Building<'_> {
    fn drop(&mut self) {
        for (id, level) in self.taken.drain(..) {
            self.tree.nodes.discard(id, level);
        }
    }
}
