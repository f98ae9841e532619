//! [`Lab`]: two machines, one that runs and one that is put into every state a crash can leave.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use chimera_pmem::{Environment, Site, SteppedEnvironment};

use super::case::{Action, Crash};
use super::damage::verify_damaged;
use super::expectation::Expectation;
use super::record::{Recording, record};
use super::verify::verify;
use crate::chance::Chance;
use crate::linter::{Lint, Linter};
use crate::media::{Media, Patch, States};
use crate::simulated::{Event, Machine, Mark, Mutation, SimulatedFiles, State};
use crate::subject::Subject;

/// One in so many states is recovered twice.
const TWICE_ONE_IN: u64 = 8;

/// Times that each quiet moment is damaged.
const DAMAGES: u64 = 2;

/// Before which steps of an epoch crashes are tried, beside the one where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Points {
    All,
    /// Some, by chance: so that no epoch takes the time of many others.
    Sampled(Sampling),
    None,
}

/// Which points of an epoch are tried where not all are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sampling {
    /// So many on average.
    pub(crate) points: u64,
    /// And all that lie in a window of which fewer than so many were tried.
    pub(crate) rare_points: u64,
}

/// Chooses the points of an epoch that has so many.
struct Sampler {
    points: Points,
    count: u64,
    chance: Chance,
}

impl Sampler {
    /// Whether the next point is tried. `is_rare` says whether it lies in a window of which fewer points than so many were.
    fn is_tried(&mut self, is_rare: impl FnOnce(u64) -> bool) -> bool {
        match self.points {
            Points::All => true,
            Points::Sampled(Sampling { points, rare_points }) => {
                self.chance.below(self.count.max(1)) < points || is_rare(rare_points)
            }
            Points::None => false,
        }
    }
}

/// What is wrong, and after which crash.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    pub(crate) what: String,
    /// The step before which the machine stopped; none when it went wrong without a crash.
    pub(crate) before: Option<String>,
    /// What survived of that which was not durable for certain, and what was lost.
    pub(crate) survived: Vec<String>,
    pub(crate) lost: Vec<String>,
}

/// What was done so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Different pairs of what a crash left and what is expected of it, all verified.
    pub(crate) states: u64,
    pub(crate) points: u64,
    pub(crate) epochs: u64,
    /// Epochs cut during recovery.
    pub(crate) nested: u64,
    /// Processes killed while the machine lived on.
    pub(crate) kills: u64,
    /// Stores verified with damaged media.
    pub(crate) damages: u64,
    /// Most epochs in a row that were cut during recovery.
    pub(crate) nested_deepest: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, other: Self) {
        self.states += other.states;
        self.points += other.points;
        self.epochs += other.epochs;
        self.nested += other.nested;
        self.kills += other.kills;
        self.damages += other.damages;
        self.nested_deepest = self.nested_deepest.max(other.nested_deepest);
    }
}

/// Crash points by window: the name of a site, while a store from there may be lost or before a fence there; or
/// [`OPENING`].
pub(crate) type Windows = BTreeMap<&'static str, u64>;

/// The window in which a process opens the store.
const OPENING: &str = "opening";

/// Where a run goes on: what a crash left.
pub(crate) struct Snapshot {
    words: Vec<u64>,
    patch: Patch,
    pub(crate) expectation: Expectation,
}

/// Two machines and what was seen of one store.
pub(crate) struct Lab<'a, S: Subject> {
    pub(crate) subject: &'a S,
    pub(crate) working: Arc<Machine>,
    durable: Arc<Machine>,
    environment: Arc<SteppedEnvironment>,
    recovery_environment: Arc<dyn Environment>,
    seen: HashSet<u64>,
    pub(crate) counts: Counts,
    pub(crate) windows: Windows,
    /// Crash points while a process opens the store, by the steps of that: a store may be lost, or a fence comes next.
    pub(crate) recovering: Windows,
    /// Epochs in a row so far that were cut during recovery.
    nested_now: u64,
    pub(crate) lints: Vec<Lint>,
    /// Whether redundant flushes and fences are errors: not while a step is made wrong.
    counts_flushes: bool,
}

