//! Nothing happens by itself.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::super::{Environment, OpenMode, SteppedEnvironment, Task, TaskBody, TaskStep};

/// A body that notes each step in `log` and then asks for what `steps` says, `Wait` at the end.
fn noting(log: &Arc<Mutex<Vec<String>>>, name: &'static str, steps: Vec<TaskStep>) -> TaskBody {
    let log = Arc::clone(log);
    let mut steps = VecDeque::from(steps);
    Box::new(move || {
        log.lock().unwrap().push(name.to_owned());
        steps.pop_front().unwrap_or(TaskStep::Wait)
    })
}

/// What happened since the last look.
fn taken(log: &Arc<Mutex<Vec<String>>>) -> String {
    log.lock().unwrap().drain(..).collect::<Vec<_>>().join(" ")
}

#[test]
fn time_moves_by_hand() {
    let environment = SteppedEnvironment::in_memory(1);
    assert_eq!(environment.now_ns(), 0);
    std::thread::sleep(Duration::from_millis(1));
    assert_eq!(environment.now_ns(), 0);
    environment.advance(5);
    environment.advance(7);
    assert_eq!(environment.now_ns(), 12);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        let environment = SteppedEnvironment::in_memory(seed);
        let log = Arc::new(Mutex::new(Vec::new()));
        let steps = [TaskStep::Again, TaskStep::WaitAtMost(Duration::from_nanos(10))];
        let _tasks = ["a", "b", "c"]
            .map(|name| environment.spawn(name, noting(&log, name, steps.to_vec())).unwrap());
        for _ in 0..50 {
            let step = environment.random_u64() % 8;
            environment.advance(step);
            environment.step_tasks();
            log.lock().unwrap().push(step.to_string());
        }
        (taken(&log), environment.boot_id(), environment.now_ns())
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

#[test]
fn tasks_run_when_stepped_in_order_of_their_start() {
    let environment = SteppedEnvironment::in_memory(1);
    let log = Arc::new(Mutex::new(Vec::new()));
    let spawn = |name, steps: &[TaskStep]| {
        environment.spawn(name, noting(&log, name, steps.to_vec())).unwrap()
    };
    let first = spawn("first", &[TaskStep::Again]);
    let second = spawn("second", &[TaskStep::Wait, TaskStep::Done]);
    assert_eq!(taken(&log), "", "not before");
    assert!(environment.step_tasks());
    assert_eq!(taken(&log), "first second");
    assert!(environment.step_tasks());
    assert_eq!(taken(&log), "first");
    assert!(!environment.step_tasks(), "all wait");
    second.wake();
    assert!(environment.step_tasks());
    assert_eq!(taken(&log), "second");
    second.wake();
    assert!(!environment.step_tasks(), "the second is done");
    first.wake();
    first.stop();
    first.stop();
    assert!(!environment.step_tasks(), "the first is stopped");
    assert_eq!(taken(&log), "");
}

#[test]
fn timed_waits_follow_the_stepped_clock() {
    let environment = SteppedEnvironment::in_memory(1);
    let log = Arc::new(Mutex::new(Vec::new()));
    let wait = TaskStep::WaitAtMost(Duration::from_nanos(100));
    let task = environment.spawn("timer", noting(&log, "timer", vec![wait; 3])).unwrap();
    assert!(environment.step_tasks());
    environment.advance(99);
    assert!(!environment.step_tasks());
    environment.advance(1);
    assert!(environment.step_tasks());
    task.wake();
    assert!(environment.step_tasks(), "woken before its time");
    assert_eq!(taken(&log), "timer timer timer");
}

#[test]
fn a_wake_up_during_a_step_causes_another() {
    let environment = SteppedEnvironment::in_memory(1);
    let handle: Arc<Mutex<Option<Box<dyn Task>>>> = Arc::default();
    let runs = Arc::new(AtomicU32::new(0));
    let (its_own, counter) = (Arc::clone(&handle), Arc::clone(&runs));
    let task = environment
        .spawn(
            "self",
            Box::new(move || {
                if counter.fetch_add(1, Ordering::Relaxed) == 0 {
                    its_own.lock().unwrap().as_ref().unwrap().wake();
                }
                TaskStep::Wait
            }),
        )
        .unwrap();
    *handle.lock().unwrap() = Some(task);
    while environment.step_tasks() {}
    assert_eq!(runs.load(Ordering::Relaxed), 2);
}

#[test]
fn a_task_may_stop_itself_and_start_others() {
    let environment = Arc::new(SteppedEnvironment::in_memory(1));
    let handle: Arc<Mutex<Option<Box<dyn Task>>>> = Arc::default();
    let children: Arc<Mutex<Vec<Box<dyn Task>>>> = Arc::default();
    let log = Arc::new(Mutex::new(Vec::new()));
    let (outer, inner) = (Arc::clone(&environment), Arc::clone(&log));
    let (its_own, its_children) = (Arc::clone(&handle), Arc::clone(&children));
    let task = environment
        .spawn(
            "parent",
            Box::new(move || {
                inner.lock().unwrap().push("parent".to_owned());
                let child = outer.spawn("child", noting(&inner, "child", vec![])).unwrap();
                its_children.lock().unwrap().push(child);
                its_own.lock().unwrap().as_ref().unwrap().stop();
                TaskStep::Again
            }),
        )
        .unwrap();
    *handle.lock().unwrap() = Some(task);
    while environment.step_tasks() {}
    assert_eq!(taken(&log), "parent child");
}

#[test]
fn dropping_a_handle_drops_the_body() {
    let environment = SteppedEnvironment::in_memory(1);
    let owned = Arc::new(());
    let kept = Arc::clone(&owned);
    let task = environment
        .spawn(
            "owner",
            Box::new(move || {
                let _ = &kept;
                TaskStep::Again
            }),
        )
        .unwrap();
    environment.step_tasks();
    assert_eq!(Arc::strong_count(&owned), 2);
    drop(task);
    assert_eq!(Arc::strong_count(&owned), 1);
    assert!(!environment.step_tasks());
}

#[test]
fn a_panic_reaches_whoever_steps() {
    let environment = SteppedEnvironment::in_memory(1);
    let _task = environment.spawn("bad", Box::new(|| panic!("found it"))).unwrap();
    let cause = catch_unwind(AssertUnwindSafe(|| environment.step_tasks())).unwrap_err();
    assert_eq!(*cause.downcast_ref::<&str>().unwrap(), "found it");
    assert!(!environment.step_tasks(), "the task is over");
}

#[test]
fn parallel_work_runs_in_order() {
    let environment = SteppedEnvironment::in_memory(1);
    let order = Mutex::new(Vec::new());
    environment.run_parallel(4, &|number| order.lock().unwrap().push(number));
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3]);
    assert_eq!(environment.parallelism(), 1);
}

