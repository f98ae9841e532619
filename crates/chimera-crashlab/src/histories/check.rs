//! The search for an order of operations that explains a history.

use std::collections::{BTreeMap, HashSet};

use super::event::Event;
use super::model::{Operation, Outcome};
use super::violation::Violation;
use crate::durability::Loss;

/// What happened to one key.
#[derive(Default)]
struct KeyHistory {
    operations: Vec<KeyOperation>,
    steps: Vec<Step>,
}

struct KeyOperation {
    operation: Operation,
    /// The outcome, and the number of the step at which it returned.
    returned: Option<(Outcome, usize)>,
    /// The next crash may take what it stored.
    losable: bool,
}

/// A step with the number of its event, or the operation it is about.
struct Step {
    event: usize,
    kind: StepKind,
}

#[derive(Clone, Copy)]
enum StepKind {
    Invoke(usize),
    Return(usize),
    Crash,
}

impl KeyHistory {
    fn push(&mut self, event: usize, kind: StepKind) {
        self.steps.push(Step { event, kind });
    }

    /// The events of the first `steps` steps.
    fn events(&self, events: &[Event], steps: usize) -> Vec<Event> {
        self.steps[..steps].iter().map(|step| events[step.event]).collect()
    }
}

/// Checks every key by itself.
pub(super) fn check(events: &[Event], loss: Loss) -> Result<(), Violation> {
    for (key, history) in split(events, loss) {
        if Search::run(&history, history.steps.len()).is_ok() {
            continue;
        }
        // Each part of what can be explained can be explained: the search for the shortest that
        // cannot may halve.
        let (mut good, mut bad) = (0, history.steps.len());
        while bad - good > 1 {
            let middle = usize::midpoint(good, bad);
            match Search::run(&history, middle) {
                Ok(()) => good = middle,
                Err(_) => bad = middle,
            }
        }
        let values = Search::run(&history, bad).err().unwrap_or_default();
        return Err(Violation { key, events: history.events(events, bad), values });
    }
    Ok(())
}

/// The history of each key; crashes happen to all of them.
fn split(events: &[Event], loss: Loss) -> BTreeMap<u64, KeyHistory> {
    let keys = events.iter().filter_map(|event| match event {
        Event::Invoke { key, .. } => Some((*key, KeyHistory::default())),
        _ => None,
    });
    let mut histories: BTreeMap<_, _> = keys.collect();
    let mut pending = BTreeMap::new();
    // Since the last crash: what each group has begun, and of that what is a write or may be one.
    let mut writes: BTreeMap<usize, Vec<(u64, usize)>> = BTreeMap::new();
    for (number, event) in events.iter().enumerate() {
        match *event {
            Event::Invoke { thread, key, operation } => {
                let history = histories.entry(key).or_default();
                let index = history.operations.len();
                history.operations.push(KeyOperation { operation, returned: None, losable: false });
                history.push(number, StepKind::Invoke(index));
                pending.insert(thread, (key, index));
            }
            Event::Return { thread, outcome } => {
                let Some((key, index)) = pending.remove(&thread) else { continue };
                let history = histories.entry(key).or_default();
                let operation = &mut history.operations[index];
                operation.returned = Some((outcome, history.steps.len()));
                if !operation.operation.only_looks(outcome) {
                    writes.entry(loss.group(thread as usize)).or_default().push((key, index));
                }
                history.push(number, StepKind::Return(index));
            }
            Event::Crash => {
                // What has not returned may be lost with what has.
                for (thread, operation) in std::mem::take(&mut pending) {
                    let group = loss.group(thread as usize);
                    writes.entry(group).or_default().push(operation);
                }
                for writes in std::mem::take(&mut writes).values() {
                    mark_losable(&mut histories, writes, loss);
                }
                for history in histories.values_mut() {
                    history.push(number, StepKind::Crash);
                }
            }
        }
    }
    histories
}

/// Marks the writes of a group that the next crash may take: the last ones that had returned, and those in
/// progress, if it may take any.
fn mark_losable(histories: &mut BTreeMap<u64, KeyHistory>, writes: &[(u64, usize)], loss: Loss) {
    let mut left = loss.operations_max();
    for (key, index) in writes.iter().rev() {
        let Some(history) = histories.get_mut(key) else { continue };
        let operation = &mut history.operations[*index];
        if loss != Loss::Nothing && (left > 0 || operation.returned.is_none()) {
            operation.losable = true;
        }
        left = left.saturating_sub(usize::from(operation.returned.is_some()));
    }
}

/// One way in which the past can have been.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Configuration {
    /// Which of the operations in progress have taken effect, by their place.
    done: u64,
    value: Option<u64>,
    /// What a crash would leave: what the last write has stored that will not be lost.
    left: Option<u64>,
}

impl Configuration {
    /// A key with a value that is there to stay, and nothing in progress.
    fn of(value: Option<u64>) -> Self {
        Self { done: 0, value, left: value }
    }
}

