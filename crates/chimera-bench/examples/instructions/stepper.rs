//! Single-stepping: the parent lets the child run up to a mark, steps it to the next mark, and counts the steps.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::estimate::{Counted, Told};
use crate::{CHILD, Failure};

/// The child sends itself this where counting begins, and that where it ends.
pub(crate) const BEGIN: Signal = Signal::SIGUSR1;
pub(crate) const END: Signal = Signal::SIGUSR2;
/// How the child ends where it must not be stepped.
pub(crate) const FORBIDDEN: u8 = 3;

/// What came of a layout.
pub(crate) enum Outcome {
    Counted(Counted),
    /// The system says no, and why.
    Forbidden(String),
}

/// Counts all layouts, as many at a time as there are processors.
pub(crate) fn count_all(layouts: &[String]) -> Result<Vec<Outcome>, Failure> {
    if !cfg!(target_arch = "x86_64") {
        let why = "only x86-64 processors are stepped".to_owned();
        return Ok(vec![Outcome::Forbidden(why)]);
    }
    let processors = processors();
    let next = AtomicUsize::new(0);
    let mut outcomes: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = processors
            .iter()
            .map(|&processor| {
                let next = &next;
                scope.spawn(move || {
                    // A child beside its parent wakes it sooner than one on another processor.
                    pin(processor);
                    let mut mine = Vec::new();
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        let Some(layout) = layouts.get(number) else { return mine };
                        mine.push((number, count(layout)));
                    }
                })
            })
            .collect();
        threads.into_iter().flat_map(|it| it.join().expect("no counting thread panics")).collect()
    });
    outcomes.sort_by_key(|(number, _)| *number);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

/// The processors that this program may use.
fn processors() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return vec![0] };
    (0..CpuSet::MAX_CPU).filter(|&processor| set.is_set(processor)).collect()
}

fn pin(processor: usize) {
    let mut set = CpuSet::new();
    set.set(processor);
    // Only time is lost where it cannot be had.
    let _ = sched_setaffinity(None, &set);
}

/// Counts one layout.
fn count(layout: &str) -> Result<Outcome, Failure> {
    let mut child = Command::new(std::env::current_exe()?)
        .args([CHILD, layout])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut stdout = child.stdout.take().ok_or("the child has no output")?;
    let reader = thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).map(|_| text)
    });
    let pid = Pid::from_raw(i32::try_from(child.id())?);
    let stepped = step_all(pid);
    if stepped.is_err() {
        let _ = child.kill();
        let _ = child.wait();
    }
    let (instructions, code) = match stepped {
        Err(error) if error.downcast_ref().is_some_and(|error| is_refusal(*error)) => {
            return Ok(Outcome::Forbidden(error.to_string()));
        }
        stepped => stepped?,
    };
    let text = reader.join().map_err(|_| "the child's output cannot be read")??;
    match u8::try_from(code) {
        Ok(0) => {
            let told: Told = serde_json::from_str(&text)?;
            Ok(Outcome::Counted(Counted { told, instructions }))
        }
        Ok(FORBIDDEN) => Ok(Outcome::Forbidden(text.trim().to_owned())),
        _ => Err(format!("{layout}: the child ended with {code}").into()),
    }
}

/// Whether this is how a system says that it does not let programs be stepped.
fn is_refusal(error: Errno) -> bool {
    matches!(error, Errno::EPERM | Errno::ENOSYS | Errno::EIO)
}

/// Runs the child to its end. Instructions of each window, and the exit code.
fn step_all(pid: Pid) -> Result<(Vec<u64>, i32), Failure> {
    let mut windows = Vec::new();
    let mut status = waitpid(pid, None)?;
    loop {
        match status {
            WaitStatus::Exited(_, code) => return Ok((windows, code)),
            WaitStatus::Stopped(_, BEGIN) => {
                if windows.is_empty() {
                    // The child does not outlive this program.
                    ptrace::setoptions(pid, ptrace::Options::PTRACE_O_EXITKILL)?;
                }
                let (count, end) = step_window(pid)?;
                if !matches!(end, WaitStatus::Stopped(_, END)) {
                    return Err(format!("a window ended by {end:?}").into());
                }
                windows.push(count);
                ptrace::cont(pid, None)?;
            }
            WaitStatus::Stopped(_, signal) => ptrace::cont(pid, signal)?,
            other => return Err(format!("the child ended by {other:?}").into()),
        }
        status = waitpid(pid, None)?;
    }
}

/// Steps until something else than a step happens; the number of steps.
fn step_window(pid: Pid) -> Result<(u64, WaitStatus), Failure> {
    let (mut count, mut last) = (0, 0);
    loop {
        ptrace::step(pid, None)?;
        match waitpid(pid, None)? {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => {
                let at = instruction_pointer(pid)?;
                // A repeated string instruction stops after each repetition.
                count += u64::from(at != last);
                last = at;
            }
            end => return Ok((count, end)),
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn instruction_pointer(pid: Pid) -> Result<u64, Failure> {
    Ok(ptrace::getregs(pid)?.rip)
}

#[cfg(not(target_arch = "x86_64"))]
fn instruction_pointer(_: Pid) -> Result<u64, Failure> {
    Err("only x86-64 processors are stepped".into())
}
