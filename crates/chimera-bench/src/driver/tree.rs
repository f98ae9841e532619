//! [`TreeStore`]: the trees that HiKV is measured against, as stores.
//!
//! One lock for the whole tree: readers beside each other, or one writer. So figures of several threads say little.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

use chimera::Demand;
use chimera_pmem::environment::{AnonymousFile, File, OpenMode};
use chimera_pmem::instrumented::InstrumentedOptions;
use chimera_pmem::{
    Environment, FlushChoice, Hardware, HardwareOptions, Instrumented, Medium, Pmem,
    RealEnvironment, Site,
};
use chimera_primitives::PrimitivesError;
use chimera_primitives::tree::{Tree, TreeShape};

use super::backend::Backend;
use super::marked::TREE;
use super::setup::Setup;
use super::shared::Shared;
use super::store::{Create, Footprint, Instrument, Recovered, Reopen, Store, StoreSession};
use crate::error::{BenchError, Result};
use crate::results::rows::Facts;

const PAGE: u64 = 4096;
const SYNC: Site = Site::new("bench.tree.sync");

/// A tree and the memory that it lies in.
pub(crate) struct TreeStore<B: Backend, T: Tree<Shared<B>>> {
    pmem: Shared<B>,
    tree: Arc<RwLock<T>>,
    key_bytes: usize,
}

/// One thread's way to it.
pub(crate) struct TreeSession<B, T> {
    tree: Arc<RwLock<T>>,
    value: Vec<u8>,
    backend: PhantomData<B>,
}

