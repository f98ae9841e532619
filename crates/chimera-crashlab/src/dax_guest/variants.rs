//! Variants of the machine: caches that persist, flush instructions that are missing, a read-only
//! region, media that are not persistent memory.

use std::fs;
use std::io;

use chimera::EngineKind;
use serde_json::Value;

use super::campaign::{BLOCK_DEVICE, Campaign, Cut};
use super::image::{self, Mode};
use super::machine::{Nvdimm, Parts};
use super::plan::{Access, Log, Message, Mount, Plan, THREADS, Target};

/// Bytes of a virtio-pmem device.
const VIRTIO_BYTES: u64 = 128 << 20;
/// Bytes of a blank device.
const BLANK_BYTES: u64 = 64 << 20;
/// Operations of each thread where power is not cut.
const OPERATIONS: u64 = 300;
/// Operations that each thread has acknowledged before the power of the control is cut.
const CONTROL_OPERATIONS: u64 = 20;
/// Starts that the variants take.
pub(crate) const STARTS: u64 = 11;

impl Campaign {
    /// Runs all variants, on the stores as they are; what each has shown.
    ///
    /// # Errors
    /// When the machine cannot be run.
    pub(crate) fn variants(&mut self) -> io::Result<Vec<String>> {
        let parts = self.parts();
        let mut shown = Vec::new();
        shown.push(self.flushing("mem-ctrl", &parts, "clwb")?);
        let eadr = Parts { caches_persist: true, ..parts.clone() };
        shown.push(self.flushing("eadr", &eadr, "none")?);
        let parts = Parts { without: ",clwb=off", ..parts };
        shown.push(self.flushing("no-clwb", &parts, "clflushopt")?);
        let parts = Parts { without: ",clwb=off,clflushopt=off", ..parts };
        shown.push(self.flushing("no-clwb-no-clflushopt", &parts, "clflush")?);
        self.finish()?;
        shown.push(self.read_only_region()?);
        shown.push(self.command_line()?);
        shown.push(self.without_dax()?);
        shown.push(self.virtio_pmem()?);
        shown.push(self.control()?);
        shown.push(self.journaled()?);
        Ok(shown)
    }

    fn expect(&mut self, variant: &str, is_so: bool, what: &str) {
        if !is_so {
            self.found.problems.push(format!("variant {variant}: {what}"));
        }
    }

    /// A machine in which stores must flush with one instruction, cut while it writes.
    fn flushing(&mut self, name: &str, parts: &Parts, flush: &str) -> io::Result<String> {
        self.progress.set_message(format!("variant {name}"));
        let plan = Plan { doctor: true, ..self.plan(None) };
        let stores = plan.stores.len();
        let log = self.start(parts, &plan, Cut::Writing)?;
        let used: Vec<_> = log.verified().map(|store| store.flush_instruction.clone()).collect();
        self.expect(name, used == vec![flush; stores], &format!("stores flush with {used:?}"));
        let doctors = doctors(&log);
        let agrees = |report: &&Value| {
            let says = report["probe"]["flush_instruction"].as_str().unwrap_or_default();
            says.replace('_', "") == flush
                && report["machine"]["eadr"] == parts.caches_persist
                && report["durability"]["effective"] == "immediate"
        };
        let agree = doctors.len() == stores && doctors.iter().all(agrees);
        self.expect(name, agree, &format!("`chimera doctor` says {doctors:?}"));
        self.progress.inc(1);
        Ok(format!("{name}: flushes with {flush}, cut and verified"))
    }

