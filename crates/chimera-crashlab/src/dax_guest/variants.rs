//! Variants of the machine: caches that persist, flush instructions that are missing, a read-only
//! region, media that are not persistent memory.

use std::fs;
use std::io;

use serde_json::Value;

use super::campaign::{BLOCK_DEVICE, Campaign, Cut};
use super::image;
use super::machine::Parts;
use super::plan::{Access, Log, Message, Mount, Plan, THREADS, Target};

/// Bytes of a virtio-pmem device.
const VIRTIO_BYTES: u64 = 128 << 20;
/// Operations of each thread where power is not cut.
const OPERATIONS: u64 = 300;
/// Starts that the variants take.
pub(crate) const STARTS: u64 = 8;

impl Campaign {
    /// Runs all variants, on the stores as they are; what each has shown.
    ///
    /// # Errors
    /// When the machine cannot be run.
    pub(crate) fn variants(&mut self) -> io::Result<Vec<String>> {
        let parts = self.parts();
        let mut shown = Vec::new();
        shown.push(self.flushing("mem-ctrl", parts.clone(), "clwb")?);
        let eadr = Parts { caches_persist: true, ..parts.clone() };
        shown.push(self.flushing("eadr", eadr, "none")?);
        let parts = Parts { without: ",clwb=off", ..parts };
        shown.push(self.flushing("no-clwb", parts.clone(), "clflushopt")?);
        let parts = Parts { without: ",clwb=off,clflushopt=off", ..parts };
        shown.push(self.flushing("no-clwb-no-clflushopt", parts, "clflush")?);
        self.finish()?;
        shown.push(self.read_only_region()?);
        shown.push(self.without_dax()?);
        shown.push(self.virtio_pmem()?);
        Ok(shown)
    }

    fn expect(&mut self, variant: &str, is_so: bool, what: &str) {
        if !is_so {
            self.found.problems.push(format!("variant {variant}: {what}"));
        }
    }

    /// A machine in which stores must flush with one instruction, cut while it writes.
    fn flushing(&mut self, name: &str, parts: Parts, flush: &str) -> io::Result<String> {
        self.progress.set_message(format!("variant {name}"));
        let plan = Plan { doctor: true, ..self.plan(None) };
        let stores = plan.stores.len();
        let log = self.start(&parts, plan, Cut::Writing)?;
        let used: Vec<_> = log.verified().map(|store| store.flush_instruction.clone()).collect();
        self.expect(name, used == vec![flush; stores], &format!("stores flush with {used:?}"));
        let doctors = doctors(&log);
        let agrees = |report: &&Value| {
            report["probe"]["flush_instruction"] == flush
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
        let log = self.start(&parts, plan, Cut::Done)?;
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

    /// A place that must not be taken for persistent memory.
    fn not_persistent(&mut self, name: &str, parts: &Parts, options: &str) -> io::Result<String> {
        self.progress.set_message(format!("variant {name}"));
        let target = Target {
            path: "/mnt/plain".to_owned(),
            done: [0; THREADS],
            first_thread: 2 * THREADS,
            access: Access::Write,
        };
        let plan = Plan {
            devices: vec![BLOCK_DEVICE.to_owned()],
            mount: Some(Mount { device: BLOCK_DEVICE.to_owned(), options: options.to_owned() }),
            stores: vec![target],
            operations: Some(OPERATIONS),
            doctor: true,
            ..self.plan(None)
        };
        let log = self.start(parts, plan, Cut::Done)?;
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

/// What `chimera doctor` said of each store.
fn doctors(log: &Log) -> Vec<&Value> {
    let report = |message| match message {
        &Message::Doctor { ref report, .. } => Some(report),
        _ => None,
    };
    log.messages.iter().filter_map(report).collect()
}