#[test]
fn waiting_for_ever_is_noticed() {
    let environment = SteppedEnvironment::in_memory(1);
    environment.relax(0);
    let for_ever = || (0..u32::MAX).for_each(|attempt| environment.relax(attempt));
    let cause = catch_unwind(AssertUnwindSafe(for_ever)).unwrap_err();
    assert!(cause.downcast_ref::<&str>().unwrap().contains("would wait for ever"));
}

#[test]
fn a_hook_can_end_a_wait() {
    let environment = Arc::new(SteppedEnvironment::in_memory(1));
    let released = Arc::new(AtomicU32::new(0));
    let flag = Arc::clone(&released);
    let _task = environment
        .spawn(
            "releaser",
            Box::new(move || {
                flag.store(1, Ordering::Relaxed);
                TaskStep::Wait
            }),
        )
        .unwrap();
    let stepper = Arc::downgrade(&environment);
    environment.set_relax_hook(move |_| {
        stepper.upgrade().unwrap().step_tasks();
    });
    let mut attempt = 0;
    while released.load(Ordering::Relaxed) == 0 {
        environment.relax(attempt);
        attempt += 1;
    }
    assert_eq!(attempt, 1);
}

#[test]
fn a_reboot_changes_the_boot_id() {
    let environment = SteppedEnvironment::in_memory(1);
    let before = environment.boot_id();
    assert_eq!(environment.boot_id(), before);
    environment.reboot();
    assert_ne!(environment.boot_id(), before);
}

#[test]
fn files_are_real_unless_asked_otherwise() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    SteppedEnvironment::new(1).open(&path, OpenMode::CreateNew).unwrap();
    assert!(path.exists());
    let memory = SteppedEnvironment::in_memory(1);
    memory.open(Path::new("other"), OpenMode::CreateNew).unwrap();
    assert!(!Path::new("other").exists());
    assert_eq!(memory.list(Path::new("/")).unwrap(), [Path::new("other")]);
}

#[test]
fn a_clock_that_is_rewound_lets_tasks_wait_no_longer() {
    let environment = SteppedEnvironment::in_memory(1);
    environment.advance(10_000);
    let steps = Arc::new(AtomicU32::new(0));
    let counted = steps.clone();
    let body = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        TaskStep::WaitAtMost(Duration::from_nanos(100))
    };
    let _task = environment.spawn("waits", Box::new(body)).unwrap();
    while environment.step_tasks() {}
    environment.rewind(4000);
    assert_eq!(environment.now_ns(), 6000);
    environment.advance(99);
    assert!(!environment.step_tasks());
    environment.advance(1);
    assert!(environment.step_tasks());
    assert_eq!(steps.load(Ordering::Relaxed), 2);
    environment.rewind(1 << 40);
    assert_eq!(environment.now_ns(), 0);
    environment.advance(100);
    assert!(environment.step_tasks());
}

#[test]
fn the_calendar_is_set_apart_from_the_clock() {
    let environment = SteppedEnvironment::in_memory(1);
    environment.advance(5_000_000_000);
    environment.set_unix_seconds(3);
    assert_eq!((environment.unix_seconds(), environment.now_ns()), (3, 5_000_000_000));
    environment.advance(2_000_000_000);
    assert_eq!(environment.unix_seconds(), 5);
}
