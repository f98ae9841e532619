//! [`Child`]: the process of a store, from outside: asked, sampled, stopped while others have their turn, killed.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use chimera_bench::measure::bytes_of;
use rustix::process::{Pid, Signal, kill_process};

use crate::job::Job;
use crate::limit::Limited;
use crate::protocol::{Reply, Request};
use crate::results::Memory;
use crate::worker::WORKER;

/// Time between two looks at a process's memory.
const SAMPLE_EVERY: Duration = Duration::from_millis(20);

/// What limits the memory of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitedBy {
    ControlGroup,
    DataLimit,
}

/// The process of a store.
pub(crate) struct Child {
    process: std::process::Child,
    requests: ChildStdin,
    replies: Receiver<io::Result<String>>,
    /// The most of each kind that was seen.
    peak: Memory,
    limited_by: Option<LimitedBy>,
    _group: Option<Limited>,
}

impl Child {
    /// Starts the process of a store, with so much memory at most.
    pub(crate) fn start(job: &Job, memory_limit_bytes: Option<u64>) -> io::Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg(WORKER)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let name = format!("chimera-peers-{}", process.id());
        let group = memory_limit_bytes.and_then(|bytes| Limited::make(&name, bytes));
        let is_in = group.as_ref().is_some_and(|group| group.take(process.id()).is_ok());
        let group = group.filter(|_| is_in);
        let limited_by = memory_limit_bytes
            .map(|_| if group.is_some() { LimitedBy::ControlGroup } else { LimitedBy::DataLimit });
        let data_limit_bytes = memory_limit_bytes.filter(|_| group.is_none());
        let (out, requests) = (process.stdout.take(), process.stdin.take());
        let (out, mut requests) = out.zip(requests).ok_or(io::ErrorKind::BrokenPipe)?;
        let (sender, replies) = channel();
        thread::spawn(move || {
            // Ends with the process, or when nobody listens any more.
            BufReader::new(out).lines().try_for_each(|line| sender.send(line).ok())
        });
        write_line(&mut requests, &Job { data_limit_bytes, ..job.clone() })?;
        Ok(Self { process, requests, replies, peak: Memory::default(), limited_by, _group: group })
    }

    pub(crate) fn limited_by(&self) -> Option<LimitedBy> {
        self.limited_by
    }

    /// The most memory that was seen while it was asked.
    pub(crate) fn peak(&self) -> Memory {
        self.peak
    }

    /// Its memory now.
    pub(crate) fn memory(&mut self) -> Memory {
        let path = format!("/proc/{}/status", self.process.id());
        let memory = memory_of(&std::fs::read_to_string(path).unwrap_or_default());
        self.peak = self.peak.most(memory);
        memory
    }

    /// Has a request carried out, and the process stopped again when it is done: what it does in the background would
    /// disturb the others. It is its own when its next turn comes.
    ///
    /// # Errors
    /// What the store says, or how its process ended.
    pub(crate) fn ask(&mut self, request: &Request) -> Result<Reply, String> {
        self.signal(Signal::CONT).map_err(|error| error.to_string())?;
        let asked = write_line(&mut self.requests, request);
        let reply = match asked {
            Ok(()) => self.reply()?,
            Err(_) => return Err(self.ended()),
        };
        self.memory();
        if *request != Request::Close {
            self.signal(Signal::STOP).map_err(|error| error.to_string())?;
        }
        match reply {
            Reply::Failed { message } => Err(message),
            reply => Ok(reply),
        }
    }

    /// Waits for the reply, looking at the process's memory meanwhile.
    fn reply(&mut self) -> Result<Reply, String> {
        loop {
            match self.replies.recv_timeout(SAMPLE_EVERY) {
                Ok(Ok(line)) => {
                    return serde_json::from_str(&line).map_err(|error| error.to_string());
                }
                Ok(Err(error)) => return Err(error.to_string()),
                Err(RecvTimeoutError::Timeout) => _ = self.memory(),
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
            }
        }
    }

    /// How the process ended.
    fn ended(&mut self) -> String {
        match self.process.wait() {
            Ok(status) if self.limited_by.is_some() => {
                format!("the process ended with limited memory: {status}")
            }
            Ok(status) => format!("the process ended: {status}"),
            Err(error) => error.to_string(),
        }
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        let process = Pid::from_raw(self.process.id() as i32).ok_or(io::ErrorKind::NotFound)?;
        Ok(kill_process(process, signal)?)
    }

    /// Kills the process, and waits for its end.
    pub(crate) fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

fn write_line(to: &mut ChildStdin, what: &impl serde::Serialize) -> io::Result<()> {
    let mut text = serde_json::to_string(what)?;
    text.push('\n');
    to.write_all(text.as_bytes())
}

/// Resident memory in `/proc/PID/status`.
fn memory_of(status: &str) -> Memory {
    Memory {
        anonymous_bytes: bytes_of(status, "RssAnon"),
        file_bytes: bytes_of(status, "RssFile"),
        shared_bytes: bytes_of(status, "RssShmem"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_by_kind() {
        let memory = memory_of("RssAnon:\t 3 kB\nRssFile:\t 2 kB\nRssShmem:\t 1 kB\n");
        let expected = Memory { anonymous_bytes: 3072, file_bytes: 2048, shared_bytes: 1024 };
        assert_eq!(memory, expected);
        let other = Memory { anonymous_bytes: 1, file_bytes: 4096, shared_bytes: 0 };
        assert_eq!(memory.most(other), Memory { file_bytes: 4096, ..expected });
    }
}