fn read<T>(tree: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    tree.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(tree: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    tree.write().unwrap_or_else(PoisonError::into_inner)
}

fn failed(error: PrimitivesError) -> BenchError {
    BenchError::Tree(error)
}

fn file_of(path: &Path) -> PathBuf {
    path.join(TREE)
}

impl<B: Backend, T: Tree<Shared<B>>> TreeStore<B, T> {
    fn open(
        setup: &Setup,
        instrumented: InstrumentedOptions,
        file: &Arc<dyn File>,
        is_populated: bool,
    ) -> Result<Self> {
        let memory = |source| BenchError::Memory { what: "a tree", source };
        let bytes = file.length().map_err(memory)?;
        let hardware = HardwareOptions {
            reserve_bytes: bytes.next_multiple_of(1 << 21) + (1 << 21),
            flush: if setup.flush { FlushChoice::Auto } else { FlushChoice::Never },
            ..HardwareOptions::default()
        };
        let pmem = Shared::new(B::make(hardware, instrumented).map_err(memory)?);
        pmem.map(0, file, 0, bytes).map_err(memory)?;
        if is_populated {
            pmem.populate(0, bytes).map_err(memory)?;
        }
        let shape = TreeShape::new(setup.key_bytes, setup.value_bytes).map_err(failed)?;
        let tree = T::open(pmem.clone(), shape).map_err(failed)?;
        Ok(Self { pmem, tree: Arc::new(RwLock::new(tree)), key_bytes: setup.key_bytes as usize })
    }

    fn bytes(setup: &Setup, demand: &Demand) -> Result<u64> {
        let shape = TreeShape::new(setup.key_bytes, setup.value_bytes).map_err(failed)?;
        let bytes = T::bytes_for(shape, demand.live).map_err(failed)?;
        Ok(bytes.next_multiple_of(PAGE))
    }

    fn open_file(setup: &Setup, path: &Path, is_populated: bool) -> Result<Self> {
        let path = file_of(path);
        let file = RealEnvironment::new()
            .open(&path, OpenMode::ReadWrite)
            .map_err(BenchError::io("open", &path))?;
        Self::open(setup, setup.timed(), &file, is_populated)
    }
}

impl<B: Backend, T: Tree<Shared<B>> + Send + Sync> Store for TreeStore<B, T> {
    type Session = TreeSession<B, T>;

    fn session(&self) -> TreeSession<B, T> {
        TreeSession { tree: Arc::clone(&self.tree), value: Vec::new(), backend: PhantomData }
    }

    fn for_each(&self, take: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let first = vec![0; self.key_bytes];
        read(&self.tree).scan(&first, usize::MAX, take).map_err(failed)?;
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.pmem.sync(SYNC).map_err(|source| BenchError::Memory { what: "a sync", source })
    }

    fn close(self) -> Result<()> {
        self.sync()
    }

    fn facts(&self) -> Facts {
        let hardware = self.pmem.get().hardware();
        let medium = hardware.medium();
        let is_pmem = matches!(medium, Medium::FsDax | Medium::DevDax);
        Facts {
            engine: T::NAME.to_owned(),
            medium: medium.to_string(),
            durability: if is_pmem { "immediate" } else { "process" }.to_owned(),
            flush_instruction: hardware.flush_instruction().to_string(),
            huge_pages: hardware.uses_huge_pages(),
        }
    }

    fn footprint(&self) -> Footprint {
        let footprint = read(&self.tree).footprint();
        Footprint {
            records: footprint.records,
            dram_bytes: footprint.dram_bytes,
            pmem_bytes: footprint.pmem_bytes,
        }
    }
}

impl<B: Backend, T: Tree<Shared<B>> + Send + Sync> Create for TreeStore<B, T> {
    fn create(setup: &Setup, path: &Path, demand: &Demand) -> Result<Self> {
        let bytes = Self::bytes(setup, demand)?;
        if setup.is_anonymous() {
            let file: Arc<dyn File> = Arc::new(AnonymousFile::new(bytes));
            return Self::open(setup, setup.timed(), &file, true);
        }
        let path = file_of(path);
        let file = RealEnvironment::new()
            .open(&path, OpenMode::CreateNew)
            .map_err(BenchError::io("create", &path))?;
        file.allocate(0, bytes).map_err(BenchError::io("allocate space in", &path))?;
        Self::open(setup, setup.timed(), &file, true)
    }
}

impl<B: Backend, T: Tree<Shared<B>> + Send + Sync> Reopen for TreeStore<B, T> {
    fn reopen(setup: &Setup, path: &Path) -> Result<Self> {
        Self::open_file(setup, path, false)
    }

    /// On one thread, whatever is asked for.
    fn recover(setup: &Setup, path: &Path, _: usize) -> Result<(Self, Recovered)> {
        let started = Instant::now();
        let store = Self::open_file(setup, path, false)?;
        let duration_ns = started.elapsed().as_nanos() as u64;
        let records = store.footprint().records;
        Ok((store, Recovered { records, duration_ns, order: None }))
    }
}

impl<T> Instrument for TreeStore<Instrumented<Hardware>, T>
where
    T: Tree<Shared<Instrumented<Hardware>>> + Send + Sync,
{
    fn create_counting(setup: &Setup, demand: &Demand) -> Result<Self> {
        let file: Arc<dyn File> = Arc::new(AnonymousFile::new(Self::bytes(setup, demand)?));
        Self::open(setup, InstrumentedOptions::counting(setup.profile), &file, true)
    }

    fn counters(&self) -> &Instrumented<Hardware> {
        self.pmem.get()
    }
}

impl<B: Backend, T: Tree<Shared<B>>> TreeSession<B, T> {
    /// Reads a record, changes it and writes it, as one step; what `change` says if it is there.
    fn modify<R>(
        &mut self,
        key: &[u8],
        change: impl FnOnce(&mut Vec<u8>) -> R,
    ) -> Result<Option<R>> {
        let mut tree = write(&self.tree);
        if !tree.get(key, &mut self.value).map_err(failed)? {
            return Ok(None);
        }
        let said = change(&mut self.value);
        tree.update(key, &self.value).map_err(failed)?;
        Ok(Some(said))
    }
}

impl<B: Backend, T: Tree<Shared<B>> + Send + Sync> StoreSession for TreeSession<B, T> {
    #[inline]
    fn get_with<R>(&mut self, key: &[u8], take: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        let is_there = read(&self.tree).get(key, &mut self.value).map_err(failed)?;
        Ok(is_there.then(|| take(&self.value)))
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        write(&self.tree).put(key, value).map_err(failed)
    }

    #[inline]
    fn update(&mut self, key: &[u8], change: impl FnMut(&mut Vec<u8>)) -> Result<bool> {
        self.modify(key, change).map(|said| said.is_some())
    }

    /// Not in place: the record is written anew.
    #[inline]
    fn fetch_add_u64(&mut self, key: &[u8], at: usize, delta: u64) -> Result<Option<u64>> {
        let found = self.modify(key, |value| {
            let word: &mut [u8; 8] = value.get_mut(at..)?.first_chunk_mut()?;
            let old = u64::from_le_bytes(*word);
            *word = old.wrapping_add(delta).to_le_bytes();
            Some(old)
        })?;
        Ok(found.flatten())
    }

    #[inline]
    fn scan(&mut self, start: &[u8], count: usize, mut take: impl FnMut(&[u8])) -> Result<usize> {
        read(&self.tree).scan(start, count, |_, value| take(value)).map_err(failed)
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        write(&self.tree).delete(key).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use chimera_primitives::tree::{CachedFpTree, FpTree, NvTree};

    use super::*;

    type Memory = Shared<Hardware>;

    fn conforms<T: Tree<Memory> + Send + Sync>() {
        let setup = Setup::small().in_memory();
        let demand = Demand { live: 2000, ..Demand::default() };
        let create = TreeStore::<Hardware, T>::create;
        let store = create(&setup, Path::new(""), &demand).expect("made");
        let mut session = store.session();
        let key = |number: u64| [number.to_be_bytes(), (!number).to_be_bytes()].concat();
        for number in 0..1000_u64 {
            assert!(session.put(&key(number), &[number as u8; 200]).expect("puts"), "new");
            assert!(!session.put(&key(number), &[number as u8; 200]).expect("puts"), "there");
        }
        let added = session.fetch_add_u64(&key(7), 8, 1).expect("adds");
        assert_eq!(added, Some(0x0707_0707_0707_0707));
        assert!(session.update(&key(7), |value| value[0] = 9).expect("updates"));
        let is_right = |value: &[u8]| value[0] == 9 && value[8] == 8 && value[16..] == [7; 184];
        assert_eq!(session.get_with(&key(7), is_right).expect("gets"), Some(true));
        assert!(session.delete(&key(8)).expect("deletes"));
        assert!(!session.delete(&key(8)).expect("deletes"));
        assert!(!session.update(&key(8), Vec::clear).expect("updates"));
        assert_eq!(session.fetch_add_u64(&key(8), 0, 1).expect("adds"), None);
        assert_eq!(session.get_with(&key(8), <[u8]>::to_vec).expect("gets"), None);
        let mut first = Vec::new();
        let count = session.scan(&key(6), 3, |value| first.push(value[1])).expect("scans");
        assert_eq!((count, first), (3, vec![6, 7, 9]));
        let mut all = BTreeMap::new();
        let take = |key: &[u8], value: &[u8]| assert!(all.insert(key.to_vec(), value[1]).is_none());
        store.for_each(take).expect("lists");
        assert_eq!((all.len(), store.footprint().records), (999, 999));
        assert_eq!(store.facts().engine, T::NAME);
        store.close().expect("closes");
    }

    #[test]
    fn trees_conform() {
        conforms::<FpTree<Memory>>();
        conforms::<CachedFpTree<Memory>>();
        conforms::<NvTree<Memory>>();
    }
}
