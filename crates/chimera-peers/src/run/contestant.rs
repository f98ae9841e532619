//! [`Contestant`]: one store in one repetition.

use crate::child::{Child, LimitedBy};
use crate::disk::{bytes_on_disk, write_back};
use crate::job::{Job, KEY_BYTES, StoreKind};
use crate::protocol::{PeerFacts, Ran, Reply, Request, Work};
use crate::results::{Memory, Needs};

/// One store in one repetition, from an empty one to its end. Once something fails, nothing more is asked of it.
pub(super) struct Contestant {
    job: Job,
    memory_limit: Option<u64>,
    child: Option<Child>,
    facts: PeerFacts,
    limited_by: Option<LimitedBy>,
    needs: Needs,
    /// The most memory of processes that have ended.
    peak: Memory,
    /// Records that are there.
    loaded: u64,
    failed: Option<(String, String)>,
}

impl Contestant {
    /// Makes an empty store.
    pub(super) fn start(job: Job, memory_limit: Option<u64>) -> Self {
        let mut contestant = Self {
            job,
            memory_limit,
            child: None,
            facts: PeerFacts::default(),
            limited_by: None,
            needs: Needs::default(),
            peak: Memory::default(),
            loaded: 0,
            failed: None,
        };
        contestant.open("creation");
        contestant
    }

    pub(super) fn store(&self) -> StoreKind {
        self.job.store
    }

    pub(super) fn facts(&self) -> PeerFacts {
        self.facts.clone()
    }

    pub(super) fn limited_by(&self) -> Option<String> {
        self.limited_by.map(|by| {
            match by {
                LimitedBy::ControlGroup => "control group",
                LimitedBy::DataLimit => "RLIMIT_DATA",
            }
            .to_owned()
        })
    }

    /// What it needed, and during what it failed with which message.
    pub(super) fn finish(mut self) -> (Needs, Option<(String, String)>) {
        self.end_child();
        (Needs { peak: self.peak, ..self.needs }, self.failed)
    }

    /// Does some work.
    pub(super) fn run(&mut self, work: Work, operations: u64, stream: u64) -> Option<Ran> {
        let request = Request::Run { work, operations, stream };
        let Reply::Ran(ran) = self.ask(&request, &work.to_string())? else {
            return self.fail(&work.to_string(), "another answer was expected".to_owned());
        };
        match work {
            Work::Fill => {
                self.loaded = operations;
                let record = (KEY_BYTES + self.job.value_bytes) as u64;
                self.needs.live_bytes = operations * record;
                self.needs.filled = self.child.as_mut().map(Child::memory).unwrap_or_default();
                self.needs.filled_disk_bytes = self.disk_bytes()?;
            }
            Work::Delete => {
                self.loaded -= operations;
                self.needs.halved_disk_bytes = self.disk_bytes()?;
            }
            _ => {}
        }
        Some(ran)
    }

    /// Gives back space.
    pub(super) fn compact(&mut self) {
        if let Some(Reply::Done { elapsed_ns }) = self.ask(&Request::Compact, "compaction") {
            self.needs.compaction_ns = elapsed_ns;
            self.needs.compacted_disk_bytes = self.disk_bytes().unwrap_or_default();
        }
    }

    /// Closes and opens the store; overwrites some records, kills the process and opens the store; checks all records.
    pub(super) fn reopen(&mut self, operations: u64, stream: u64) {
        if self.ask(&Request::Close, "close").is_none() {
            return;
        }
        self.end_child();
        let Some((open_ns, first_value_ns)) = self.open("opening after a clean close") else {
            return;
        };
        (self.needs.clean_open_ns, self.needs.clean_first_value_ns) = (open_ns, first_value_ns);
        if self.run(Work::Overwrite, operations, stream).is_none() {
            return;
        }
        if let Some(child) = &mut self.child {
            child.kill();
        }
        self.end_child();
        let Some((open_ns, first_value_ns)) = self.open("opening after a kill") else { return };
        (self.needs.killed_open_ns, self.needs.killed_first_value_ns) = (open_ns, first_value_ns);
        if let Some(Reply::Verified { records }) = self.ask(&Request::Verify, "verification") {
            self.needs.verified_records = records;
        }
        self.ask(&Request::Close, "close");
    }

    /// Starts a process and opens the store in it: the times to the open store and to the first value.
    fn open(&mut self, during: &str) -> Option<(u64, u64)> {
        if self.failed.is_some() {
            return None;
        }
        let child = match Child::start(&self.job, self.memory_limit) {
            Ok(child) => child,
            Err(error) => return self.fail(during, error.to_string()),
        };
        self.limited_by = child.limited_by();
        self.child = Some(child);
        match self.ask(&Request::Open { loaded: self.loaded }, during)? {
            Reply::Opened { open_ns, first_value_ns, facts } => {
                self.facts = facts;
                Some((open_ns, first_value_ns))
            }
            _ => self.fail(during, "another answer was expected".to_owned()),
        }
    }

    /// Has something done, and what was written to its files with it: neither the next store nor the count of blocks is to
    /// meet what the system put off.
    fn ask(&mut self, request: &Request, during: &str) -> Option<Reply> {
        match self.child.as_mut()?.ask(request) {
            Ok(reply) => match write_back(&self.job.path) {
                Ok(()) => Some(reply),
                Err(error) => self.fail(during, error.to_string()),
            },
            Err(message) => self.fail(during, message),
        }
    }

    fn fail<T>(&mut self, during: &str, message: String) -> Option<T> {
        self.failed.get_or_insert_with(|| (during.to_owned(), message));
        self.end_child();
        None
    }

    /// Ends the process, whose store was closed, or is not needed any more.
    fn end_child(&mut self) {
        if let Some(child) = self.child.take() {
            self.peak = self.peak.most(child.peak());
        }
    }

    fn disk_bytes(&mut self) -> Option<u64> {
        match bytes_on_disk(&self.job.path) {
            Ok(bytes) => Some(bytes),
            Err(error) => self.fail("looking at its files", error.to_string()),
        }
    }
}
