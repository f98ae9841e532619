//! A run: find, build, measure, try.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io};

use crate::build::{Binary, Builder, State, Tree};
use crate::cli::Options;
use crate::coverage::{self, Test};
use crate::known::Known;
use crate::matrix::Matrix;
use crate::outcome::{self, Fate, Outcome};
use crate::trial::Trial;
use crate::workers::{Workers, empty};

/// A room, and where all that belongs to it is.
pub(crate) struct Campaign<'a> {
    options: &'a Options,
    root: &'a Path,
    directory: PathBuf,
    tree: Tree,
    pub(crate) matrix: Matrix,
}

/// What mutants are tried with, once it is built.
struct Ready {
    state: State,
    tests: Vec<Test>,
}

impl<'a> Campaign<'a> {
    /// Reads the room in the repository at `root`. The tree is made again if the commit is another one.
    pub(crate) fn new(options: &'a Options, root: &'a Path) -> io::Result<Self> {
        let usual = || root.join("target/mutants").join(options.room.name);
        let directory = std::path::absolute(options.directory.clone().unwrap_or_else(usual))?;
        fs::create_dir_all(&directory)?;
        let tree = Tree::new(root, &directory, &options.room)?;
        let matrix = Matrix::read(&options.room, root)?;
        let known = Known { directory: &directory, root, tree: &tree, matrix: &matrix };
        known.bring_up_to_date(options)?;
        Ok(Self { options, root, directory, tree, matrix })
    }

    /// The numbers of the mutants that were asked for.
    pub(crate) fn selected(&self) -> Vec<u32> {
        let (part, parts) = self.options.shard;
        let is_asked = |number: &u32| {
            number % parts == part
                && self
                    .options
                    .only
                    .as_ref()
                    .is_none_or(|only| self.matrix.name(*number).contains(only))
        };
        (1..=self.matrix.count).filter(is_asked).collect()
    }

    /// Tries all mutants that were asked for, and tells of all that is known.
    pub(crate) fn run(&self) -> io::Result<BTreeMap<u32, Outcome>> {
        let path = self.directory.join("outcomes.jsonl");
        let known = outcome::read(&path)?;
        let is_due = |number: &u32| match known.get(number) {
            None => !self.options.wide,
            Some(known) => self.options.wide && known.fate.survives() && !known.wide,
        };
        let due: Vec<u32> = self.selected().into_iter().filter(is_due).collect();
        if !due.is_empty() {
            let ready = self.prepare()?;
            let file = outcome::append_to(&path)?;
            let (viable, unviable): (Vec<u32>, Vec<u32>) =
                due.into_iter().partition(|number| ready.state.is_viable(&self.matrix, *number));
            for number in unviable {
                let fate = (Fate::Unviable, None);
                outcome::append(&file, &self.outcome(number, fate, Duration::ZERO))?;
            }
            self.try_all(&ready, &viable, &file)?;
        }
        outcome::read(&path)
    }

    fn try_all(&self, ready: &Ready, numbers: &[u32], file: &File) -> io::Result<()> {
        let trial = self.trial(ready);
        self.workers().each("mutants", numbers, |number, scratch| {
            let started = Instant::now();
            let fate = trial.run(*number, scratch, &mut |_| {})?;
            outcome::append(file, &self.outcome(*number, fate, started.elapsed()))
        })
    }

    fn trial<'r>(&'r self, ready: &'r Ready) -> Trial<'r> {
        let state = &ready.state;
        Trial {
            binaries: if self.options.wide { &state.wide } else { &state.narrow },
            tests: &ready.tests,
            filter: self.options.tests.as_deref(),
            patience: Duration::from_secs(self.options.timeout),
            slowest: Duration::from_secs(self.options.slowest),
            most: self.options.most,
        }
    }

    /// Tries one mutant and prints everything.
    pub(crate) fn show(&self, name: &str) -> io::Result<()> {
        let is_named =
            |number: &u32| self.matrix.name(*number) == name || name.parse() == Ok(*number);
        let found = (1..=self.matrix.count).find(is_named);
        let number = found.ok_or_else(|| io::Error::other(format!("no mutant {name}")))?;
        println!("{number}: {}\n{}", self.matrix.name(number), self.matrix.shown(number));
        let ready = self.prepare()?;
        if !ready.state.is_viable(&self.matrix, number) {
            println!("unviable: it does not compile");
            return Ok(());
        }
        let trial = self.trial(&ready);
        println!("{} tests reach it", trial.reaching(number).len());
        let scratch = empty(&self.scratch())?;
        let (fate, by) = trial.run(number, &scratch, &mut |line| print!("{line}"))?;
        println!("\n{}{}", fate.name(), by.map(|by| format!(" by {by}")).unwrap_or_default());
        Ok(())
    }

    fn outcome(
        &self,
        number: u32,
        (outcome, by): (Fate, Option<String>),
        took: Duration,
    ) -> Outcome {
        let (numbered, mutant) = self.matrix.mutant(number);
        Outcome {
            id: number,
            file: self.matrix.files[numbered.file].path.clone(),
            line: mutant.line,
            column: mutant.column,
            what: mutant.what.clone(),
            fate: outcome,
            by,
            seconds: took.as_secs_f64(),
            wide: self.options.wide,
        }
    }

    /// Builds and measures what is not known yet. One process at a time does.
    fn prepare(&self) -> io::Result<Ready> {
        let guard = File::create(self.directory.join("lock"))?;
        guard.lock()?;
        let is_wide = self.options.wide;
        let targets: &[String] = if is_wide { &self.options.targets } else { &[] };
        let builder = Builder {
            room: &self.options.room,
            matrix: &self.matrix,
            tree: &self.tree,
            directory: &self.directory,
            // Of its own: packages of other rooms have the same names and would take the place of these binaries.
            target: self.directory.join("target"),
            targets,
            note: &|text| eprintln!("{text}"),
        };
        let mut state = builder.known();
        let binaries =
            |state: &State| if is_wide { state.wide.clone() } else { state.narrow.clone() };
        let coverage = self.directory.join(if is_wide { "wide.json" } else { "narrow.json" });
        let count = self.options.room.wide.asked(targets).targets();
        let is_built = |state: &State| {
            let all = binaries(state);
            let is_asked = |binary: &Binary| {
                binary.path.exists() && (targets.is_empty() || targets.contains(&binary.name))
            };
            let is_whole = if is_wide { all.len() == count } else { !all.is_empty() };
            is_whole && all.iter().all(is_asked)
        };
        if !is_built(&state) {
            let _ = fs::remove_file(&coverage);
            self.tree.make(self.root, &self.options.room)?;
            builder.build(&mut state, is_wide)?;
        }
        let slowest = Duration::from_secs(self.options.slowest);
        let tests = coverage::measure(&binaries(&state), &coverage, &self.workers(), slowest)?;
        for test in tests.iter().filter(|test| !test.passes) {
            let why = if test.is_cut { "is slow" } else { "fails without any mutant" };
            eprintln!("{} {why}: it is not asked", test.name);
        }
        Ok(Ready { state, tests })
    }

    fn scratch(&self) -> PathBuf {
        let usual = || self.directory.join("scratch");
        // Several shards may run at once.
        self.options.scratch.clone().unwrap_or_else(usual).join(std::process::id().to_string())
    }

    fn workers(&self) -> Workers {
        Workers { threads: self.options.threads, scratch: self.scratch() }
    }
}