impl<'a, S: Subject> Lab<'a, S> {
    /// New machines, and environments whose random numbers follow from `seed`.
    /// One step is made wrong if `mutation` says so.
    pub(crate) fn new(subject: &'a S, seed: u64, mutation: Option<Mutation>) -> Self {
        let working = Machine::new(subject.image_bytes());
        let durable = Machine::new(subject.image_bytes());
        working.set_mutation(mutation);
        durable.set_mutation(mutation);
        let on = |machine: &Arc<Machine>, seed| {
            Arc::new(SteppedEnvironment::with_files(
                seed,
                Arc::new(SimulatedFiles(machine.clone())),
            ))
        };
        Self {
            subject,
            environment: on(&working, seed),
            recovery_environment: on(&durable, !seed),
            working,
            durable,
            seen: HashSet::new(),
            counts: Counts::default(),
            windows: Windows::new(),
            recovering: Windows::new(),
            nested_now: 0,
            lints: Vec::new(),
            counts_flushes: mutation.is_none(),
        }
    }

    /// Runs an epoch and verifies what crashes leave: at `points`, and at the one that `crash` names. Where
    /// it goes on.
    ///
    /// # Errors
    /// The first violation.
    pub(crate) fn epoch(
        &mut self,
        expectation: &Expectation,
        actions: &[Action],
        crash: Crash,
        points: Points,
        seed: u64,
    ) -> Result<Snapshot, Violation> {
        self.counts.epochs += 1;
        self.environment.reboot();
        let environment: Arc<dyn Environment> = self.environment.clone();
        let between = || {
            if self.subject.steps_tasks() {
                self.environment.step_tasks();
            }
        };
        let (subject, working) = (self.subject, &self.working);
        let recording = record(subject, working, &environment, expectation, actions, &between);
        let working = self.working.clone();
        let trace = working.state();
        let snapshot = self.crashes(expectation, &recording, &trace, crash, points, seed)?;
        match recording.failure {
            Some(what) => {
                Err(Violation { what, before: None, survived: Vec::new(), lost: Vec::new() })
            }
            None => Ok(snapshot),
        }
    }

    /// Goes through a trace.
    fn crashes(
        &mut self,
        expectation: &Expectation,
        recording: &Recording,
        trace: &State,
        crash: Crash,
        points: Points,
        seed: u64,
    ) -> Result<Snapshot, Violation> {
        let count = trace.events.iter().filter(|event| event.is_crash_point()).count() as u64;
        let mut sampler = Sampler { points, count, chance: Chance::new(!seed) };
        let chosen = choose(&trace.events, crash);
        let mut media = Media::new(self.durable.clone());
        let mut linter = Linter::new(self.counts_flushes);
        let mut now = expectation.clone();
        let mut is_opening = true;
        let mut made = BTreeSet::new();
        let mut snapshot = None;
        let mut violation = None;
        for (number, event) in trace.events.iter().enumerate() {
            if let Event::Mark(mark) = event {
                is_opening = is_opening_after(*mark, is_opening);
                self.counts.kills += u64::from(*mark == Mark::Killed);
                now = after_mark(*mark, now, recording);
            } else if let Event::Decided = event {
                now.decide();
            }
            if is_opening {
                made.extend(event.site().map(Site::name));
            }
            let is_chosen = number == chosen;
            let is_point = event.is_crash_point();
            let is_tried = is_chosen
                || is_point
                    && sampler.is_tried(|rare| self.is_rare(&media, event, is_opening, rare));
            // After a violation only the linter goes on.
            if violation.is_none() && is_tried {
                self.counts.points += 1;
                self.count_windows(&media, event, is_opening, &made);
                let mut chance = Chance::new(seed ^ (number as u64) << 32);
                let states = self.point(&media, &now, event, &mut chance.clone());
                let states = states.unwrap_or_else(|found| {
                    violation = Some(found);
                    1
                });
                if is_chosen {
                    self.count_cut(is_opening);
                    let wanted = u64::from(crash.state) % states.max(1);
                    snapshot = Some(Snapshot {
                        words: (0..self.durable.len() as u32)
                            .map(|word| self.durable.peek(word))
                            .collect(),
                        patch: nth_state(&media, &mut chance, wanted),
                        expectation: now.clone(),
                    });
                }
            }
            linter.step(event, &media);
            media.apply(event, &trace.changes);
        }
        linter.compare(&media, &self.working);
        self.keep_lints(linter.into_found());
        match violation {
            Some(violation) => Err(violation),
            None => Ok(snapshot.expect("the chosen point is one of the trace")),
        }
    }

