//! [`Campaign`]: all cuts one after the other, each verified by the next start.

use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use chimera::EngineKind;
use indicatif::ProgressBar;

use super::image::{self, Mode};
use super::machine::{Machine, Nvdimm, Parts, Running, Waited};
use super::plan::{Access, Exact, Log, Message, Mount, Plan, THREADS, Target, Verified};
use super::workload::mix;

/// Bytes of each NVDIMM.
const NVDIMM_BYTES: u64 = 256 << 20;
/// The devices of the guest, and where its stores lie.
pub(crate) const BLOCK_DEVICE: &str = "/dev/pmem0";
const CHARACTER_DEVICE: &str = "/dev/dax1.0";
const PATHS: [&str; 2] = ["/mnt/store", CHARACTER_DEVICE];
/// Every so many cuts both stores begin anew, so that creation is cut, too.
const FRESH_EVERY: u64 = 7;
/// Latest random cut after writing has begun.
const WRITING_MS_MAX: u64 = 1500;
/// Latest start of an exact cut, in operations of its thread, and latest step in its operation.
const EXACT_OPERATION_MAX: u64 = 400;
const EXACT_STEP_MAX: u64 = 24;

/// Repeatable chance.
#[derive(Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `most`.
    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0) % most.max(1)
    }
}

/// When the power is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// At a random moment while stores are created or recovered.
    Opening,
    /// At a random moment while threads write.
    Writing,
    /// At a step.
    Exact,
    /// When each thread has acknowledged so many operations.
    Acknowledged(u64),
    /// When everything is done and closed.
    Done,
}

/// What was found so far.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) starts: u64,
    /// Cuts at random moments.
    pub(crate) cuts: u64,
    pub(crate) acknowledged: u64,
    pub(crate) verified_records: u64,
    pub(crate) duplicates_cleared: u64,
    /// Acknowledged writes that are lost, wrong values, damage.
    pub(crate) violations: Vec<String>,
    /// What went wrong with the machine itself, or was not as expected.
    pub(crate) problems: Vec<String>,
    /// Where exact cuts hit.
    pub(crate) exact_steps: Vec<String>,
}

impl Findings {
    pub(crate) fn has_violations(&self) -> bool {
        !self.violations.is_empty()
    }
}

/// Two stores and the machine they lie in.
pub(crate) struct Campaign {
    pub(crate) machine: Machine,
    pub(crate) chance: Chance,
    pub(crate) found: Findings,
    pub(crate) progress: ProgressBar,
    /// Operations that each thread of each store has acknowledged.
    pub(crate) done: [[u64; THREADS]; 2],
    engine: EngineKind,
    seed: u64,
    generation: u64,
    /// How long opening took last.
    opening: Duration,
}

impl Campaign {
    pub(crate) fn new(
        machine: Machine,
        engine: EngineKind,
        seed: u64,
        progress: ProgressBar,
    ) -> Self {
        Self {
            machine,
            chance: Chance::new(seed),
            found: Findings::default(),
            progress,
            done: Default::default(),
            engine,
            seed,
            generation: 0,
            opening: Duration::from_millis(500),
        }
    }

    /// The two NVDIMMs, as the machine has them.
    pub(crate) fn parts(&self) -> Parts {
        let nvdimm = |path| Nvdimm { path, bytes: NVDIMM_BYTES, unarmed: false };
        Parts {
            nvdimms: self.images().map(nvdimm).to_vec(),
            virtio_pmem: None,
            without: "",
            caches_persist: false,
        }
    }

    pub(crate) fn images(&self) -> [PathBuf; 2] {
        ["fsdax", "devdax"].map(|name| self.machine.directory.join(name))
    }

    /// Makes both NVDIMMs anew.
    pub(crate) fn begin_anew(&mut self) -> io::Result<()> {
        let [file_system, device] = self.images();
        self.generation += 1;
        let mut id = || u128::from(self.chance.below(u64::MAX)) << 64 | 1;
        image::make(&file_system, NVDIMM_BYTES, Mode::FsDax, id())?;
        image::make(&device, NVDIMM_BYTES, Mode::DevDax, id())?;
        let mkfs = &self.machine.tools.mkfs;
        image::make_ext4(mkfs, &file_system, NVDIMM_BYTES, image::DATA_AT)?;
        self.done = Default::default();
        Ok(())
    }

