//! Processes that are killed while their machine lives on: what a kill leaves, and who is caught by it.

use std::sync::Arc;

use chimera_pmem::{Environment, SteppedEnvironment};

use super::case::{Action, Case, Crash, Epoch};
use super::expectation::Expectation;
use super::lab::{Lab, Points};
use super::model::{Effect, Model};
use super::record::{Recording, record};
use super::replay;
use crate::durability::End;
use crate::linter::Linter;
use crate::media::Media;
use crate::simulated::{Event, Machine, Mark, Mutation, SimulatedFiles};
use crate::subject::{Bug, Fixture, Form, Shape, Subject};

/// Two places for each key; recovery writes nothing back.
const SUBJECT: Fixture = Fixture { bug: Bug::CommitFlag, form: Form::Sound };
/// More steps than any operation of it has.
const STEPS: u8 = 12;

fn put(value: u64) -> Action {
    Action::Put { session: 0, key: 0, value }
}

fn kill(after: u8) -> Action {
    Action::Kill { after }
}

/// Runs actions on a new machine.
fn run(actions: &[Action], mutation: Option<Mutation>) -> (Arc<Machine>, Recording) {
    let machine = Machine::new(SUBJECT.image_bytes());
    machine.set_mutation(mutation);
    let files = Arc::new(SimulatedFiles(machine.clone()));
    let environment: Arc<dyn Environment> = Arc::new(SteppedEnvironment::with_files(1, files));
    let model = Model::new(SUBJECT.keys());
    let nothing = Expectation::certain(model, SUBJECT.loss(End::PowerLoss));
    let recording = record(&SUBJECT, &machine, &environment, &nothing, actions, &|| ());
    assert_eq!(recording.failure, None);
    (machine, recording)
}

/// The steps of a trace, as text, from the begin of an action up to the next mark.
fn steps_of(machine: &Machine, number: u32) -> Vec<String> {
    let state = machine.state();
    let is_begin =
        |event: &Event| matches!(event, Event::Mark(Mark::Begin(begun)) if *begun == number);
    let steps = state.events.iter().skip_while(|event| !is_begin(event)).skip(1);
    let steps = steps.take_while(|event| !matches!(event, Event::Mark(_)));
    steps.map(|step| format!("{step:?}")).collect()
}

fn marks(machine: &Machine) -> Vec<Mark> {
    let state = machine.state();
    let mark = |event: &Event| match event {
        Event::Mark(mark) => Some(*mark),
        _ => None,
    };
    state.events.iter().filter_map(mark).collect()
}

#[test]
fn a_killed_operation_has_made_its_first_steps_and_no_other() {
    let (whole, _) = run(&[put(1), Action::Sync, put(2)], None);
    let whole = steps_of(&whole, 2);
    let mut lengths = Vec::new();
    for after in 0..STEPS {
        let (machine, recording) = run(&[put(1), kill(after), put(2)], None);
        let steps = steps_of(&machine, 2);
        assert_eq!(steps, whole[..steps.len()], "killed after {after} steps");
        lengths.push(steps.len());
        let value = recording.opened[1].get(0);
        let both = [1, 2].map(|number| Some(super::case::value(number)));
        assert!(both.contains(&value), "killed after {after} steps: {value:?}");
        // Nothing was stored that is not in the trace.
        let mut media = Media::new(Machine::new(SUBJECT.image_bytes()));
        let mut linter = Linter::new(false);
        let state = machine.state();
        state.events.iter().for_each(|event| media.apply(event, &state.changes));
        drop(state);
        linter.compare(&media, &machine);
        assert_eq!(linter.into_found(), []);
    }
    assert!(lengths.is_sorted());
    assert_eq!((lengths[0], lengths[usize::from(STEPS) - 1]), (1, whole.len()));
}

#[test]
fn a_kill_hits_what_comes_next() {
    use Mark::{Begin, End, Killed, Opened};
    let (machine, recording) = run(&[kill(0), put(1), kill(99), put(2), kill(0)], None);
    let expected =
        [Killed, Opened(0), Begin(1), End(1), Begin(3), End(3), Killed, Killed, Opened(1)];
    assert_eq!(marks(&machine), expected);
    assert_eq!(recording.effects.len(), 5);
    assert_eq!(recording.effects[2], Effect::Nothing);
    let (machine, _) = run(&[put(1), kill(0)], None);
    assert_eq!(marks(&machine), [Opened(0), Begin(0), End(0), Killed, Opened(1)]);
    let (machine, _) = run(&[put(1), kill(0), kill(2), kill(99), put(2)], None);
    let expected =
        [Opened(0), Begin(0), End(0), Killed, Killed, Killed, Opened(1), Begin(4), End(4)];
    assert_eq!(marks(&machine), expected);
}

#[test]
fn what_a_mutation_holds_back_is_forgotten_at_a_kill() {
    let mutation: Mutation = "delay-flush fixture.commit_flag.flag".parse().expect("a mutation");
    let flushes = |actions: &[Action]| {
        let (machine, _) = run(actions, Some(mutation));
        let state = machine.state();
        let of_site = |event: &&Event| matches!(event, Event::Flush { site, .. } if site.name() == mutation.site);
        state.events.iter().filter(of_site).count()
    };
    assert_eq!(flushes(&[put(1), put(2)]), 2);
    // Each put of a new value: a copy, a flush, a fence, a store, a flush that is held back, and a fence.
    let killed = |after| flushes(&[put(1), kill(after), put(2), put(3)]);
    assert_eq!(killed(5), killed(0));
    assert_eq!(killed(6), killed(5) + 1);
}

/// A case with one epoch that is cut while a process opens the store, or else.
fn case(actions: Vec<Action>) -> Case {
    let crash = Crash { during_recovery: false, point: 0, state: 0 };
    let epochs = vec![Epoch { actions, crash }];
    Case { mutation: None, shape: Shape::Fixture(SUBJECT), seed: 1, epochs }
}

#[test]
fn recovery_that_does_not_write_back_what_it_found_is_caught() {
    let violations: Vec<_> =
        (0..STEPS).filter_map(|after| replay(&case(vec![put(1), kill(after), put(2)]))).collect();
    assert!(!violations.is_empty());
    for violation in violations {
        assert!(violation.what.contains("but may hold only"), "{violation:?}");
        assert!(violation.lost[0].contains("fixture.commit_flag.flag"), "{violation:?}");
    }
    // Between two operations everything is durable.
    assert!(replay(&case(vec![put(1), kill(99), put(2), put(3), kill(0)])).is_none());
}

#[test]
fn a_power_loss_may_hit_the_opening_after_a_kill() {
    let actions = [put(1), kill(99), put(2), put(3)];
    let mut killed = 0;
    for point in 0..20 {
        let mut lab = Lab::new(&SUBJECT, 1, None);
        let nothing =
            Expectation::certain(Model::new(SUBJECT.keys()), SUBJECT.loss(End::PowerLoss));
        let crash = Crash { during_recovery: true, point, state: 0 };
        let snapshot = lab.epoch(&nothing, &actions, crash, Points::None, 1).expect("no violation");
        assert_eq!((lab.counts.nested, lab.counts.kills), (1, 1));
        killed += u64::from(snapshot.expectation.model().get(0).is_some());
    }
    assert!(killed > 0 && killed < 20, "{killed} of 20 cuts are behind the kill");
}