    /// Counts a point that is tried by its windows. `made` are the steps of this opening so far, if it is one.
    fn count_windows(
        &mut self,
        media: &Media,
        event: &Event,
        is_opening: bool,
        made: &BTreeSet<&'static str>,
    ) {
        for window in windows_of(media, event, is_opening) {
            *self.windows.entry(window).or_default() += 1;
            if is_opening && made.contains(window) {
                *self.recovering.entry(window).or_default() += 1;
            }
        }
    }

    /// Counts an epoch that was cut, perhaps during recovery.
    fn count_cut(&mut self, is_opening: bool) {
        self.counts.nested += u64::from(is_opening);
        self.nested_now = if is_opening { self.nested_now + 1 } else { 0 };
        self.counts.nested_deepest = self.counts.nested_deepest.max(self.nested_now);
    }

    fn keep_lints(&mut self, found: Vec<Lint>) {
        for lint in found {
            if !self.lints.iter().any(|known| (known.rule, known.site) == (lint.rule, lint.site)) {
                self.lints.push(lint);
            }
        }
    }

    /// Whether a crash before `event` lies in a window of which few points were tried.
    fn is_rare(&self, media: &Media, event: &Event, is_opening: bool, rare_points: u64) -> bool {
        let tried = |window| self.windows.get(window).copied().unwrap_or(0);
        windows_of(media, event, is_opening).into_iter().any(|window| tried(window) < rare_points)
    }

    /// Verifies the states that a crash before `event` can leave, those that are new. How many there
    /// are, with repetitions.
    fn point(
        &mut self,
        media: &Media,
        expectation: &Expectation,
        event: &Event,
        chance: &mut Chance,
    ) -> Result<u64, Violation> {
        let context = expectation.hash();
        // So that what is damaged does not depend on how many states there are.
        let mut damage_chance = Chance::new(!chance.clone().next());
        let mut count = 0;
        let mut violation = None;
        States::new(media).for_each(chance, &mut |patch| {
            count += 1;
            let key = patch.hash ^ context;
            if violation.is_some() || !self.seen.insert(key) {
                return;
            }
            self.counts.states += 1;
            let twice = key.is_multiple_of(TWICE_ONE_IN);
            let (machine, environment) = (&self.durable, &self.recovery_environment);
            if let Err(what) = verify(self.subject, machine, environment, expectation, patch, twice)
            {
                violation = Some(describe(&what, media, patch, event));
            }
        });
        match violation {
            Some(violation) => Err(violation),
            None => self.damage(media, expectation, event, &mut damage_chance).map(|()| count),
        }
    }

    /// Damages media, where everything is durable and nothing in flight.
    fn damage(
        &mut self,
        media: &Media,
        expectation: &Expectation,
        event: &Event,
        chance: &mut Chance,
    ) -> Result<(), Violation> {
        let is_quiet =
            media.lines.is_empty() && expectation.is_certain() && !expectation.is_logged();
        if !self.subject.abilities().finds_damage || !is_quiet {
            return Ok(());
        }
        self.counts.damages += DAMAGES;
        let (machine, environment) = (&self.durable, &self.recovery_environment);
        let tree = media.files.everything();
        let before = machine.state().tree.clone();
        let outcome = (0..DAMAGES).try_for_each(|_| {
            machine.state().tree = tree.clone();
            verify_damaged(self.subject, machine, environment, expectation, chance)
        });
        machine.state().tree = before;
        outcome.map_err(|what| describe(&what, media, &Patch::default(), event))
    }

