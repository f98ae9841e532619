//! [`Disk`]: files, what of them is durable, and what a power loss may leave.
//!
//! # Model
//! - A page of 4 KiB that was written since its file was last synced is as it was then, or as it was after
//!   any write since, each sector of 512 bytes by itself, independently of all other pages.
//! - A sync makes durable what was written before it began. What is written meanwhile is for the next one.
//! - After a sync that fails a page may be durable or not, and counts as written all the same: no later sync tries again.
//!   What is read of it is what was written last.
//! - The length of a file that changed since then is the old or the new one.
//! - A name that was made or removed since its directory was last synced is there or not.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::chance::Chance;

const PAGE: usize = 4096;
const SECTOR: usize = 512;
/// Where the second header of a journal has its capacity, and where its entries begin.
const JOURNAL_CAPACITY_AT: usize = PAGE + 32;
const JOURNAL_ENTRIES_AT: u64 = 2 * PAGE as u64;
/// Most versions of a page to keep.
const VERSIONS_MAX: usize = 8;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Directory,
    /// The number of a file.
    File(usize),
}

/// A file.
#[derive(Clone, Debug, Default)]
pub(super) struct Contents {
    pub(super) bytes: Vec<u8>,
    durable: Vec<u8>,
    /// Of each page written since the last sync: what it was after each write, with the number of the write.
    versions: BTreeMap<usize, Vec<(u64, Vec<u8>)>>,
    /// Writes so far, and before the last sync that began.
    writes: u64,
    synced: u64,
}

/// A file as it is when a sync begins.
pub(super) struct Begun {
    bytes: Vec<u8>,
    writes: u64,
}

impl Contents {
    pub(super) fn write(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        if end > self.bytes.len() {
            self.bytes.resize(end, 0);
        }
        self.bytes[offset..end].copy_from_slice(bytes);
        self.writes += 1;
        self.keep_versions(offset / PAGE..end.div_ceil(PAGE));
    }

    /// As [`write`](Self::write), of a store to mapped pages. Unless it is to be kept, the content of a page that was stored
    /// before is forgotten.
    pub(super) fn store(&mut self, offset: usize, bytes: &[u8], is_kept: bool) {
        let end = offset + bytes.len();
        self.bytes[offset..end].copy_from_slice(bytes);
        self.writes += 1;
        for page in offset / PAGE..end.div_ceil(PAGE) {
            let last = self.versions.get_mut(&page).and_then(|versions| versions.last_mut());
            match last.filter(|(number, _)| !is_kept && *number > self.synced) {
                Some((number, content)) => {
                    *number = self.writes;
                    let start = page * PAGE;
                    let part = offset.max(start)..end.min(start + PAGE);
                    content[part.start - start..part.end - start]
                        .copy_from_slice(&self.bytes[part]);
                }
                None => self.keep_versions(page..page + 1),
            }
        }
    }

    fn keep_versions(&mut self, pages: std::ops::Range<usize>) {
        for page in pages {
            let content = page_of(&self.bytes, page);
            let versions = self.versions.entry(page).or_default();
            if versions.len() == VERSIONS_MAX {
                versions.remove(0);
            }
            versions.push((self.writes, content));
        }
    }

    /// Of a journal: whether it is longer than its second header durably says. It is being made larger, and whoever does that
    /// lets nobody append.
    pub(super) fn is_growing(&self) -> bool {
        let word = self.durable.get(JOURNAL_CAPACITY_AT..).and_then(|bytes| bytes.first_chunk());
        let capacity = word.map_or(0, |word| u64::from_le_bytes(*word));
        self.bytes.len() as u64 > JOURNAL_ENTRIES_AT + capacity
    }

    pub(super) fn begin_sync(&mut self) -> Begun {
        self.synced = self.writes;
        Begun { bytes: self.bytes.clone(), writes: self.writes }
    }

    pub(super) fn end_sync(&mut self, begun: &Begun) {
        self.durable.resize(begun.bytes.len(), 0);
        let written: Vec<usize> = self.versions.keys().copied().collect();
        for page in written {
            self.durable_page(page, &begun.bytes);
        }
        self.keep_later_versions(begun);
    }

    /// The sync has failed.
    pub(super) fn fail_sync(&mut self, begun: &Begun, chance: &mut Chance) {
        let durable: Vec<_> = self.versions.keys().filter(|_| chance.one_in(2)).copied().collect();
        for page in durable {
            self.durable_page(page, &begun.bytes);
        }
        self.keep_later_versions(begun);
    }