    /// A region that says that it is read-only, and would take what is written all the same.
    fn read_only_region(&mut self) -> io::Result<String> {
        let name = "read-only-region";
        self.progress.set_message(format!("variant {name}"));
        let [_, image] = self.images();
        let before = fs::read(&image)?;
        let mut parts = self.parts();
        parts.nvdimms.remove(0);
        parts.nvdimms[0].unarmed = true;
        let mut plan = self.plan(None);
        let mut target = plan.stores.remove(1);
        "/dev/dax0.0".clone_into(&mut target.path);
        target.access = Access::RefusedThenRead;
        let plan = Plan {
            devices: vec![target.path.clone()],
            mount: None,
            stores: vec![target],
            operations: Some(0),
            doctor: true,
            ..plan
        };
        let log = self.start(&parts, &plan, Cut::Done)?;
        let refused = log.messages.iter().any(|message| {
            matches!(message, Message::Refused { error, .. } if error.contains("region is read-only"))
        });
        self.expect(name, refused, &format!("not refused for writing: {:?}", log.messages));
        self.expect(name, log.verified().count() == 1, "not readable");
        let warned = |report: &&Value| {
            report["probe"]["problem"].as_str().is_some_and(|text| text.contains("read-only"))
        };
        let doctors = doctors(&log);
        self.expect(
            name,
            doctors.iter().any(warned),
            &format!("`chimera doctor` says {doctors:?}"),
        );
        self.expect(name, fs::read(&image)? == before, "something was written");
        self.progress.inc(1);
        Ok(format!("{name}: refused for writing, read and verified"))
    }

    /// The command `chimera` on a blank device.
    fn command_line(&mut self) -> io::Result<String> {
        let name = "command-line";
        self.progress.set_message(format!("variant {name}"));
        let path = self.machine.directory.join("blank");
        image::make(&path, BLANK_BYTES, Mode::DevDax, 1)?;
        let nvdimms = vec![Nvdimm { path, bytes: BLANK_BYTES, unarmed: false }];
        let parts = Parts { nvdimms, ..self.parts() };
        let (device, engine) = ("/dev/dax0.0", self.engine());
        // The command has no engines that are only compared with others.
        let engine = if engine.is_hidden() { EngineKind::default() } else { engine }.name();
        let call = |words: &[&str]| {
            let words = words.iter().copied().chain(["--path", device]);
            words.map(str::to_owned).collect::<Vec<_>>()
        };
        let calls = [
            (call(&["put", "--engine", engine, "greeting", "hello"]), "created store"),
            (call(&["put", "greeting", "world"]), "replaced"),
            (call(&["get", "greeting"]), "world"),
            (call(&["check"]), "sound"),
            (call(&["stats"]), "devdax"),
            (call(&["stats"]), engine),
            (call(&["doctor"]), "yes, 1 segment"),
        ];
        let plan = Plan {
            devices: vec![device.to_owned()],
            mount: None,
            stores: Vec::new(),
            commands: calls.iter().map(|(call, _)| call.clone()).collect(),
            ..self.plan(None)
        };
        let log = self.start(&parts, &plan, Cut::Done)?;
        let ran = |message: &Message| match message {
            Message::Ran { output } => Some(output.clone().unwrap_or_default()),
            _ => None,
        };
        let outputs: Vec<_> = log.messages.iter().filter_map(ran).collect();
        self.expect(name, outputs.len() == calls.len(), "calls are missing");
        for ((call, expected), output) in calls.iter().zip(outputs) {
            let text = format!("`{}` printed `{output}`", call.join(" "));
            self.expect(name, output.contains(expected), &text);
        }
        self.progress.inc(1);
        Ok(format!("{name}: {} calls of `chimera` on a device", calls.len()))
    }

    /// Shows that the power is really cut: a store that does not promise to survive that does not.
    fn control(&mut self) -> io::Result<String> {
        let name = "control";
        self.progress.set_message(format!("variant {name}"));
        let parts = self.parts();
        let mut plan = self.plain("/mnt/control", "dax=never");
        "process".clone_into(&mut plan.stores[0].durability);
        plan.operations = None;
        // Without a write that was acknowledged there would be nothing to lose.
        let log = self.start(&parts, &plan, Cut::Acknowledged(CONTROL_OPERATIONS))?;
        plan.stores[0].done = acknowledged(&log);
        // It is refused because the machine went down, whatever has survived: that is not what is asked here.
        plan.stores[0].access = Access::Salvage;
        plan.operations = Some(0);
        let log = self.start_only(&parts, &plan, Cut::Done)?;
        let survived = log.verified().any(|store| store.problems.is_empty());
        self.expect(name, !survived, "a store in the page cache has survived: no power was cut");
        self.progress.inc(1);
        Ok(format!("{name}: a store in the page cache is lost, as it must be"))
    }

