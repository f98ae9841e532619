//! Which changes of files a crash may lose.

use std::sync::Arc;

use crate::simulated::{Change, FileChange, Tree};

/// Files as they are durable, and changes that may be lost.
pub(crate) struct FileMedia {
    durable: Arc<Tree>,
    durable_hash: u64,
    pending: Vec<Pending>,
}

/// A change that is not durable yet.
struct Pending {
    change: Change,
    /// It was synced, and waits for the directory that it lies in.
    is_synced: bool,
}

/// Most changes of which every subset is tried.
const ALL_SUBSETS_MAX: usize = 4;

impl FileMedia {
    pub(super) fn new(durable: Arc<Tree>) -> Self {
        Self { durable_hash: durable.hash(), durable, pending: Vec::new() }
    }

    pub(super) fn apply(&mut self, change: FileChange, changes: &[Change]) {
        match change {
            FileChange::Made(number) => {
                let change = changes[number as usize].clone();
                self.pending.push(Pending { change, is_synced: false });
            }
            FileChange::FileSynced(inode) => {
                self.settle(|change| matches!(change, Change::Length(of, _) if *of == inode));
            }
            FileChange::DirectorySynced(number) => {
                if let Change::Sync(name) = &changes[number as usize] {
                    self.settle(|change| change.is_entry_of(name));
                }
            }
        }
    }

    fn settle(&mut self, is_synced: impl Fn(&Change) -> bool) {
        let durable = Arc::make_mut(&mut self.durable);
        self.pending.retain_mut(|pending| {
            pending.is_synced |= is_synced(&pending.change);
            let is_durable = pending.is_synced && pending.change.has_directory(durable);
            if is_durable {
                pending.change.apply(durable);
            }
            !is_durable
        });
        self.durable_hash = durable.hash();
    }

    /// What a crash can leave: at first what is durable for certain, at last everything. With few
    /// changes, every subset of them. With a hash of each.
    pub(crate) fn states(&self) -> Vec<(Arc<Tree>, u64)> {
        let count = self.pending.iter().filter(|pending| !pending.is_synced).count();
        if count == 0 {
            return vec![(self.durable.clone(), self.durable_hash)];
        }
        let everything = (1_u64 << count.min(63)) - 1;
        let subsets: Vec<u64> = if count <= ALL_SUBSETS_MAX {
            (0..=everything).collect()
        } else {
            let each = (0..count).flat_map(|one| [1 << one, everything & !(1 << one)]);
            [0].into_iter().chain(each).chain([everything]).collect()
        };
        subsets.into_iter().map(|subset| self.surviving(subset)).collect()
    }

    /// The files when every change survives.
    pub(crate) fn everything(&self) -> Arc<Tree> {
        self.surviving(u64::MAX).0
    }

    /// The files when these of the changes survive that were not synced.
    fn surviving(&self, subset: u64) -> (Arc<Tree>, u64) {
        let mut tree = (*self.durable).clone();
        let mut number = 0;
        for Pending { change, is_synced } in &self.pending {
            if *is_synced || subset >> number & 1 != 0 {
                change.apply(&mut tree);
            }
            number += u32::from(!is_synced);
        }
        let hash = tree.hash();
        (Arc::new(tree), hash)
    }
}
