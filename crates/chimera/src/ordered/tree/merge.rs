//! Giving room back: a node that has become sparse is merged with a neighbour, or takes entries from it.
//!
//! The locks are taken as in [`split`](super::split).

use super::Tree;
use super::descent::{Attempts, Path, Seen, Toward};
use super::locked::LockedNode;
use super::neighbours::Neighbours;
use super::share::{lock_child, share};

/// A merged node has at least one of so many units free, so that it is not split again soon.
const FREE_SHARE: u32 = 8;

/// What came of an attempt to fill a node up.
enum Joined {
    /// Nothing more to do.
    Done,
    /// The parent has become sparse.
    ParentIsSparse,
    /// The node is an only child, so that its parent is to be filled up first.
    Alone,
    /// Others were in the way.
    Changed,
}

impl Tree {
    /// Fills up the node of a level that `key` belongs to, if it is sparse. Does nothing if neither the node
    /// and its neighbour fit into one nor the parent has room for a longer separator.
    #[cold]
    pub(super) fn fill_up(&self, attempts: &mut Attempts<'_>, key: &[u8], level: u32) {
        let mut was_alone = false;
        while let Some(path) = self.find(Toward::At(key), level, attempts) {
            let joined = match path.parent {
                None => self.lower_root(&path.node),
                Some(above) => self.join(&above, &path, key),
            };
            match joined {
                Joined::Done => return,
                Joined::ParentIsSparse => return self.fill_up(attempts, key, level + 1),
                Joined::Alone if was_alone => return,
                Joined::Alone => {
                    was_alone = true;
                    self.fill_up(attempts, key, level + 1);
                }
                Joined::Changed => attempts.relax(),
            }
        }
    }

    fn join(&self, above: &Seen<'_>, path: &Path<'_>, key: &[u8]) -> Joined {
        let Some(parent) = above.lock() else { return Joined::Changed };
        let Some(node) = path.node.lock() else { return Joined::Changed };
        let header = parent.header();
        if !node.is_sparse() {
            return Joined::Done;
        }
        if header.count == 1 {
            return Joined::Alone;
        }
        let at = parent.child_toward(key);
        // The number of the right one of the two.
        let second = at.max(1);
        let other = if at == 0 { 1 } else { at - 1 };
        let Some(other) = lock_child(&self.nodes, &parent, other) else { return Joined::Changed };
        if at == 0 {
            self.merge_or_share(&parent, second, node, other)
        } else {
            self.merge_or_share(&parent, second, other, node)
        }
    }

    /// Makes one node of two, of which the right one is the child `second`, or divides their entries anew.
    fn merge_or_share(
        &self,
        parent: &LockedNode<'_>,
        second: u32,
        left: LockedNode<'_>,
        right: LockedNode<'_>,
    ) -> Joined {
        let all = Neighbours::of_two(&left, &right);
        let merged = all.merged();
        let Some(image) = merged.filter(|image| image.free() * FREE_SHARE >= left.layout().units())
        else {
            let least = if left.header().level == 0 { 1 } else { 2 };
            if all.count() >= 2 * least {
                share(&all, all.middle(least), (parent, second), &left, &right);
            }
            return Joined::Done;
        };
        image.replace(&left);
        parent.remove(second);
        right.for_each_long_key(|number| right.context.long_keys.remove(number));
        let (id, level) = (right.id, right.header().level);
        drop((left, right));
        self.nodes.give_back(id, level);
        if parent.is_sparse() { Joined::ParentIsSparse } else { Joined::Done }
    }

    /// While the root has one child only, the child becomes the root: its words move there, because the root
    /// stays the same node.
    fn lower_root(&self, root: &Seen<'_>) -> Joined {
        let Some(root) = root.lock() else { return Joined::Changed };
        loop {
            let header = root.header();
            if header.level == 0 || header.count > 1 {
                return Joined::Done;
            }
            let Some(child) = lock_child(&self.nodes, &root, 0) else { return Joined::Changed };
            // Neither has fences, and the root has no key. So this moves the long keys, too.
            for number in 1..root.layout().words {
                root.store(number, child.load(number));
            }
            let id = child.id;
            drop(child);
            self.nodes.note_level(header.level, header.level - 1);
            self.nodes.give_back(id, header.level - 1);
        }
    }
}