    /// A store on the same file system that is asked to survive power loss without DAX.
    fn journaled(&mut self) -> io::Result<String> {
        let name = "journaled";
        self.progress.set_message(format!("variant {name}"));
        let parts = self.parts();
        let mut plan = self.plain("/mnt/journaled", "dax=never");
        let store = &mut plan.stores[0];
        "immediate".clone_into(&mut store.durability);
        store.access = Access::WriteIfPossible;
        plan.operations = None;
        let log = self.start(&parts, &plan, Cut::Writing)?;
        self.progress.inc(1);
        if log.messages.iter().any(|message| matches!(message, Message::Refused { .. })) {
            return Ok(format!("{name}: immediate durability on a plain file is refused"));
        }
        plan.stores[0].done = acknowledged(&log);
        plan.operations = Some(0);
        self.start(&parts, &plan, Cut::Done)?;
        Ok(format!("{name}: immediate durability on a plain file, cut and verified"))
    }

    /// A file system on an NVDIMM that is not mounted for direct access.
    fn without_dax(&mut self) -> io::Result<String> {
        let parts = self.parts();
        self.not_persistent("no-dax-mount", &parts, "dax=never")
    }

    /// A device that can be mapped directly, but whose flushes the host must be asked for.
    fn virtio_pmem(&mut self) -> io::Result<String> {
        let path = self.machine.directory.join("virtio");
        fs::File::create(&path)?.set_len(VIRTIO_BYTES)?;
        image::make_ext4(&self.machine.tools.mkfs, &path, VIRTIO_BYTES, 0)?;
        let parts =
            Parts { nvdimms: Vec::new(), virtio_pmem: Some((path, VIRTIO_BYTES)), ..self.parts() };
        self.not_persistent("virtio-pmem", &parts, "dax=always")
    }

    /// A new store on a file system mounted with these options.
    fn plain(&self, path: &str, options: &str) -> Plan {
        let target = Target {
            path: path.to_owned(),
            done: [0; THREADS],
            first_thread: 2 * THREADS,
            access: Access::Write,
            durability: "auto".to_owned(),
            ordered: false,
        };
        Plan {
            devices: vec![BLOCK_DEVICE.to_owned()],
            mount: Some(Mount { device: BLOCK_DEVICE.to_owned(), options: options.to_owned() }),
            stores: vec![target],
            operations: Some(OPERATIONS),
            ..self.plan(None)
        }
    }

    /// A place that must not be taken for persistent memory.
    fn not_persistent(&mut self, name: &str, parts: &Parts, options: &str) -> io::Result<String> {
        self.progress.set_message(format!("variant {name}"));
        let plan = Plan { doctor: true, ..self.plain("/mnt/plain", options) };
        let log = self.start(parts, &plan, Cut::Done)?;
        let stores: Vec<_> = log.verified().collect();
        let is_plain =
            stores.len() == 1 && stores[0].medium == "file" && stores[0].durability != "immediate";
        self.expect(name, is_plain, &format!("taken for {stores:?}"));
        let doctors = doctors(&log);
        let agree = doctors.len() == 1 && doctors[0]["probe"]["medium"] == "file";
        self.expect(name, agree, &format!("`chimera doctor` says {doctors:?}"));
        let durability = stores.first().map_or("?", |store| &store.durability).to_owned();
        self.progress.inc(1);
        Ok(format!("{name}: medium file, durability {durability}"))
    }
}

/// What the threads of a plain store have acknowledged.
fn acknowledged(log: &Log) -> [u64; THREADS] {
    let mut done = [0; THREADS];
    done.iter_mut().zip(&log.acknowledged[2 * THREADS..]).for_each(|(done, count)| *done = *count);
    done
}

/// What `chimera doctor` said of each store.
fn doctors(log: &Log) -> Vec<&Value> {
    let mut all = Vec::new();
    for message in &log.messages {
        if let Message::Doctor { report, .. } = message {
            all.push(report);
        }
    }
    all
}
