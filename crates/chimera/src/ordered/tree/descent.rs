//! The way from the root to a node, without locks.
//!
//! *Lock coupling with versions.* The version of a node is taken while its parent is known to lead there: the
//! parent is found unchanged afterwards. So at that moment the node was in the tree, and responsible for what
//! is looked for; and it still is while it has that version, because what a node is responsible for changes
//! only under its own lock.

use chimera_pmem::Environment;

use super::Tree;
use super::format::Header;
use super::locked::LockedNode;
use super::node::Node;
use super::search::SearchKey;

/// A node, and its version.
#[derive(Clone, Copy)]
pub(super) struct ReadNode<'a> {
    pub(super) node: Node<'a>,
    version: u64,
}

impl<'a> ReadNode<'a> {
    #[inline(always)]
    pub(super) fn new(node: Node<'a>) -> Option<Self> {
        let version = node.lock_word().read_begin()?;
        Some(Self { node, version })
    }

    /// Whether all that was read of the node is right.
    #[inline(always)]
    pub(super) fn is_valid(&self) -> bool {
        self.node.lock_word().read_is_valid(self.version)
    }

    /// Locks the node if it has not changed.
    #[inline(always)]
    pub(super) fn lock(&self) -> Option<LockedNode<'a>> {
        let guard = self.node.lock_word().upgrade(self.version)?;
        Some(LockedNode::new(self.node, guard))
    }
}

/// Which node is looked for.
#[derive(Clone, Copy, Debug)]
pub(super) enum DescentTarget<'k> {
    /// The one that this key belongs to.
    At(&'k [u8]),
    /// The one that the keys just below this one belong to.
    Below(&'k [u8]),
    /// The last one.
    End,
}

impl DescentTarget<'_> {
    /// Which child of an inner node leads there.
    #[inline(always)]
    fn child_of(self, node: Node<'_>, header: Header) -> u32 {
        let above = match self {
            Self::At(key) => node.upper_bound(header, SearchKey::new(key, header)),
            Self::Below(key) => node.lower_bound(header, SearchKey::new(key, header)).0,
            Self::End => header.count,
        };
        above.saturating_sub(1)
    }
}

/// A node, and the one above it. The root has none.
pub(super) struct Path<'a> {
    pub(super) parent: Option<ReadNode<'a>>,
    pub(super) node: ReadNode<'a>,
}

/// What came of looking for a node.
pub(super) enum Descent<'a> {
    Found(Path<'a>),
    /// There is no node of this level.
    Absent,
    /// Writers were in the way.
    Changed,
}

/// Reads of a node that are tried without its lock.
const READS_MAX: u32 = 8;

/// Attempts of an operation, between which others get on.
pub(super) struct Attempts<'e> {
    pub(super) environment: &'e dyn Environment,
    failed: u32,
}

impl<'e> Attempts<'e> {
    #[inline(always)]
    pub(super) fn new(environment: &'e dyn Environment) -> Self {
        Self { environment, failed: 0 }
    }

    /// Whether so many were in vain that a reader does better to lock what it reads.
    pub(super) fn are_many(&self) -> bool {
        self.failed >= READS_MAX
    }

    /// After an attempt that was in vain.
    #[cold]
    pub(super) fn relax(&mut self) {
        self.environment.relax(self.failed);
        self.failed = self.failed.saturating_add(1);
    }
}

impl Tree {
    /// Looks for a node of a level.
    #[inline(always)]
    pub(super) fn descend(&self, toward: DescentTarget<'_>, level: u32) -> Descent<'_> {
        self.try_descend(toward, level).unwrap_or(Descent::Changed)
    }

    #[inline(always)]
    fn try_descend(&self, toward: DescentTarget<'_>, level: u32) -> Option<Descent<'_>> {
        let Some(root) = self.nodes.root() else { return Some(Descent::Absent) };
        let mut seen = ReadNode::new(root)?;
        let mut parent = None;
        loop {
            let header = seen.node.header();
            if header.level == level {
                return Some(Descent::Found(Path { parent, node: seen }));
            }
            if header.level < level {
                return seen.is_valid().then_some(Descent::Absent);
            }
            let at = toward.child_of(seen.node, header);
            let child = self.nodes.get(seen.node.child(at))?;
            if header.level == 1 {
                child.prefetch();
            }
            let child = ReadNode::new(child)?;
            if !seen.is_valid() {
                return None;
            }
            parent = Some(seen);
            seen = child;
        }
    }

    /// The same, until it is found; none if there is no node of the level.
    #[inline(always)]
    pub(super) fn find(
        &self,
        toward: DescentTarget<'_>,
        level: u32,
        attempts: &mut Attempts<'_>,
    ) -> Option<Path<'_>> {
        loop {
            match self.descend(toward, level) {
                Descent::Found(path) => return Some(path),
                Descent::Absent => return None,
                Descent::Changed => attempts.relax(),
            }
        }
    }
}