    /// `random` cuts at random moments and `exact` ones at steps; none after the first violation, so
    /// that the stores stay as they were found.
    ///
    /// # Errors
    /// When the machine cannot be run.
    pub(crate) fn cuts(&mut self, random: u64, exact: u64) -> io::Result<()> {
        for number in 0..random {
            if self.found.has_violations() {
                return Ok(());
            }
            let is_fresh = number % FRESH_EVERY == 0;
            if is_fresh {
                self.begin_anew()?;
            }
            let cut = if is_fresh || number % 4 == 3 { Cut::Opening } else { Cut::Writing };
            self.progress.set_message(format!("random cut {} of {random}", number + 1));
            self.start(&self.parts(), &self.plan(None), cut)?;
            self.found.cuts += 1;
            self.progress.inc(1);
        }
        if random == 0 {
            self.begin_anew()?;
        }
        for number in 0..exact {
            if self.found.has_violations() {
                return Ok(());
            }
            self.progress.set_message(format!("exact cut {} of {exact}", number + 1));
            // Each store in turn.
            let thread = number as usize % 2 * THREADS + self.chance.below(THREADS as u64) as usize;
            let operation = 1 + self.chance.below(EXACT_OPERATION_MAX);
            let step = self.chance.below(EXACT_STEP_MAX);
            let plan = self.plan(Some(Exact { thread, operation, step }));
            self.start(&self.parts(), &plan, Cut::Exact)?;
            self.progress.inc(1);
        }
        Ok(())
    }

