//! Giving room back: a node that has become sparse is merged with a neighbour, or takes entries from it.
//!
//! The locks are taken as in [`split`](super::split).

use super::Tree;
use super::descent::{Attempts, DescentTarget, Path, ReadNode};
use super::locked::LockedNode;
use super::neighbours::Neighbours;
use super::share::{lock_child, share};

/// A merged node has at least one of so many units free, so that it is not split again soon.
const FREE_SHARE: u32 = 8;

/// What came of an attempt to fill a node up.
enum MergeOutcome {
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
        while let Some(path) = self.find(DescentTarget::At(key), level, attempts) {
            let joined = match path.parent {
                None => self.lower_root(&path.node),
                Some(above) => self.join(&above, &path, key),
            };
            match joined {
                MergeOutcome::Done => return,
                MergeOutcome::ParentIsSparse => return self.fill_up(attempts, key, level + 1),
                MergeOutcome::Alone if was_alone => return,
                MergeOutcome::Alone => {
                    was_alone = true;
                    self.fill_up(attempts, key, level + 1);
                }
                MergeOutcome::Changed => attempts.relax(),
            }
        }
    }

    fn join(&self, above: &ReadNode<'_>, path: &Path<'_>, key: &[u8]) -> MergeOutcome {
        let Some(parent) = above.lock() else { return MergeOutcome::Changed };
        let Some(node) = path.node.lock() else { return MergeOutcome::Changed };
        let header = parent.header();
        if !node.is_sparse() {
            return MergeOutcome::Done;
        }
        if header.count == 1 {
            return MergeOutcome::Alone;
        }
        let at = parent.child_toward(key);
        // The number of the right one of the two.
        let second = at.max(1);
        let other = if at == 0 { 1 } else { at - 1 };
        let Some(other) = lock_child(&self.nodes, &parent, other) else {
            return MergeOutcome::Changed;
        };
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
    ) -> MergeOutcome {
        let all = Neighbours::of_two(&left, &right);
        let merged = all.merged();
        let Some(image) = merged.filter(|image| image.free() * FREE_SHARE >= left.layout().units())
        else {
            let least = if left.header().level == 0 { 1 } else { 2 };
            if all.count() >= 2 * least {
                share(&all, all.middle(least), (parent, second), &left, &right);
            }
            return MergeOutcome::Done;
        };
        image.replace(&left);
        parent.remove(second);
        right.for_each_long_key(|number| right.context.long_keys.remove(number));
        let (id, level) = (right.id, right.header().level);
        drop((left, right));
        self.nodes.give_back(id, level);
        if parent.is_sparse() { MergeOutcome::ParentIsSparse } else { MergeOutcome::Done }
    }

    /// While the root has one child only, the child becomes the root: its words move there, because the root
    /// stays the same node.
    fn lower_root(&self, root: &ReadNode<'_>) -> MergeOutcome {
        let Some(root) = root.lock() else { return MergeOutcome::Changed };
        loop {
            let header = root.header();
            if header.level == 0 || header.count > 1 {
                return MergeOutcome::Done;
            }
            let Some(child) = lock_child(&self.nodes, &root, 0) else {
                return MergeOutcome::Changed;
            };
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
