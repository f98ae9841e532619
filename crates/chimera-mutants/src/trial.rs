//! Trying one mutant: the tests that reach it, the fastest first.

use std::io;
use std::path::Path;
use std::time::Duration;

use crate::build::Binary;
use crate::coverage::Test;
use crate::outcome::Fate;
use crate::process::{Call, End, Limits};

/// Tests in one process: few at first, because most mutants are noticed at once.
const BATCHES: [usize; 4] = [1, 4, 16, usize::MAX];

/// What mutants are tried with.
pub(crate) struct Trial<'a> {
    pub(crate) binaries: &'a [Binary],
    /// The fastest first.
    pub(crate) tests: &'a [Test],
    /// Part of the names of the tests that are asked.
    pub(crate) filter: Option<&'a str>,
    /// Least time that a test may take.
    pub(crate) patience: Duration,
    /// Tests that take longer are not asked.
    pub(crate) slowest: Duration,
    /// Tests of each binary that are asked at most.
    pub(crate) most: usize,
}

impl Trial<'_> {
    /// The tests that are asked about a mutant: those that reach it, or a part of them from fast to slow ones.
    pub(crate) fn reaching(&self, number: u32) -> Vec<&Test> {
        let is_asked = |test: &&Test| {
            test.passes
                && test.seconds <= self.slowest.as_secs_f64()
                && self.filter.is_none_or(|filter| test.name.contains(filter))
                && test.reaches.binary_search(&number).is_ok()
        };
        let reaching: Vec<&Test> = self.tests.iter().filter(is_asked).collect();
        let mut asked = Vec::new();
        for at in 0..self.binaries.len() {
            let mine: Vec<&Test> =
                reaching.iter().copied().filter(|test| test.binary == at).collect();
            let count = mine.len().min(self.most);
            asked.extend((0..count).map(|part| mine[part * mine.len() / count]));
        }
        asked.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        asked
    }

    /// What the tests say about a mutant, and which one said it.
    pub(crate) fn run(
        &self,
        number: u32,
        scratch: &Path,
        sink: &mut dyn FnMut(&str),
    ) -> io::Result<(Fate, Option<String>)> {
        let tests = self.reaching(number);
        if tests.is_empty() {
            return Ok((Fate::Unreached, None));
        }
        for batch in self.batches(&tests) {
            let names: Vec<&str> = batch.iter().map(|test| &*test.name).collect();
            let call = Call {
                binary: &self.binaries[batch[0].binary],
                tests: &names,
                environment: &[("CHIMERA_MUTANT", number.to_string())],
                scratch,
                limits: self.limits(&batch),
            };
            match call.run(sink)? {
                End::Passed => {}
                End::Failed(by) => return Ok((Fate::Noticed, Some(by))),
                End::TimedOut(by) => return Ok((Fate::Timeout, Some(by))),
            }
        }
        Ok((Fate::Missed, None))
    }

    /// Tests that run in one process each. Each process has tests of one binary.
    fn batches<'t>(&self, tests: &[&'t Test]) -> Vec<Vec<&'t Test>> {
        let mut batches = Vec::new();
        let mut rest = tests;
        for size in BATCHES {
            let (now, later) = rest.split_at(size.min(rest.len()));
            rest = later;
            for (at, binary) in self.binaries.iter().enumerate() {
                let mine: Vec<&Test> =
                    now.iter().copied().filter(|test| test.binary == at).collect();
                let most = if binary.takes_many { mine.len().max(1) } else { 1 };
                batches.extend(mine.chunks(most).map(<[_]>::to_vec));
            }
        }
        batches
    }

    /// A test may take ten times as long as it does, a process three times as long. Time of the processor does not depend
    /// on what else the machine does: a loop without end is known sooner by it.
    fn limits(&self, batch: &[&Test]) -> Limits {
        let longest = batch.iter().map(|test| test.seconds).fold(0.0, f64::max);
        let all: f64 = batch.iter().map(|test| test.seconds).sum();
        let processor = self.patience / 10 + Duration::from_secs_f64(3.0 * all + 7.0 * longest);
        Limits { wall: self.patience.max(Duration::from_secs_f64(10.0 * longest)), processor }
    }
}