    fn durable_page(&mut self, page: usize, bytes: &[u8]) {
        let start = (page * PAGE).min(self.durable.len());
        let end = (start + PAGE).min(self.durable.len());
        self.durable[start..end].copy_from_slice(&page_of(bytes, page)[..end - start]);
    }

    fn keep_later_versions(&mut self, begun: &Begun) {
        self.versions.retain(|_, versions| {
            versions.retain(|(number, _)| *number > begun.writes);
            !versions.is_empty()
        });
    }

    /// What a power loss leaves.
    fn survivor(&self, chance: &mut Chance) -> Self {
        let length = if chance.one_in(2) { self.bytes.len() } else { self.durable.len() };
        let mut bytes = self.durable.clone();
        bytes.resize(length, 0);
        for (page, versions) in &self.versions {
            let old = page_of(&self.durable, *page);
            let start = page * PAGE;
            let pick = |chance: &mut Chance| match chance.below(versions.len() as u64 + 1) as usize
            {
                0 => &old,
                version => &versions[version - 1].1,
            };
            let whole = match chance.below(4) {
                0 => Some(&old),
                1 => versions.last().map(|(_, content)| content),
                2 => Some(pick(chance)),
                _ => None,
            };
            for sector in 0..PAGE / SECTOR {
                let content = whole.unwrap_or_else(|| pick(chance));
                let at = start + sector * SECTOR;
                let end = (at + SECTOR).min(length);
                if at < end {
                    bytes[at..end].copy_from_slice(&content[at - start..end - start]);
                }
            }
        }
        Self { durable: bytes.clone(), bytes, versions: BTreeMap::new(), writes: 0, synced: 0 }
    }
}

/// A page of a file, zeros behind its end.
fn page_of(bytes: &[u8], page: usize) -> Vec<u8> {
    let start = (page * PAGE).min(bytes.len());
    let end = (start + PAGE).min(bytes.len());
    let mut content = bytes[start..end].to_vec();
    content.resize(PAGE, 0);
    content
}

/// Whether this is the name of a segment.
pub(super) fn is_segment(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("segment"))
}

/// Files by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    pub(super) names: BTreeMap<PathBuf, Node>,
    durable_names: BTreeMap<PathBuf, Node>,
    pub(super) files: Vec<Contents>,
}

impl Disk {
    /// Whether a journal is being made larger.
    pub(super) fn has_growing_journal(&self) -> bool {
        self.names.iter().any(|(name, node)| match node {
            Node::File(number) => name.ends_with("journal") && self.files[*number].is_growing(),
            Node::Directory => false,
        })
    }

    /// The numbers of the segments' files with pages that no sync has covered.
    pub(super) fn unsynced_segments(&self) -> impl Iterator<Item = usize> {
        self.names.iter().filter_map(|(name, node)| match node {
            Node::File(number) if is_segment(name) => {
                (!self.files[*number].versions.is_empty()).then_some(*number)
            }
            Node::File(_) | Node::Directory => None,
        })
    }

    /// Makes the names in a directory durable.
    pub(super) fn sync_directory(&mut self, path: &Path) {
        let inside = |name: &PathBuf| name.parent() == Some(path);
        self.durable_names.retain(|name, _| !inside(name));
        let names = self.names.iter().filter(|(name, _)| inside(name));
        self.durable_names.extend(names.map(|(name, node)| (name.clone(), *node)));
    }

    /// What a power loss leaves.
    pub(super) fn survivor(&self, chance: &mut Chance) -> Self {
        let files = self.files.iter().map(|file| file.survivor(chance)).collect();
        let all: BTreeSet<_> = self.names.keys().chain(self.durable_names.keys()).collect();
        let mut names = BTreeMap::new();
        for name in all {
            let (new, old) = (self.names.get(name), self.durable_names.get(name));
            let node = if new == old || chance.one_in(2) { new } else { old };
            // Sorted: a directory comes before what is in it, which is lost with it.
            let parent = name.parent().filter(|parent| *parent != Path::new(""));
            let has_parent = parent.is_none_or(|parent| names.contains_key(parent));
            if let Some(node) = node.filter(|_| has_parent) {
                names.insert(name.clone(), *node);
            }
        }
        Self { durable_names: names.clone(), names, files }
    }

    /// What the end of the process leaves.
    pub(super) fn killed(&self) -> Self {
        self.clone()
    }
}