/// An operation in progress.
#[derive(Clone, Copy)]
struct Pending {
    index: usize,
    operation: Operation,
    /// `None`: any, because it does not return in the part of the history that is looked at.
    outcome: Option<Outcome>,
    only_looks: bool,
    losable: bool,
}

impl Pending {
    /// Whether the operation can take effect on `value`.
    fn can_happen(&self, value: Option<u64>) -> bool {
        self.outcome.is_none_or(|outcome| self.operation.agrees(value, outcome) == Some(true))
    }

    /// What there is after the operation has taken effect in place `number`: with what it stored there to
    /// stay, and where a crash may take it, with that to be lost.
    fn happen(&self, before: Configuration, number: usize) -> impl Iterator<Item = Configuration> {
        let value = self.operation.apply(before.value);
        let after = Configuration { done: before.done | 1 << number, value, ..before };
        let writes = self.operation.writes(before.value);
        let stays = Configuration { left: if writes { value } else { before.left }, ..after };
        [stays].into_iter().chain((writes && self.losable).then_some(after))
    }
}

/// The state of a search: every configuration that explains the steps so far.
struct Search {
    configurations: HashSet<Configuration>,
    /// Operations in progress, each in a place of its own.
    places: Vec<Option<Pending>>,
}

impl Search {
    /// Whether the first `steps` steps can be explained; if not, the values that the key could have
    /// had before the last of those that could.
    fn run(history: &KeyHistory, steps: usize) -> Result<(), Vec<Option<u64>>> {
        let nothing = Configuration::of(None);
        let mut search = Self { configurations: HashSet::from([nothing]), places: Vec::new() };
        for step in &history.steps[..steps] {
            match step.kind {
                StepKind::Invoke(index) => {
                    let KeyOperation { operation, returned, losable } = history.operations[index];
                    let outcome =
                        returned.filter(|(_, at)| *at < steps).map(|(outcome, _)| outcome);
                    let only_looks = match outcome {
                        Some(outcome) => operation.only_looks(outcome),
                        None => operation == Operation::Get,
                    };
                    search.begin(Pending { index, operation, outcome, only_looks, losable });
                }
                StepKind::Return(index) => {
                    let before: Vec<_> = search.values();
                    search.finish(index);
                    if search.configurations.is_empty() {
                        return Err(before);
                    }
                }
                StepKind::Crash => search.crash(),
            }
        }
        Ok(())
    }

    fn values(&self) -> Vec<Option<u64>> {
        let values: HashSet<_> = self.configurations.iter().map(|one| one.value).collect();
        let mut values: Vec<_> = values.into_iter().collect();
        values.sort_unstable();
        values
    }

    fn begin(&mut self, pending: Pending) {
        match self.places.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = Some(pending),
            None => self.places.push(Some(pending)),
        }
        let configurations = std::mem::take(&mut self.configurations);
        self.configurations = configurations.into_iter().map(|one| self.look(one)).collect();
    }

    /// Lets everything that only looks take effect now if it can. Later would be no better: it
    /// changes nothing, so whatever happens afterwards can happen all the same.
    fn look(&self, mut configuration: Configuration) -> Configuration {
        for (number, place) in self.places.iter().enumerate() {
            let sees =
                |pending: &Pending| pending.only_looks && pending.can_happen(configuration.value);
            if place.as_ref().is_some_and(sees) {
                configuration.done |= 1 << number;
            }
        }
        configuration
    }

    /// Follows every configuration in every way, until it is `enough` or has been seen already.
    fn explore(&mut self, mut enough: impl FnMut(Configuration) -> bool) {
        let mut left: Vec<_> = self.configurations.drain().collect();
        let mut seen: HashSet<_> = left.iter().copied().collect();
        while let Some(configuration) = left.pop() {
            if enough(configuration) {
                continue;
            }
            for (number, place) in self.places.iter().enumerate() {
                let Some(pending) = place else { continue };
                let is_done = configuration.done >> number & 1 == 1;
                if is_done || pending.only_looks || !pending.can_happen(configuration.value) {
                    continue;
                }
                for next in pending.happen(configuration, number) {
                    let next = self.look(next);
                    if seen.insert(next) {
                        left.push(next);
                    }
                }
            }
        }
    }

    /// The operation returns: only where it has taken effect can the past have been.
    fn finish(&mut self, index: usize) {
        let is_it = |place: &Option<Pending>| place.is_some_and(|pending| pending.index == index);
        let Some(number) = self.places.iter().position(is_it) else { return };
        let mut next = HashSet::new();
        self.explore(|configuration| {
            let is_done = configuration.done >> number & 1 == 1;
            if is_done {
                let done = configuration.done & !(1 << number);
                next.insert(Configuration { done, ..configuration });
            }
            is_done
        });
        self.configurations = next;
        self.places[number] = None;
    }

    /// Whatever is in progress has taken effect by now or never will; of that, what is not lost is left.
    fn crash(&mut self) {
        let mut next = HashSet::new();
        self.explore(|Configuration { left, .. }| {
            next.insert(Configuration::of(left));
            false
        });
        self.configurations = next;
        self.places.clear();
    }
}