    /// Puts both machines into the state where a run goes on.
    pub(crate) fn go_on(&mut self, snapshot: &Snapshot) {
        for (word, value) in snapshot.words.iter().enumerate() {
            self.durable.poke(word as u32, *value);
        }
        for (word, value) in &snapshot.patch.words {
            self.durable.poke(*word, *value);
        }
        self.durable.state().tree = snapshot.patch.tree.clone();
        self.working.copy_from(&self.durable);
        self.working.state().tree = snapshot.patch.tree.clone();
    }
}

/// The windows in which a crash before `event` lies.
fn windows_of(media: &Media, event: &Event, is_opening: bool) -> BTreeSet<&'static str> {
    let stores = media.lines.iter().flat_map(|line| &line.stores);
    let mut windows: BTreeSet<_> = stores.map(|store| store.site.name()).collect();
    if let Event::Fence { site, .. } = event {
        windows.insert(site.name());
    }
    windows.extend(is_opening.then_some(OPENING));
    windows
}

/// The step before which a run is cut: while a process opens the store, or else.
fn choose(events: &[Event], crash: Crash) -> usize {
    let mut is_opening = true;
    let mut points = Vec::new();
    for (number, event) in events.iter().enumerate() {
        if let Event::Mark(mark) = event {
            is_opening = is_opening_after(*mark, is_opening);
        }
        if event.is_crash_point() && is_opening == crash.during_recovery {
            points.push(number);
        }
    }
    let opened = || events.iter().position(|event| matches!(event, Event::Mark(Mark::Opened(_))));
    match points.len() {
        0 => opened().unwrap_or(events.len().saturating_sub(1)),
        count => points[crash.point as usize % count],
    }
}

/// Whether a process is opening the store from this place on.
fn is_opening_after(mark: Mark, is_opening: bool) -> bool {
    match mark {
        Mark::Opened(_) => false,
        Mark::Killed => true,
        Mark::Begin(_) | Mark::End(_) => is_opening,
    }
}

/// What is expected after a place between two actions.
fn after_mark(mark: Mark, mut now: Expectation, recording: &Recording) -> Expectation {
    match mark {
        // Without a model this opening found what is wrong.
        Mark::Opened(number) => {
            if let Some(model) = recording.opened.get(number as usize) {
                return now.settled_as(model.clone());
            }
        }
        // What was in flight may have happened or not, until the next process finds out.
        Mark::Killed => {}
        Mark::Begin(number) => now.begin(recording.effects[number as usize]),
        Mark::End(_) => now.acknowledge(),
    }
    now
}

fn nth_state(media: &Media, chance: &mut Chance, wanted: u64) -> Patch {
    let mut number = 0;
    let mut found = Patch::default();
    States::new(media).for_each(chance, &mut |patch| {
        if number == wanted {
            found = patch.clone();
        }
        number += 1;
    });
    found
}

/// A violation, for people.
pub(super) fn describe(what: &str, media: &Media, patch: &Patch, event: &Event) -> Violation {
    let mut survived = Vec::new();
    let mut lost = Vec::new();
    for line in &media.lines {
        for store in &line.stores {
            let durable = media.durable.peek(store.word);
            let left = patch.words.iter().find(|(word, _)| *word == store.word);
            let text =
                format!("word {} of line {} ({})", store.word, line.number, store.site.name());
            if left.map_or(durable, |(_, value)| *value) == store.value {
                survived.push(text);
            } else {
                lost.push(text);
            }
        }
    }
    let names = patch.tree.nodes.keys().map(|name| name.display().to_string());
    let files = names.collect::<Vec<_>>().join(", ");
    Violation {
        what: format!("{what} (files: {files})"),
        before: Some(format!("{event:?}")),
        survived,
        lost,
    }
}
