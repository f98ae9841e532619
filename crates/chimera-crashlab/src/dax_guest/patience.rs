//! [`Patience`]: when a machine that says nothing is given up. It is measured in what the machine does and not by a clock,
//! so that a busy host makes a test slower and never wrong.

use std::fs;
use std::time::{Duration, Instant};

/// Processor time that a machine may use up without a word.
const WORKED_MAX: Duration = Duration::from_secs(900);
/// How long a machine may do nothing, while a processor was there for it, without a word.
const RESTED_MAX: Duration = Duration::from_secs(120);

/// The time of a process and of its threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Times {
    /// On a processor.
    ran: Duration,
    /// Waiting for a processor that others had.
    queued: Duration,
}

/// How long a machine has said nothing.
#[derive(Debug)]
pub(crate) struct Patience {
    process: u32,
    since: Instant,
    before: Times,
}

impl Patience {
    /// With a machine that is this process.
    pub(crate) fn new(process: u32) -> Self {
        Self { process, since: Instant::now(), before: Times::of(process) }
    }

    /// The machine has said something.
    pub(crate) fn renew(&mut self) {
        *self = Self::new(self.process);
    }

    /// Why the machine is given up, once it is.
    pub(crate) fn is_over(&self) -> Option<String> {
        judge(self.since.elapsed(), self.before, Times::of(self.process))
    }
}

impl Times {
    /// Nothing where the kernel does not say.
    fn of(process: u32) -> Self {
        let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
        let lines =
            threads.filter_map(|thread| fs::read_to_string(thread.path().join("schedstat")).ok());
        lines.fold(Self::default(), |all, line| all.plus(&line))
    }

    /// With those of a thread: a line of nanoseconds on a processor, and waiting for one.
    fn plus(self, line: &str) -> Self {
        let mut words = line.split_whitespace().map(|word| word.parse().unwrap_or_default());
        let mut next = || Duration::from_nanos(words.next().unwrap_or_default());
        Self { ran: self.ran + next(), queued: self.queued + next() }
    }
}

fn judge(elapsed: Duration, before: Times, now: Times) -> Option<String> {
    let ran = now.ran.saturating_sub(before.ran);
    let queued = now.queued.saturating_sub(before.queued);
    if ran > WORKED_MAX {
        return Some(format!("it has used {} s of processor time without a word", ran.as_secs()));
    }
    let rested = elapsed.saturating_sub(ran).saturating_sub(queued);
    if rested > RESTED_MAX {
        return Some(format!("it has done nothing for {} s", rested.as_secs()));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(ran: u64, queued: u64) -> Times {
        Times { ran: Duration::from_secs(ran), queued: Duration::from_secs(queued) }
    }

    #[test]
    fn a_machine_that_gets_no_processor_is_waited_for() {
        let day = Duration::from_secs(86_400);
        assert_eq!(judge(day, seconds(5, 5), seconds(15, 86_395)), None);
    }

    #[test]
    fn a_machine_that_works_or_rests_without_end_is_given_up() {
        let over = |elapsed, ran: u64, queued: u64| {
            judge(Duration::from_secs(elapsed), seconds(7, 7), seconds(7 + ran, 7 + queued))
        };
        assert_eq!(over(1000, 900, 90), None);
        assert!(over(1000, 901, 99).is_some_and(|why| why.contains("used 901 s")));
        assert_eq!(over(121, 1, 0), None);
        assert!(over(122, 1, 0).is_some_and(|why| why.contains("done nothing for 121 s")));
    }

    #[test]
    fn lines_of_the_kernel_are_read() {
        let times = Times::default().plus("1000000000 2000000000 17\n").plus("garbage");
        assert_eq!(times, seconds(1, 2));
        let own = Times::of(std::process::id());
        assert!(own == Times::default() || own.ran > Duration::ZERO, "{own:?}");
    }
}
