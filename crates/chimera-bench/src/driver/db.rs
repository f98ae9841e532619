//! [`Db`] as a [`Store`].

use std::path::Path;
use std::time::Instant;

use chimera::baselines::Consistency;
use chimera::{Batch, Db, Demand, EngineStats, HikvStats, Session};
use chimera_pmem::instrumented::InstrumentedOptions;
use chimera_pmem::{Hardware, Instrumented, Pmem};

use super::backend::{Backend, open};
use super::engine::EngineChoice;
use super::setup::{OrderChoice, Setup, name_of};
use super::store::{
    Create, Footprint, Instrument, OrderMade, Recovered, Reopen, Store, StoreSession,
};
use crate::error::Result;
use crate::results::rows::Facts;

impl<B: Backend> Store for Db<B> {
    type Session = Session<B>;

    fn session(&self) -> Session<B> {
        Db::session(self)
    }

    fn for_each(&self, mut take: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let all = |key: &[u8], value: &[u8]| {
            take(key, value);
            true
        };
        Ok(Db::for_each(self, all)?)
    }

    fn sync(&self) -> Result<()> {
        Ok(Db::sync(self)?)
    }

    fn close(self) -> Result<()> {
        Ok(Db::close(self)?)
    }

    fn facts(&self) -> Facts {
        let (hardware, stats) = (self.pmem().hardware(), self.stats());
        let order = stats.order.as_ref().map_or(OrderChoice::None, |order| {
            match (order.queues, order.trees) {
                (0, _) => OrderChoice::Synchronous,
                (_, 2..) => OrderChoice::Partitioned,
                _ => OrderChoice::Asynchronous,
            }
        });
        let has_log = |hikv: &HikvStats| hikv.consistency == Consistency::WriteAheadLog;
        let engine = match &stats.details {
            EngineStats::Hikv(hikv) if has_log(hikv) => EngineChoice::HikvWal,
            _ => EngineChoice::Store(stats.engine),
        };
        Facts {
            engine: name_of(&engine.to_string(), stats.verify_reads, order),
            medium: hardware.medium().to_string(),
            durability: self.effective_durability().to_string(),
            flush_instruction: hardware.flush_instruction().to_string(),
            huge_pages: hardware.uses_huge_pages(),
        }
    }

    fn footprint(&self) -> Footprint {
        let stats = self.stats();
        Footprint {
            records: stats.records,
            dram_bytes: stats.dram_index_bytes + stats.dram_table_bytes,
            pmem_bytes: stats.pmem_bytes,
        }
    }
}

impl<B: Backend> Create for Db<B> {
    fn create(setup: &Setup, path: &Path, demand: &Demand) -> Result<Self> {
        open(path, &setup.options(demand)?, setup.timed(), setup.seed)
    }
}

impl<B: Backend> Reopen for Db<B> {
    fn reopen(setup: &Setup, path: &Path) -> Result<Self> {
        open(path, &setup.options_to_open().create(false), setup.timed(), setup.seed)
    }

    fn recover(setup: &Setup, path: &Path, threads: usize) -> Result<(Self, Recovered)> {
        // A background task would take a core from the recovery.
        let options = setup.options_to_open().create(false).populate_ahead_bytes(0);
        let options = options.recovery_threads(threads);
        let db = open::<B>(path, &options, setup.timed(), setup.seed)?;
        let recovery = db.stats().recovery;
        let (records, duration_ns) = (recovery.records, recovery.duration_ns);
        let mut order = None;
        if setup.order != OrderChoice::None {
            let started = Instant::now();
            db.session().scan_with(.., 1, |_, _| true)?;
            let duration_ns = duration_ns + started.elapsed().as_nanos() as u64;
            let is_loaded = db.stats().order.is_some_and(|order| order.is_loaded);
            order = Some(OrderMade { is_loaded, duration_ns });
        }
        let recovered = Recovered { records, duration_ns, order };
        Ok((db, recovered))
    }
}

impl Instrument for Db<Instrumented<Hardware>> {
    fn create_counting(setup: &Setup, demand: &Demand) -> Result<Self> {
        let options = setup.options(demand)?.populate_ahead_bytes(0);
        open(Path::new(""), &options, InstrumentedOptions::counting(setup.profile), setup.seed)
    }

    fn counters(&self) -> &Instrumented<Hardware> {
        self.pmem()
    }
}

impl<P: Pmem> StoreSession for Session<P> {
    #[inline(always)]
    fn get_with<T>(&mut self, key: &[u8], take: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        Ok(Session::get_with(self, key, take)?)
    }

    #[inline(always)]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        Ok(Session::put(self, key, value)?)
    }

    fn put_batch(&mut self, records: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
        Session::multi_put(self, records)?;
        Ok(())
    }

    fn write_atomically(&mut self, records: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
        let mut batch = Batch::new();
        for (key, value) in records {
            batch.put(key, value);
        }
        Ok(Session::write(self, &batch)?)
    }

    #[inline(always)]
    fn update(&mut self, key: &[u8], change: impl FnMut(&mut Vec<u8>)) -> Result<bool> {
        Ok(Session::update(self, key, change)?)
    }

    #[inline(always)]
    fn fetch_add_u64(&mut self, key: &[u8], at: usize, delta: u64) -> Result<Option<u64>> {
        Ok(Session::fetch_add_u64(self, key, at, delta)?)
    }

    #[inline(always)]
    fn scan(&mut self, start: &[u8], count: usize, mut take: impl FnMut(&[u8])) -> Result<usize> {
        let values = |_: &[u8], value: &[u8]| {
            take(value);
            true
        };
        Ok(Session::scan_with(self, start.., count, values)?)
    }

    #[inline(always)]
    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        Ok(Session::delete(self, key)?)
    }
}
