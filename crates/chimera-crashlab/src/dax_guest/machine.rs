//! [`Machine`]: an emulated computer with persistent memory, from power on to the cut.
//!
//! Always emulated in software, also where the host could do better: so it runs everywhere, and the
//! processor's features are the ones asked for.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::archive::Archive;
use super::patience::Patience;
use super::plan::{Log, Message, PLAN_PATH, Plan};
use super::setup::Tools;

/// How often the host looks for news of the guest.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Looks after which it is judged whether the guest goes on.
const LOOKS_PER_JUDGEMENT: u64 = 256;
/// How much of the guest's console is shown when something goes wrong.
const CONSOLE_LINES: usize = 15;

/// A memory module that is a file.
#[derive(Clone, Debug)]
pub(crate) struct Nvdimm {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    /// Says of itself that it cannot keep what is written: its region is read-only.
    pub(crate) unarmed: bool,
}

/// What is in the machine.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    pub(crate) nvdimms: Vec<Nvdimm>,
    /// A paravirtual device of persistent memory: a file and its length.
    pub(crate) virtio_pmem: Option<(PathBuf, u64)>,
    /// Features taken away from the processor, such as `,clwb=off`.
    pub(crate) without: &'static str,
    /// Whether caches survive a power loss.
    pub(crate) caches_persist: bool,
}

/// Where and with what machines are run.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) tools: Tools,
    /// The initial file system without a plan.
    pub(crate) archive: Vec<u8>,
    /// For the files of a start.
    pub(crate) directory: PathBuf,
}

/// Why waiting ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// What was waited for has come.
    Come,
    /// The machine has ended, or said that something is wrong.
    Ended,
    /// The time that was given is over.
    TimeIsUp,
    /// The machine does not go on, as far as can be told by this.
    Stuck(String),
}

impl Machine {
    /// Switches it on.
    ///
    /// # Errors
    /// When its files cannot be written or QEMU cannot be run.
    pub(crate) fn start(&self, parts: &Parts, plan: &Plan) -> io::Result<Running> {
        let file = |name: &str| self.directory.join(name);
        let mut archive = Archive::new();
        archive.file(PLAN_PATH.trim_start_matches('/'), &serde_json::to_vec(plan)?);
        let initial = [&self.archive[..], &archive.finish()].concat();
        fs::write(file("initrd"), initial)?;
        let (port, console) = (file("port"), file("console"));
        File::create(&port)?;
        let mut command = Command::new(&self.tools.qemu);
        command.args(arguments(parts));
        command.arg("-kernel").arg(&self.tools.kernel).arg("-initrd").arg(file("initrd"));
        command.args(["-append", "console=ttyS0 quiet panic=-1"]);
        command.arg("-serial").arg(with_path("file:", &console));
        command.arg("-chardev").arg(with_path("file,id=port,path=", &port));
        command.args(["-device", "pci-serial,chardev=port"]);
        let errors = File::create(file("errors"))?;
        command.stdin(Stdio::null()).stdout(errors.try_clone()?).stderr(errors);
        let child = command.spawn()?;
        let patience = Patience::new(child.id());
        let threads = plan.stores.iter().map(|store| store.first_thread).max().unwrap_or(0);
        Ok(Running {
            child,
            log: Log::new(threads + super::plan::THREADS),
            port: File::open(port)?,
            files: [file("errors"), console],
            patience,
            console_bytes: 0,
        })
    }
}

/// The arguments that say what the machine is.
fn arguments(parts: &Parts) -> Vec<String> {
    let persistence = if parts.caches_persist { "cpu" } else { "mem-ctrl" };
    let mut all: Vec<String> = [
        "-M",
        &format!("pc,nvdimm=on,nvdimm-persistence={persistence}"),
        "-accel",
        "tcg,thread=multi",
        "-smp",
        "2",
        "-cpu",
        &format!("max{}", parts.without),
        "-m",
        "512M,slots=4,maxmem=8G",
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
        "-no-reboot",
    ]
    .map(str::to_owned)
    .to_vec();
    let mut memory = |id: &str, path: &Path, bytes: u64, device: String| {
        let path = path.display();
        all.push("-object".to_owned());
        all.push(format!("memory-backend-file,id={id},mem-path={path},size={bytes},share=on"));
        all.push("-device".to_owned());
        all.push(device);
    };
    for (index, Nvdimm { path, bytes, unarmed }) in parts.nvdimms.iter().enumerate() {
        let unarmed = if *unarmed { ",unarmed=on" } else { "" };
        // Without ids the regions come in reverse order.
        let device = format!("nvdimm,id=nvdimm{index},memdev=memory{index}{unarmed}");
        memory(&format!("memory{index}"), path, *bytes, device);
    }
    if let Some((path, bytes)) = &parts.virtio_pmem {
        memory("virtio", path, *bytes, "virtio-pmem-pci,id=pmem,memdev=virtio".to_owned());
    }
    all
}

