//! [`GuardedNode`]: any operation on a node, all of it or nothing.
//!
//! # Layout
//! One line whose first word says which place holds the node (1 or 2; 0: none yet). Two places, then the undo log.
//!
//! # Protocol
//! Without failure atomicity of its own, and with the pointer alone in a transaction, the node is copied to the other place,
//! changed there by an operation that makes itself durable, and the word names that place. With everything in a transaction,
//! the node is snapshot and changed where it is.

use chimera_pmem::{CACHE_LINE, Extent, Pmem};

use super::{FailureAtomicity, UndoLog, sites};
use crate::error::{PrimitivesError, Result};
use crate::layout::{Geometry, Layout, Node};

/// A node whose changes are atomic. One at a time uses it.
#[derive(Clone, Copy, Debug)]
pub struct GuardedNode {
    at: u64,
    geometry: Geometry,
    kind: FailureAtomicity,
    log: UndoLog,
}

impl GuardedNode {
    /// Bytes of a region that holds one.
    pub fn bytes(geometry: &Geometry) -> u64 {
        let node = geometry.node_bytes();
        CACHE_LINE + 2 * node + UndoLog::bytes_for(&[node, 8])
    }

    /// Opens the node in a region, which consists of zeros or holds one already. Takes back what a crash has cut off.
    ///
    /// # Errors
    /// `Corrupted` when the region holds something else.
    ///
    /// # Durability
    /// The node is there for good when the call returns.
    pub fn open<L: Layout, P: Pmem>(
        pmem: &P,
        at: u64,
        geometry: Geometry,
        kind: FailureAtomicity,
    ) -> Result<Self> {
        let node_bytes = geometry.node_bytes();
        if !at.is_multiple_of(CACHE_LINE) || pmem.check(at, Self::bytes(&geometry)).is_none() {
            return PrimitivesError::corrupted("a guarded node lies nowhere", at);
        }
        let log_at = at + CACHE_LINE + 2 * node_bytes;
        let log = UndoLog::new(pmem, log_at, UndoLog::bytes_for(&[node_bytes, 8]))?;
        let guarded = Self { at, geometry, kind, log };
        log.recover(pmem)?;
        if pmem.load_u64(at) == 0 {
            let node = guarded.place(pmem, 1)?;
            L::format(node);
            pmem.publish(at, 1, &[node.extent()], sites::NODE_ROOT);
            guarded.persist_root(pmem);
        }
        L::recover(guarded.node(pmem)?, &mut crate::layout::Scratch::default())?;
        Ok(guarded)
    }

    fn persist_root<P: Pmem>(&self, pmem: &P) {
        pmem.flush(self.root(), sites::NODE_ROOT);
        pmem.fence(sites::NODE_ROOT);
    }

    fn root(&self) -> Extent {
        Extent::new_checked(self.at, 8)
    }

    /// A place by its name.
    fn place<'a, P: Pmem>(&'a self, pmem: &'a P, name: u64) -> Result<Node<'a, P>> {
        let number = match name {
            1 => 0,
            2 => 1,
            _ => return PrimitivesError::corrupted("a guarded node has two places", self.at),
        };
        Node::at(pmem, &self.geometry, self.at + CACHE_LINE + number * self.geometry.node_bytes())
    }

    /// The node as it is now, for reading.
    ///
    /// # Errors
    /// `Corrupted` when the region is damaged.
    pub fn node<'a, P: Pmem>(&'a self, pmem: &'a P) -> Result<Node<'a, P>> {
        self.place(pmem, pmem.load_u64(self.at))
    }

    /// Changes the node. When `work` fails, nothing has changed.
    ///
    /// # Errors
    /// What `work` returns, and `Corrupted` when the region is damaged.
    ///
    /// # Durability
    /// All that `work` did survives a power loss when the call returns; before that, all of it or nothing.
    ///
    /// # Cost
    /// Beside that of `work`: a copy of the node and two fences; with the pointer in a transaction three more; with all in a
    /// transaction a snapshot of the node and four fences.
    pub fn change<P: Pmem, T>(
        &self,
        pmem: &P,
        work: impl FnOnce(Node<'_, P>) -> Result<T>,
    ) -> Result<T> {
        if self.kind == FailureAtomicity::Transactional {
            return self.change_in_place(pmem, work);
        }
        let name = pmem.load_u64(self.at);
        let (node, spare) = (self.place(pmem, name)?, self.place(pmem, 3 - name)?);
        let mut image = vec![0; self.geometry.node_bytes() as usize];
        pmem.read(node.extent(), &mut image);
        pmem.copy(spare.extent(), &image, sites::NODE_COPY);
        pmem.flush(spare.extent(), sites::NODE_COPY);
        pmem.fence(sites::NODE_COPY);
        let done = work(spare)?;
        if self.kind == FailureAtomicity::Individual {
            let mut transaction = self.log.begin(pmem);
            transaction.snapshot(self.root())?;
            pmem.publish(self.at, 3 - name, &[spare.extent()], sites::NODE_ROOT);
            transaction.commit();
        } else {
            pmem.publish(self.at, 3 - name, &[spare.extent()], sites::NODE_ROOT);
            self.persist_root(pmem);
        }
        pmem.withdrawn(node.extent());
        Ok(done)
    }

    fn change_in_place<P: Pmem, T>(
        &self,
        pmem: &P,
        work: impl FnOnce(Node<'_, P>) -> Result<T>,
    ) -> Result<T> {
        let node = self.node(pmem)?;
        let mut transaction = self.log.begin(pmem);
        transaction.snapshot(node.extent())?;
        match work(node) {
            Ok(done) => {
                transaction.commit();
                Ok(done)
            }
            Err(error) => {
                self.log.recover(pmem)?;
                Err(error)
            }
        }
    }
}