    /// Verifies what the last cut left, and closes both stores in order.
    ///
    /// # Errors
    /// When the machine cannot be run.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.progress.set_message("last verification");
        let plan = Plan { operations: Some(0), ..self.plan(None) };
        self.start(&self.parts(), &plan, Cut::Done)?;
        self.progress.inc(1);
        Ok(())
    }

    /// The engine of the stores.
    pub(crate) fn engine(&self) -> EngineKind {
        self.engine
    }

    fn can_order(&self) -> bool {
        self.engine.capabilities().ordered
    }

    /// What both stores are to do in the next start.
    pub(crate) fn plan(&self, exact: Option<Exact>) -> Plan {
        let target = |store: usize| Target {
            path: PATHS[store].to_owned(),
            done: self.done[store],
            first_thread: store * THREADS,
            access: Access::Write,
            durability: "auto".to_owned(),
            // One of the two, each in turn.
            ordered: self.can_order() && (self.found.starts + store as u64).is_multiple_of(2),
        };
        Plan {
            seed: mix(self.seed.wrapping_add(self.generation)),
            engine: self.engine.to_string(),
            stores: (0..PATHS.len()).map(target).collect(),
            devices: vec![BLOCK_DEVICE.to_owned(), CHARACTER_DEVICE.to_owned()],
            mount: Some(Mount {
                device: BLOCK_DEVICE.to_owned(),
                options: "dax=always".to_owned(),
            }),
            operations: None,
            exact,
            doctor: false,
            commands: Vec::new(),
        }
    }

    /// One start, from power on to the cut; what is wrong goes into the findings.
    ///
    /// # Errors
    /// When the machine cannot be run.
    pub(crate) fn start(&mut self, parts: &Parts, plan: &Plan, cut: Cut) -> io::Result<Log> {
        let log = self.start_only(parts, plan, cut)?;
        self.take_in(&log, plan);
        Ok(log)
    }

    /// As [`start`](Self::start); whether what the guest says is wrong is for the caller to say.
    ///
    /// # Errors
    /// When the machine cannot be run.
    pub(crate) fn start_only(&mut self, parts: &Parts, plan: &Plan, cut: Cut) -> io::Result<Log> {
        self.found.starts += 1;
        let mut running = self.machine.start(parts, plan)?;
        let waited = self.wait_for_cut(&mut running, plan, cut)?;
        let (console, last_heard) = (running.console(), running.last_heard());
        let log = running.cut()?;
        let says_wrong = log.messages.iter().any(|message| matches!(message, Message::Problem(_)));
        let what = match waited {
            Waited::Come => None,
            Waited::Ended => Some("ended by itself".to_owned()),
            Waited::TimeIsUp => Some("was not waited for".to_owned()),
            Waited::Stuck(why) => Some(format!("did not go on: {why}")),
        };
        if let Some(what) = what.filter(|_| !says_wrong) {
            self.found.problems.push(format!("the machine {what}; {last_heard}: {console}"));
        }
        Ok(log)
    }

    /// Waits for the moment of the cut.
    fn wait_for_cut(&mut self, running: &mut Running, plan: &Plan, cut: Cut) -> io::Result<Waited> {
        let is_opening = |log: &Log| log.messages.contains(&Message::Opening);
        let stores = plan.stores.len();
        let is_done = |log: &Log| log.messages.contains(&Message::Done);
        let is_verified = |log: &Log| log.verified().count() == stores || is_done(log);
        let waited = running.wait(is_opening)?;
        if waited != Waited::Come {
            return Ok(waited);
        }
        let start = Instant::now();
        if cut == Cut::Opening {
            let moment = self.chance.below(self.opening.as_micros() as u64);
            thread::sleep(Duration::from_micros(moment));
            return Ok(Waited::Come);
        }
        let waited = running.wait(is_verified)?;
        self.opening = start.elapsed();
        if waited != Waited::Come {
            return Ok(waited);
        }
        match cut {
            Cut::Exact => running.wait(|log| log.wants_cut),
            Cut::Done => running.wait(is_done),
            Cut::Acknowledged(least) => {
                let threads = plan.stores.iter().map(|store| store.first_thread);
                let threads: Vec<_> = threads.flat_map(|first| first..first + THREADS).collect();
                running.wait(|log| threads.iter().all(|thread| log.acknowledged[*thread] >= least))
            }
            Cut::Opening | Cut::Writing => {
                // With a look at the guest: it may say that something is wrong.
                let moment = Duration::from_millis(self.chance.below(WRITING_MS_MAX));
                let waited = running.wait_at_most(moment, is_done)?;
                Ok(if waited == Waited::TimeIsUp { Waited::Come } else { waited })
            }
        }
    }

    /// Takes in what the guest has said.
    fn take_in(&mut self, log: &Log, plan: &Plan) {
        for message in &log.messages {
            match message {
                Message::Problem(text) => self.found.violations.push(text.clone()),
                Message::Cut { thread, operation, step } => {
                    let acknowledged = log.acknowledged.get(*thread).copied().unwrap_or(0);
                    let store = plan.stores.get(thread / THREADS).map_or("?", |store| &store.path);
                    self.found.exact_steps.push(format!("{store}: before {step}"));
                    let sites = chimera::sites(self.engine);
                    if !sites.iter().any(|site| step.ends_with(&format!(" at {}", site.name()))) {
                        let what = format!("`{step}` is no step of the engine {}", self.engine);
                        self.found.problems.push(what);
                    }
                    if acknowledged != *operation {
                        self.found.problems.push(format!(
                            "thread {thread} was cut in operation {operation} and had acknowledged \
                             {acknowledged}: acknowledgements are not exact"
                        ));
                    }
                }
                _ => {}
            }
        }
        for verified in log.verified() {
            self.found.verified_records += verified.records;
            self.found.duplicates_cleared += verified.duplicates_cleared;
            let wrong = verified.problems.iter().map(|text| format!("`{}`: {text}", verified.path));
            self.found.violations.extend(wrong);
            self.check_medium(verified);
        }
        self.found.acknowledged += log.acknowledged.iter().sum::<u64>();
        let garbled = log.garbled.iter().map(|text| format!("the guest said `{text}`"));
        self.found.problems.extend(garbled);
        for (store, done) in self.done.iter_mut().enumerate() {
            if let Some(verified) = log.verified().find(|verified| verified.path == PATHS[store]) {
                *done = verified.done;
            }
            for (slot, done) in done.iter_mut().enumerate() {
                *done += log.acknowledged.get(store * THREADS + slot).unwrap_or(&0);
            }
        }
    }

    /// What lies on an NVDIMM must be known for what it is.
    fn check_medium(&mut self, verified: &Verified) {
        let Verified { path, medium, durability, .. } = verified;
        let expected = match path.as_str() {
            path if path == PATHS[0] => "fsdax",
            path if path.starts_with("/dev/") => "devdax",
            _ => return,
        };
        if medium != expected || durability != "immediate" {
            let text = format!("`{path}` is said to be on {medium}, with {durability} durability");
            self.found.problems.push(text);
        }
    }
}