fn with_path(prefix: &str, path: &Path) -> std::ffi::OsString {
    let mut all = std::ffi::OsString::from(prefix);
    all.push(path);
    all
}

/// A machine that is on. Dropping it cuts its power.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    log: Log,
    port: File,
    /// What QEMU and the guest's kernel said.
    files: [PathBuf; 2],
    patience: Patience,
    /// How much they said when they were last looked at.
    console_bytes: u64,
}

impl Running {
    /// Waits until `come` says so of what the guest has said: as long as the machine does something.
    ///
    /// # Errors
    /// When the guest's words cannot be read.
    pub(crate) fn wait(&mut self, come: impl FnMut(&Log) -> bool) -> io::Result<Waited> {
        self.wait_at_most(None, come)
    }

    /// As [`wait`](Self::wait), until so much time is over.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub(crate) fn wait_at_most(
        &mut self,
        at_most: impl Into<Option<Duration>>,
        mut come: impl FnMut(&Log) -> bool,
    ) -> io::Result<Waited> {
        let (start, at_most) = (Instant::now(), at_most.into());
        for look in 0_u64.. {
            let has_ended = self.child.try_wait()?.is_some();
            self.read()?;
            if come(&self.log) {
                return Ok(Waited::Come);
            }
            let wrong = |message: &Message| matches!(message, Message::Problem(_));
            if has_ended || self.log.messages.iter().any(wrong) {
                return Ok(Waited::Ended);
            }
            if at_most.is_some_and(|at_most| start.elapsed() > at_most) {
                return Ok(Waited::TimeIsUp);
            }
            if look.is_multiple_of(LOOKS_PER_JUDGEMENT) {
                self.look_at_console();
                if let Some(why) = self.patience.is_over() {
                    return Ok(Waited::Stuck(why));
                }
            }
            thread::sleep(LOOK_EVERY);
        }
        unreachable!("looks never end")
    }

    /// Kernel and QEMU may have said something.
    fn look_at_console(&mut self) {
        let bytes = self.files.iter().filter_map(|file| Some(fs::metadata(file).ok()?.len())).sum();
        if bytes != self.console_bytes {
            self.console_bytes = bytes;
            self.patience.renew();
        }
    }

    /// What the guest was doing when it was last heard of, and how much of its work it has acknowledged.
    pub(crate) fn last_heard(&self) -> String {
        let doing = self.log.messages.iter().rev().find_map(|message| match message {
            Message::Doing(what) => Some(what.as_str()),
            _ => None,
        });
        let acknowledged: u64 = self.log.acknowledged.iter().sum();
        let doing = doing.unwrap_or("starting its kernel");
        format!("it was {doing}, and had acknowledged {acknowledged} operations")
    }

    /// Cuts the power now, without a warning; what the guest has said before.
    ///
    /// # Errors
    /// When the guest's words cannot be read.
    pub(crate) fn cut(mut self) -> io::Result<Log> {
        self.child.kill()?;
        self.child.wait()?;
        self.read()?;
        Ok(std::mem::take(&mut self.log))
    }

    /// The last that QEMU and the guest's kernel said.
    pub(crate) fn console(&self) -> String {
        let mut all = String::new();
        for file in &self.files {
            let text = fs::read(file).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
            for line in &lines[lines.len().saturating_sub(CONSOLE_LINES)..] {
                all.push('\n');
                all.push_str(line.trim());
            }
        }
        all
    }

    fn read(&mut self) -> io::Result<()> {
        let mut bytes = Vec::new();
        self.port.read_to_end(&mut bytes)?;
        if !bytes.is_empty() {
            self.patience.renew();
        }
        self.log.take(&bytes);
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
