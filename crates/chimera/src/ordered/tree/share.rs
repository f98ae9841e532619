//! Changes of a node together with its parent, both of which are locked.

use super::change::compact;
use super::locked::LockedNode;
use super::neighbours::Neighbours;
use super::nodes::Nodes;
use super::search::SearchKey;

/// Locks a child of a node that is locked, unless somebody else holds its lock.
pub(super) fn lock_child<'a>(
    nodes: &'a Nodes,
    parent: &LockedNode<'_>,
    at: u32,
) -> Option<LockedNode<'a>> {
    let child = nodes.get(parent.child(at)).expect("a child is a node");
    Some(LockedNode::new(child, child.lock_word().try_lock()?))
}

/// Enters a child in its parent, which has room for it.
pub(super) fn add_child(parent: &LockedNode<'_>, separator: &[u8], child: u32) {
    if !parent.has_room_now(parent.demand(parent.header(), separator)) {
        compact(parent);
    }
    let header = parent.header();
    let at = parent.upper_bound(header, SearchKey::new(separator, header));
    let is_done = parent.insert(header, at, separator, child);
    assert!(is_done, "there is room after compaction");
}

/// Divides the entries of two neighbours anew, of which the right one is the child `second` of its parent: those
/// from `border` on go to the right. `false`, with nothing changed, if they do not fit so or the parent has no
/// room for the new separator.
pub(super) fn share(
    all: &Neighbours<'_>,
    border: u32,
    (parent, second): (&LockedNode<'_>, u32),
    left: &LockedNode<'_>,
    right: &LockedNode<'_>,
) -> bool {
    let header = parent.header();
    let Some(halves) = all.halves(border, &[]) else { return false };
    let freed = parent.units_of(header.level, parent.slot(second));
    let demand = parent.demand(header, &halves.separator);
    if !parent.has_room(demand.saturating_sub(freed)) {
        return false;
    }
    halves.left.replace(left);
    halves.right.replace(right);
    parent.remove(second);
    add_child(parent, &halves.separator, right.id);
    true
}
