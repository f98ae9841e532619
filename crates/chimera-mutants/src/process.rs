//! Running tests in processes that may do anything: run for ever, allocate without bound, print without end.

use std::io::{self, BufRead as _, BufReader, Read};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::build::Binary;

/// Bytes of data that a process may have.
const DATA_KIB_MAX: u64 = 4 << 20;
/// Bytes of output after which a process is ended.
const OUTPUT_BYTES_MAX: usize = 16 << 20;
/// The signal of a process that has used its time.
const SIGXCPU: i32 = 24;

/// What a process may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Without finishing a test.
    pub(crate) wall: Duration,
    /// Of a processor, altogether.
    pub(crate) processor: Duration,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Passed,
    /// A test failed, or the process died: the name of the test.
    Failed(String),
    TimedOut(String),
}

/// Tests to run in one process.
pub(crate) struct Call<'a> {
    pub(crate) binary: &'a Binary,
    pub(crate) tests: &'a [&'a str],
    pub(crate) environment: &'a [(&'a str, String)],
    /// A directory for temporary files.
    pub(crate) scratch: &'a Path,
    pub(crate) limits: Limits,
}

impl Call<'_> {
    /// Runs the tests one after the other until one fails. All output goes to `sink`.
    pub(crate) fn run(&self, sink: &mut dyn FnMut(&str)) -> io::Result<End> {
        let mut child = self.command().spawn()?;
        let lines = lines(&mut child);
        let mut watch = Watch { limits: self.limits, bytes: 0, current: String::new() };
        let seen = watch.follow(&mut child, &lines, sink);
        if seen.is_some() {
            end_group(&child);
        }
        let status = child.wait()?;
        // What it started may still be running.
        end_group(&child);
        Ok(seen.unwrap_or_else(|| watch.judge(status)))
    }

    fn command(&self) -> Command {
        let seconds = self.limits.processor.as_secs().max(1);
        // Where it can be said, the process does not outlive this one.
        let limits = format!(
            "ulimit -c 0; ulimit -S -t {seconds}; ulimit -d {DATA_KIB_MAX}; with=; \
             command -v setpriv >/dev/null && with='setpriv --pdeathsig KILL'; exec $with \"$0\" \"$@\""
        );
        let mut command = Command::new("sh");
        command.arg("-c").arg(limits).arg(&self.binary.path).arg("--exact").args(self.tests);
        command.arg("--test-threads=1").current_dir(&self.binary.home);
        // Property tests need not look for the smallest case.
        command.env("PROPTEST_MAX_SHRINK_ITERS", "0").env("TMPDIR", self.scratch);
        command.env("CARGO_MANIFEST_DIR", &self.binary.home);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0);
        command
    }
}

fn end_group(child: &Child) {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(group) = group {
        // It may be gone already.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// The lines of both outputs, the last one perhaps without its end.
fn lines(child: &mut Child) -> Receiver<Vec<u8>> {
    let (send, receive) = channel();
    let outputs: [Option<Box<dyn Read + Send>>; 2] = [
        child.stdout.take().map(|output| Box::new(output) as _),
        child.stderr.take().map(|output| Box::new(output) as _),
    ];
    for output in outputs.into_iter().flatten() {
        let send = send.clone();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(output);
            let mut line = Vec::new();
            // A line without end is cut.
            while matches!(reader.by_ref().take(1 << 16).read_until(b'\n', &mut line), Ok(1..)) {
                if send.send(std::mem::take(&mut line)).is_err() {
                    break;
                }
            }
        });
    }
    receive
}

/// What is seen of a process while it runs.
struct Watch {
    limits: Limits,
    bytes: usize,
    /// The test that runs, as far as it is known.
    current: String,
}

impl Watch {
    /// Reads until the process has ended or should: then why.
    fn follow(
        &mut self,
        child: &mut Child,
        lines: &Receiver<Vec<u8>>,
        sink: &mut dyn FnMut(&str),
    ) -> Option<End> {
        let mut deadline = Instant::now() + self.limits.wall;
        loop {
            match lines.recv_timeout(Duration::from_millis(200)) {
                Ok(line) => {
                    let text = String::from_utf8_lossy(&line);
                    sink(&text);
                    self.bytes += line.len();
                    if let Some(end) = self.line(text.trim_end(), &mut deadline) {
                        return Some(end);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) if matches!(child.try_wait(), Ok(Some(_))) => {
                    return None;
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if Instant::now() > deadline {
                return Some(End::TimedOut(self.current.clone()));
            }
            if self.bytes > OUTPUT_BYTES_MAX {
                return Some(End::Failed("too much output".into()));
            }
        }
    }

    fn line(&mut self, line: &str, deadline: &mut Instant) -> Option<End> {
        let line = line.strip_prefix("test ")?;
        let (name, fate) = line.split_once(" ...").unwrap_or((line, ""));
        name.trim().clone_into(&mut self.current);
        if fate.trim().ends_with("FAILED") {
            return Some(End::Failed(self.current.clone()));
        }
        if fate.trim().ends_with("ok") {
            *deadline = Instant::now() + self.limits.wall;
        }
        None
    }

    fn judge(&self, status: ExitStatus) -> End {
        match status.signal() {
            Some(SIGXCPU) => End::TimedOut(self.current.clone()),
            _ if status.success() => End::Passed,
            _ => End::Failed(format!("{} ({status})", self.current)),
        }
    }
}
