//! Making room: a full node is split, or gives entries to a neighbour.
//!
//! The locks are those of the parent, the node and perhaps a neighbour, in this order. None is waited for:
//! if one is held, or a node has changed, all are released and the way is looked for anew. So there is no
//! deadlock.

use std::io;

use super::Tree;
use super::descent::{Attempts, DescentTarget};
use super::image::Image;
use super::locked::LockedNode;
use super::neighbours::{Neighbours, SplitNodes};
use super::search::SearchKey;
use super::share::{add_child, lock_child, share};

/// A leaf hands over at least one of so many entries.
const MOVED_SHARE: u32 = 4;

/// What came of an attempt to divide a node.
enum SplitOutcome {
    Done,
    /// The parent has no room for another child.
    ParentIsFull,
}

impl Tree {
    /// Makes room for `key` in the node of a level that it belongs to, or for any separator if that is an
    /// inner node. There may be none left when this returns: others may have been faster.
    ///
    /// # Errors
    /// `OutOfMemory`; no key is changed.
    #[cold]
    pub(super) fn make_room(
        &self,
        attempts: &mut Attempts<'_>,
        key: &[u8],
        level: u32,
    ) -> io::Result<()> {
        loop {
            let Some(path) = self.find(DescentTarget::At(key), level, attempts) else {
                return Ok(());
            };
            let divided = match path.parent {
                None => match path.node.lock() {
                    Some(root) if has_room(&root, key) => return Ok(()),
                    Some(root) => Some(self.split_root(&root, key)?),
                    None => None,
                },
                Some(above) => match (above.lock(), path.node.lock()) {
                    (Some(_), Some(node)) if has_room(&node, key) => return Ok(()),
                    (Some(parent), Some(node)) => Some(self.split(&parent, &node, key)?),
                    _ => None,
                },
            };
            match divided {
                Some(SplitOutcome::Done) => return Ok(()),
                Some(SplitOutcome::ParentIsFull) => self.make_room(attempts, key, level + 1)?,
                None => attempts.relax(),
            }
        }
    }

    /// Splits a node that has a parent, unless its neighbour takes entries from it.
    fn split(
        &self,
        parent: &LockedNode<'_>,
        node: &LockedNode<'_>,
        key: &[u8],
    ) -> io::Result<SplitOutcome> {
        if node.header().level == 0 && self.hand_over(parent, node, key) {
            return Ok(SplitOutcome::Done);
        }
        let SplitNodes { left, right, separator } = divide(node, key);
        let header = parent.header();
        let demand = parent.demand(header, &separator);
        if !parent.has_room(demand) {
            return Ok(SplitOutcome::ParentIsFull);
        }
        let fresh = self.nodes.take(node.header().level)?;
        right.fill(&fresh);
        left.replace(node);
        add_child(parent, &separator, fresh.id);
        Ok(SplitOutcome::Done)
    }

    /// Moves entries to the left neighbour of a leaf that keys are appended to, if that has room for many: it was
    /// divided when it had no high fence, so that its prefix was short and its entries were larger.
    fn hand_over(&self, parent: &LockedNode<'_>, leaf: &LockedNode<'_>, key: &[u8]) -> bool {
        let header = leaf.header();
        let (at, _) = leaf.lower_bound(header, SearchKey::new(key, header));
        // The leaf is the right one of the two.
        let second = parent.child_toward(key);
        if at < header.count || second == 0 {
            return false;
        }
        let Some(left) = lock_child(&self.nodes, parent, second - 1) else { return false };
        let all = Neighbours::of_two(&left, leaf);
        let border = all.most_on_the_left();
        let moves_many = border >= left.header().count + header.count / MOVED_SHARE;
        moves_many && share(&all, border, (parent, second), &left, leaf)
    }

    /// Splits the root, which stays the root: both halves become its children.
    fn split_root(&self, root: &LockedNode<'_>, key: &[u8]) -> io::Result<SplitOutcome> {
        let level = root.header().level;
        let SplitNodes { left, right, separator } = divide(root, key);
        let first = self.nodes.take(level)?;
        let second = match self.nodes.take(level) {
            Ok(second) => second,
            Err(error) => {
                let id = first.id;
                drop(first);
                self.nodes.give_back(id, level);
                return Err(error);
            }
        };
        let mut image = Image::new(&self.nodes.context, level + 1, None, None);
        let is_done = image.push(&[], first.id) && image.push(&separator, second.id);
        assert!(is_done, "a node has room for two children");
        left.fill(&first);
        right.fill(&second);
        image.replace(root);
        self.nodes.note_level(level, level + 1);
        Ok(SplitOutcome::Done)
    }
}

/// Whether a leaf has room for a key, or an inner node for any separator. A key that is there by now needs none;
/// and no separator could be found between it and itself.
fn has_room(node: &LockedNode<'_>, key: &[u8]) -> bool {
    let header = node.header();
    if header.level > 0 {
        return node.has_room(node.layout().separator_units_max());
    }
    let (_, is_there) = node.lower_bound(header, SearchKey::new(key, header));
    is_there || node.has_room(node.demand(header, key))
}

/// Divides a full node in two: in the middle, but near the end if the key that there is no room for belongs
/// there, since others may come behind it, and likewise at the start.
fn divide<'a>(node: &LockedNode<'a>, key: &[u8]) -> SplitNodes<'a> {
    let header = node.header();
    let all = Neighbours::of_one(node);
    let count = all.count();
    let (at, _) = node.lower_bound(header, SearchKey::new(key, header));
    // An inner node has two children at least, so that none is without a neighbour.
    let least = if header.level == 0 { 0 } else { 2 };
    let ends = if at == count {
        [count - least, (count - least - 1).max(least)]
    } else if at == 0 && header.level == 0 {
        [0, 1]
    } else {
        [all.middle(2); 2]
    };
    let halves = ends.into_iter().find_map(|end| all.halves(end, key));
    halves.or_else(|| all.halves(all.middle(2), key)).expect("each half of a node fits one")
}
