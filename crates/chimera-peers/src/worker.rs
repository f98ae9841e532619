//! The process of one store: reads requests on standard input and replies on standard output.

use std::io::{self, BufRead, Write};
use std::time::Instant;

use chimera_bench::measure::{
    Action, Data, Extent, Ledger, Measure, Phase, StoreSession, run, verify,
};
use chimera_bench::workload::{Distribution, Mix};
use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};

use crate::job::{Job, KEY_BYTES, StoreKind};
use crate::protocol::{GROUP, PeerFacts, Ran, Reply, Request, Work};
use crate::stores::{Chimera, Fjall, Lmdb, Peer, Redb, RocksDb};
use crate::{BenchError, Result};

/// The argument that makes the command the process of a store.
pub const WORKER: &str = "worker";

/// Serves one store until it is closed, or nobody asks any more.
///
/// # Errors
/// When the requests are none, or the replies cannot be written. What the store says is a reply.
pub fn serve() -> io::Result<()> {
    // A process that waits stopped would never see that nobody asks any more.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let mut lines = io::stdin().lock().lines();
    let Some(first) = lines.next() else { return Ok(()) };
    let job: Job = serde_json::from_str(&first?)?;
    if let Some(bytes) = job.data_limit_bytes {
        setrlimit(Resource::Data, Rlimit { current: Some(bytes), maximum: Some(bytes) })?;
    }
    let requests = lines.map(|line| Ok(serde_json::from_str(&line?)?));
    let mut out = io::stdout().lock();
    let reply = |reply: &Reply| {
        let mut text = serde_json::to_string(reply)?;
        text.push('\n');
        out.write_all(text.as_bytes())?;
        out.flush()
    };
    match job.store {
        StoreKind::Rocksdb => Served::<RocksDb>::new(job).serve(requests, reply),
        StoreKind::Lmdb => Served::<Lmdb>::new(job).serve(requests, reply),
        StoreKind::Redb => Served::<Redb>::new(job).serve(requests, reply),
        StoreKind::Fjall => Served::<Fjall>::new(job).serve(requests, reply),
        StoreKind::Viper
        | StoreKind::Hikv
        | StoreKind::Chameleon
        | StoreKind::ViperOrdered
        | StoreKind::HikvOrdered
        | StoreKind::ChameleonOrdered => Served::<Chimera>::new(job).serve(requests, reply),
    }
}

/// A store, and what is known of it.
struct Served<S> {
    job: Job,
    data: Data,
    ledger: Ledger,
    store: Option<S>,
}

impl<S: Peer> Served<S> {
    fn new(job: Job) -> Self {
        let data = Data::fixed(KEY_BYTES, job.value_bytes, job.seed, S::PUTS_KNOW);
        Self { job, data, ledger: Ledger::default(), store: None }
    }

    fn serve(
        mut self,
        requests: impl Iterator<Item = io::Result<Request>>,
        mut reply: impl FnMut(&Reply) -> io::Result<()>,
    ) -> io::Result<()> {
        for request in requests {
            let request = request?;
            let done = self.answer(&request);
            reply(&done.unwrap_or_else(|error| Reply::Failed { message: error.to_string() }))?;
            if request == Request::Close {
                break;
            }
        }
        Ok(())
    }

    fn answer(&mut self, request: &Request) -> Result<Reply> {
        match *request {
            Request::Open { loaded } => self.open(loaded),
            Request::Run { work, operations, stream } => self.run(work, operations, stream),
            Request::Compact => {
                let begun = Instant::now();
                let store = self.take()?.compact(&self.job)?;
                store.sync()?;
                self.store = Some(store);
                Ok(Reply::Done { elapsed_ns: nanoseconds(begun) })
            }
            Request::Verify => {
                let records = verify(self.store()?, &self.data, &self.ledger, self.job.threads)?;
                Ok(Reply::Verified { records })
            }
            Request::Close => {
                let begun = Instant::now();
                self.take()?.close()?;
                Ok(Reply::Done { elapsed_ns: nanoseconds(begun) })
            }
        }
    }

    fn store(&self) -> Result<&S> {
        self.store.as_ref().ok_or_else(not_open)
    }

    fn take(&mut self) -> Result<S> {
        self.store.take().ok_or_else(not_open)
    }

    fn open(&mut self, loaded: u64) -> Result<Reply> {
        let begun = Instant::now();
        let store = S::open(&self.job)?;
        let open_ns = nanoseconds(begun);
        if loaded > 0 {
            let mut key = vec![0; KEY_BYTES];
            self.data.keys.write(loaded / 2, &mut key);
            let value = store.session().get_with(&key, <[u8]>::len)?;
            if value != Some(self.job.value_bytes) {
                let what = format!("the first record asked for has a value of {value:?} bytes");
                return Err(BenchError::Arguments(what));
            }
        }
        let first_value_ns = nanoseconds(begun);
        self.ledger = Ledger::of(loaded);
        self.store = Some(store);
        let facts = PeerFacts {
            version: S::version(),
            configuration: S::configuration(&self.job),
            batch: S::BATCH.to_owned(),
            guarantee: Some(S::guarantee(self.job.durability)),
        };
        Ok(Reply::Opened { open_ns, first_value_ns, facts })
    }

    fn run(&mut self, work: Work, operations: u64, stream: u64) -> Result<Reply> {
        let store = self.store.as_ref().ok_or_else(not_open)?;
        let action = match work {
            Work::Fill => Action::Insert,
            Work::Get => Action::Get,
            Work::Overwrite => Action::Overwrite,
            Work::Mixed => {
                let mix = Mix { get: 50, overwrite: 50, ..Mix::default() };
                Action::Mix(mix, Distribution::Uniform)
            }
            Work::Scan => Action::Scan(GROUP),
            Work::Batch => Action::Batch(GROUP),
            Work::Delete => {
                self.ledger.unsettle(operations, self.job.threads);
                Action::Delete
            }
        };
        let phase = Phase::new("", action);
        let threads = self.job.threads;
        let extent = Extent { threads, operations, duration: None, measure: Measure::Latency };
        let measured = run(store, &self.data, &mut self.ledger, &phase, extent, stream)?;
        let begun = Instant::now();
        store.sync()?;
        let sync_ns = nanoseconds(begun);
        if work == Work::Fill {
            self.ledger.settle();
        }
        let at = |percentile| {
            let latencies = measured.histogram.as_ref();
            latencies.map_or(0, |latencies| latencies.value_at_percentile(percentile))
        };
        Ok(Reply::Ran(Ran {
            operations: measured.operations,
            elapsed_ns: measured.elapsed.as_nanos() as u64 + sync_ns,
            sync_ns,
            p50_ns: at(50.0),
            p99_ns: at(99.0),
            p999_ns: at(99.9),
            max_ns: at(100.0),
        }))
    }
}

fn nanoseconds(since: Instant) -> u64 {
    since.elapsed().as_nanos() as u64
}

fn not_open() -> BenchError {
    BenchError::Arguments("the store is not open".to_owned())
}
