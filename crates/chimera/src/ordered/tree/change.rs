//! Changes of single keys: in one leaf, under its lock alone, unless the leaf has too many keys or too few.

use std::io;

use chimera_pmem::Environment;

use super::Tree;
use super::descent::{Attempts, DescentTarget};
use super::image::Image;
use super::locked::LockedNode;
use super::search::SearchKey;

/// What came of an insert into a leaf.
enum Inserted {
    New,
    Known,
    Full,
}

/// What came of a removal from a leaf.
enum Removed {
    Absent,
    Done { is_sparse: bool },
}

impl Tree {
    /// Inserts a key. `true` when it is new.
    ///
    /// # Errors
    /// `OutOfMemory`; no key is changed.
    ///
    /// # Cost
    /// The lines of a leaf that a binary search reads, and one that is written; inner nodes are in the
    /// processor's caches. Once for some 40 inserts a leaf is split. Waits while another writer is at the
    /// leaf.
    pub(crate) fn insert(&self, environment: &dyn Environment, key: &[u8]) -> io::Result<bool> {
        let mut attempts = Attempts::new(environment);
        loop {
            let Some(path) = self.find(DescentTarget::At(key), 0, &mut attempts) else {
                self.nodes
                    .make_root(|root| Image::new(&self.nodes.context, 0, None, None).fill(root))?;
                continue;
            };
            let inserted = self.elision.run(|| {
                let leaf = path.node.lock()?;
                Some(insert_into(&leaf, key))
            });
            match inserted {
                None => {
                    attempts.relax();
                    continue;
                }
                Some(Inserted::New) => {
                    self.keys.add(path.node.node.id, 1);
                    return Ok(true);
                }
                Some(Inserted::Known) => return Ok(false),
                Some(Inserted::Full) => {}
            }
            self.make_room(&mut attempts, key, 0)?;
        }
    }

    /// Removes a key. `false` when it is not there.
    ///
    /// # Cost
    /// As of [`insert`](Self::insert). Once for some 30 removals a leaf is merged with its neighbour.
    pub(crate) fn remove(&self, environment: &dyn Environment, key: &[u8]) -> bool {
        let mut attempts = Attempts::new(environment);
        loop {
            let Some(path) = self.find(DescentTarget::At(key), 0, &mut attempts) else {
                return false;
            };
            let removed = self.elision.run(|| Some(remove_from(&path.node.lock()?, key)));
            match removed {
                None => attempts.relax(),
                Some(Removed::Absent) => return false,
                Some(Removed::Done { is_sparse }) => {
                    self.keys.add(path.node.node.id, -1);
                    if is_sparse && path.parent.is_some() {
                        self.fill_up(&mut attempts, key, 0);
                    }
                    return true;
                }
            }
        }
    }

    /// Whether a key is there.
    ///
    /// # Cost
    /// The lines of a leaf that a binary search reads. Takes no lock; waits while a writer is at the leaf.
    #[cfg(test)]
    pub(crate) fn has(&self, environment: &dyn Environment, key: &[u8]) -> bool {
        let mut attempts = Attempts::new(environment);
        loop {
            let Some(path) = self.find(DescentTarget::At(key), 0, &mut attempts) else {
                return false;
            };
            let leaf = path.node;
            let header = leaf.node.header();
            let (_, is_there) = leaf.node.lower_bound(header, SearchKey::new(key, header));
            if leaf.is_valid() {
                return is_there;
            }
            attempts.relax();
        }
    }
}

#[inline]
fn insert_into(leaf: &LockedNode<'_>, key: &[u8]) -> Inserted {
    let header = leaf.header();
    let (at, is_there) = leaf.lower_bound(header, SearchKey::new(key, header));
    if is_there {
        return Inserted::Known;
    }
    if leaf.insert(header, at, key, 0) {
        return Inserted::New;
    }
    if !leaf.has_room(leaf.demand(header, key)) {
        return Inserted::Full;
    }
    compact(leaf);
    let is_done = leaf.insert(leaf.header(), at, key, 0);
    assert!(is_done, "there is room after compaction");
    Inserted::New
}

#[inline]
fn remove_from(leaf: &LockedNode<'_>, key: &[u8]) -> Removed {
    let header = leaf.header();
    let (at, is_there) = leaf.lower_bound(header, SearchKey::new(key, header));
    if !is_there {
        return Removed::Absent;
    }
    leaf.remove(at);
    Removed::Done { is_sparse: leaf.is_sparse() }
}

/// Builds a node anew without garbage.
pub(super) fn compact(node: &LockedNode<'_>) {
    let header = node.header();
    let [low, high] = node.whole_fences();
    let mut image = Image::new(node.context, header.level, low.as_ref(), high.as_ref());
    for at in 0..header.count {
        let is_done = image.push_from(**node, header, at);
        assert!(is_done, "a node has room for its own entries");
    }
    image.replace(node);
}
