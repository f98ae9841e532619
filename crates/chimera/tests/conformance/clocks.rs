//! Clocks that go back: the calendar, which may, and the clock, which never does.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chimera::metrics::{FILE, Published};
use chimera::{Db, Durability, Options};
use chimera_pmem::{Environment, Hardware, SteppedEnvironment};

use crate::configurations::Configuration;
use crate::harness::{Test, tests};
use crate::records::{Records, assert_holds};
use crate::tools::{Chance, assert_sound, scratch, scratch_on_disk};

pub(crate) const TESTS: &[Test] = tests![
    a_clock_that_goes_back_stops_nothing,
    a_clock_that_goes_back_stops_nothing_on_a_plain_file,
    a_pass_of_the_scrub_comes_in_time_after_the_clock_went_back,
];

const SECOND_NS: u64 = 1_000_000_000;
const HOUR_NS: u64 = 3600 * SECOND_NS;
const SCRUB_EVERY: Duration = Duration::from_secs(64);

/// Everything that looks at a clock.
fn options(configuration: &Configuration) -> Options {
    // The others have no such mode.
    let is_protected = configuration.name.starts_with("chameleon");
    let threshold = is_protected.then_some(Duration::from_nanos(1));
    configuration
        .options()
        .reclaim_percent(25)
        .scrub_every(SCRUB_EVERY)
        .publish_metrics(Duration::from_secs(1))
        .latency_sampling(1)
        .chameleon(|chameleon| chameleon.get_protect(threshold))
}

/// Two hours after the machine was started.
fn machine() -> Arc<SteppedEnvironment> {
    let machine = Arc::new(SteppedEnvironment::new(1));
    machine.advance(2 * HOUR_NS);
    machine
}

fn open(machine: &Arc<SteppedEnvironment>, path: &Path, options: &Options) -> Db {
    let pmem = Hardware::new(options.hardware_options()).expect("address space");
    let environment: Arc<dyn Environment> = machine.clone();
    Db::open_on(pmem, &environment, path, options).expect("a store")
}

/// Runs the tasks until none has anything to do.
fn settle(machine: &SteppedEnvironment) {
    let is_at_rest = (0..100_000).any(|_| !machine.step_tasks());
    assert!(is_at_rest, "a task never rests");
}

fn go_back_again_and_again(configuration: &Configuration, path: &Path, options: &Options) {
    let machine = machine();
    let db = open(&machine, path, options);
    let (mut session, mut records, mut chance) = (db.session(), Records::new(), Chance::new(7));
    for round in 0..60 {
        for _ in 0..40 {
            let number = chance.below(60);
            let (key, value) = (configuration.key(number), configuration.value(number, round));
            match chance.below(4) {
                0 => {
                    session.delete(&key).expect("delete");
                    records.remove(&key);
                }
                1 => assert_eq!(session.get(&key).expect("get"), records.get(&key).cloned()),
                _ => {
                    session.put(&key, &value).expect("room");
                    records.insert(key, value);
                }
            }
        }
        settle(&machine);
        machine.advance(chance.below(10 * SECOND_NS));
        if round % 7 == 3 {
            // In the second half further than to where it began.
            machine.rewind(chance.below(round * HOUR_NS / 16));
            machine.set_unix_seconds(1_000_000_000 - 86_400 * round);
        }
        settle(&machine);
        db.stats();
    }
    machine.advance(2 * SECOND_NS);
    settle(&machine);
    let text = fs::read_to_string(path.join(FILE)).expect("published");
    let published = Published::parse(&text).expect("metrics");
    assert!(published.value("chimera_uptime_seconds", &[]).expect("is there") < 86_400.0);
    drop(session);
    assert_holds(&db, &records);
    db.sync().expect("synced");
    db.close().expect("nobody else has it");
    let db = open(&machine, path, options);
    assert_holds(&db, &records);
    assert_sound(&db);
}

fn a_clock_that_goes_back_stops_nothing(configuration: &Configuration) {
    let directory = scratch();
    go_back_again_and_again(configuration, directory.path(), &options(configuration));
}

fn a_clock_that_goes_back_stops_nothing_on_a_plain_file(configuration: &Configuration) {
    let directory = scratch_on_disk();
    let group = Durability::Group { max_delay: Duration::from_millis(50) };
    let options = options(configuration).durability(group).journal_bytes(64 << 10);
    go_back_again_and_again(configuration, directory.path(), &options);
}

fn a_pass_of_the_scrub_comes_in_time_after_the_clock_went_back(configuration: &Configuration) {
    let directory = scratch();
    let machine = machine();
    let db = open(&machine, directory.path(), &options(configuration).reclaim_percent(0));
    configuration.fill(&mut db.session(), 0..100, 1);
    let passes = || db.stats().scrub.passes;
    let run = |seconds: u64| {
        for _ in 0..4 * seconds {
            machine.advance(SECOND_NS / 4);
            settle(&machine);
        }
    };
    settle(&machine);
    run(3 * SCRUB_EVERY.as_secs());
    let before = passes();
    assert!(before >= 2, "{before} passes in three times the period");
    // In the middle of a pass, and by much more than it takes.
    run(20);
    machine.rewind(HOUR_NS);
    machine.set_unix_seconds(5);
    run(2 * SCRUB_EVERY.as_secs());
    assert!(passes() > before, "{} passes, {before} before the clock went back", passes());
    let last = db.scrub(None).last_pass.expect("a pass");
    assert!(last.ended_unix_seconds < 1000, "by the calendar as it is now: {last:?}");
}
