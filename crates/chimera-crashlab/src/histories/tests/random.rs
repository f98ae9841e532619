//! Long histories of a simulated store that is right, and of one that is not.

use std::collections::BTreeMap;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

use crate::histories::{Event, History, Operation, Outcome, SwapOutcome};

const THREADS: usize = 8;
const KEYS: u64 = 8;

/// How a simulated store goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// A crash undoes the last write of a key.
    CrashReverts,
    /// Once, a read gives the value before the last write.
    StaleRead,
    /// Now and then an addition is not made.
    LostAddition,
    /// Something takes effect when its thread is gone.
    LateEffect,
}

#[derive(Clone, Copy)]
enum Stage {
    Idle,
    Begun(u64, Operation),
    Done(Outcome),
}

struct Simulation {
    random: Xoshiro256PlusPlus,
    fault: Fault,
    history: History,
    values: BTreeMap<u64, u64>,
    /// What a key held before, and for how long it has held what it holds.
    before: BTreeMap<u64, (Option<u64>, u32)>,
    stages: [Stage; THREADS],
    next_value: u64,
    has_failed: bool,
}

impl Simulation {
    fn new(seed: u64, fault: Fault) -> Self {
        Self {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            fault,
            history: History::new(),
            values: BTreeMap::new(),
            before: BTreeMap::new(),
            stages: [Stage::Idle; THREADS],
            next_value: 0,
            has_failed: false,
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.next_u64() % bound
    }

    fn operation(&mut self, key: u64) -> Operation {
        self.next_value += 1000;
        match self.below(10) {
            0..3 => Operation::Put(self.next_value),
            3 => Operation::Delete,
            4..6 => Operation::FetchAdd(1 + self.below(3)),
            6 => {
                let now = self.values.get(&key).copied().unwrap_or_default();
                Operation::CompareAndSwap { expected: now, new: self.next_value }
            }
            _ => Operation::Get,
        }
    }

    /// The operation takes effect.
    fn take_effect(&mut self, key: u64, operation: Operation) -> Outcome {
        let value = self.values.get(&key).copied();
        let fails = !self.has_failed && self.history.events().len() > 300;
        let (mut after, mut outcome) = match operation {
            Operation::Put(new) => (Some(new), Outcome::WasNew(value.is_none())),
            Operation::Get => (value, Outcome::Found(value)),
            Operation::Delete => (None, Outcome::WasThere(value.is_some())),
            Operation::FetchAdd(delta) => (value.map(|old| old + delta), Outcome::Previous(value)),
            Operation::CompareAndSwap { expected, new } => match value {
                None => (None, Outcome::Swap(SwapOutcome::Missing)),
                Some(now) if now == expected => (Some(new), Outcome::Swap(SwapOutcome::Swapped)),
                Some(now) => (Some(now), Outcome::Swap(SwapOutcome::Different)),
            },
        };
        match (self.fault, operation) {
            (Fault::LostAddition, Operation::FetchAdd(_))
                if value.is_some() && self.below(20) == 0 =>
            {
                after = value;
                self.has_failed = true;
            }
            (Fault::StaleRead, Operation::Get) if fails => {
                // Old enough that nothing of then is in progress any more.
                if let Some((before, since)) = self.before.get(&key).copied()
                    && before != value
                    && self.is_settled(since)
                {
                    outcome = Outcome::Found(before);
                    self.has_failed = true;
                }
            }
            _ => {}
        }
        if after != value {
            self.before.insert(key, (value, self.history.events().len() as u32));
        }
        match after {
            Some(after) => self.values.insert(key, after),
            None => self.values.remove(&key),
        };
        outcome
    }

    /// Whether every operation that runs began after event `since`, and those of then have returned.
    fn is_settled(&self, since: u32) -> bool {
        let events = &self.history.events()[since as usize..];
        (0..THREADS as u32).all(|number| {
            let returned =
                |event: &Event| matches!(event, Event::Return { thread, .. } if *thread == number);
            let begun =
                |event: &Event| matches!(event, Event::Invoke { thread, .. } if *thread == number);
            let first = events.iter().position(returned);
            first.is_some_and(|first| events[first..].iter().any(begun))
        })
    }

    fn crash(&mut self) {
        let begun = self.stages;
        self.history.crash();
        self.stages = [Stage::Idle; THREADS];
        if self.fault == Fault::CrashReverts {
            for (key, (before, since)) in std::mem::take(&mut self.before) {
                if self.has_failed || !self.is_settled(since) {
                    continue;
                }
                if before != self.values.get(&key).copied() {
                    self.has_failed = true;
                    match before {
                        Some(before) => self.values.insert(key, before),
                        None => self.values.remove(&key),
                    };
                }
            }
        }
        for key in 0..KEYS {
            self.history.read(0, key, self.values.get(&key).copied());
        }
        if self.fault == Fault::LateEffect && !self.has_failed {
            let late = begun.iter().find_map(|stage| match stage {
                Stage::Begun(key, Operation::Put(value)) => Some((*key, *value)),
                _ => None,
            });
            if let Some((key, value)) = late {
                self.values.insert(key, value);
                self.history.read(0, key, Some(value));
                self.has_failed = true;
            }
        }
    }

    fn run(mut self, events: usize) -> Self {
        while self.history.events().len() < events {
            if self.below(400) == 0 {
                self.crash();
            }
            let thread = self.below(THREADS as u64) as usize;
            self.stages[thread] = match self.stages[thread] {
                Stage::Idle => {
                    let key = self.below(KEYS);
                    let operation = self.operation(key);
                    self.history.invoke(thread as u32, key, operation);
                    Stage::Begun(key, operation)
                }
                Stage::Begun(key, operation) => Stage::Done(self.take_effect(key, operation)),
                Stage::Done(outcome) => {
                    self.history.returns(thread as u32, outcome);
                    Stage::Idle
                }
            };
        }
        self.crash();
        self
    }
}

#[test]
fn what_a_right_store_does_is_always_accepted() {
    for seed in 0..60 {
        let simulation = Simulation::new(seed, Fault::None).run(2 * THREADS * 200);
        if let Err(violation) = simulation.history.check() {
            panic!("seed {seed}: {violation}");
        }
    }
}

#[test]
fn what_a_wrong_store_does_is_noticed() {
    let faults = [Fault::CrashReverts, Fault::StaleRead, Fault::LostAddition, Fault::LateEffect];
    for fault in faults {
        let (mut failed, mut noticed) = (0, 0);
        for seed in 0..30 {
            let simulation = Simulation::new(seed, fault).run(2 * THREADS * 200);
            failed += u32::from(simulation.has_failed);
            noticed += u32::from(simulation.history.check().is_err());
        }
        assert!(failed > 20, "{fault:?}: only {failed} histories went wrong");
        // Another operation in progress may happen to explain it.
        assert!(noticed >= failed * 9 / 10, "{fault:?}: {noticed} of {failed} noticed");
    }
}
