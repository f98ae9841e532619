//! Clock, chance and threads of the machine.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Barrier, OnceLock};
use std::time::{Duration, Instant};

use super::super::{Environment, RealEnvironment, Task, TaskStep};

/// Long enough for a slow machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

fn wait_until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "waited too long");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn the_clock_moves_on() {
    let environment = RealEnvironment::new();
    let start = environment.now_ns();
    std::thread::sleep(Duration::from_millis(5));
    let elapsed = environment.now_ns() - start;
    assert!(elapsed >= 5_000_000, "{elapsed}");
}

#[test]
fn chance_follows_from_a_seed_or_from_nothing() {
    let draw = |environment: &RealEnvironment| -> Vec<u64> {
        (0..100).map(|_| environment.random_u64()).collect()
    };
    let first = draw(&RealEnvironment::with_seed(7));
    assert_eq!(first, draw(&RealEnvironment::with_seed(7)));
    assert_ne!(first, draw(&RealEnvironment::with_seed(8)));
    assert_ne!(draw(&RealEnvironment::new()), draw(&RealEnvironment::new()));
    let distinct: std::collections::HashSet<_> = first.iter().collect();
    assert_eq!(distinct.len(), 100);
    // The reference output of SplitMix64 for seed 0.
    assert_eq!(RealEnvironment::with_seed(0).random_u64(), 0xe220_a839_7b1d_cdaf);
}

#[test]
fn the_machine_is_described() {
    let environment = RealEnvironment::new();
    assert_eq!(environment.boot_id(), RealEnvironment::new().boot_id());
    assert_ne!(environment.boot_id(), 0);
    assert_eq!(environment.process_id(), std::process::id());
    assert!(environment.parallelism() >= 1);
}

#[test]
fn a_task_runs_until_done() {
    let environment = RealEnvironment::new();
    let runs = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&runs);
    let task = environment
        .spawn(
            "counting",
            Box::new(move || {
                let thread = std::thread::current();
                assert!(thread.name().is_some_and(|name| name.starts_with("chimera-worker-")));
                if counter.fetch_add(1, Ordering::Relaxed) + 1 == 10 {
                    TaskStep::Done
                } else {
                    TaskStep::Again
                }
            }),
        )
        .unwrap();
    wait_until(|| runs.load(Ordering::Relaxed) == 10);
    task.wake();
    task.stop();
    task.stop();
    assert_eq!(runs.load(Ordering::Relaxed), 10);
}

#[test]
fn no_wake_up_is_lost() {
    let environment = RealEnvironment::new();
    let asked = Arc::new(AtomicU32::new(0));
    let (sender, receiver) = mpsc::channel();
    let its_own = Arc::clone(&asked);
    let task = environment
        .spawn(
            "echo",
            Box::new(move || {
                sender.send(its_own.load(Ordering::Relaxed)).unwrap();
                TaskStep::Wait
            }),
        )
        .unwrap();
    for request in 1..=10_000 {
        asked.store(request, Ordering::Relaxed);
        task.wake();
        // Some step after the wake-up sees the request; earlier ones may have seen less.
        while receiver.recv_timeout(PATIENCE).unwrap() != request {}
    }
}

#[test]
fn a_waiting_task_sleeps() {
    let environment = RealEnvironment::new();
    let runs = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&runs);
    let task = environment
        .spawn(
            "sleeper",
            Box::new(move || {
                counter.fetch_add(1, Ordering::Relaxed);
                TaskStep::Wait
            }),
        )
        .unwrap();
    wait_until(|| runs.load(Ordering::Relaxed) == 1);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    task.wake();
    wait_until(|| runs.load(Ordering::Relaxed) == 2);
}

#[test]
fn a_timed_wait_ends_by_itself() {
    let environment = RealEnvironment::new();
    let runs = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&runs);
    let start = Instant::now();
    let _task = environment
        .spawn(
            "timer",
            Box::new(move || {
                counter.fetch_add(1, Ordering::Relaxed);
                TaskStep::WaitAtMost(Duration::from_millis(10))
            }),
        )
        .unwrap();
    wait_until(|| runs.load(Ordering::Relaxed) >= 4);
    assert!(start.elapsed() >= Duration::from_millis(30));
}

#[test]
fn dropping_a_handle_stops_the_task() {
    struct Guard(Arc<AtomicBool>);
    impl Drop for Guard {
        fn drop(&mut self) {
            self.0.store(false, Ordering::Relaxed);
        }
    }

    let environment = RealEnvironment::new();
    let alive = Arc::new(AtomicBool::new(true));
    let guard = Guard(Arc::clone(&alive));
    let task = environment
        .spawn(
            "idle",
            Box::new(move || {
                let _ = &guard;
                TaskStep::WaitAtMost(Duration::from_secs(3600))
            }),
        )
        .unwrap();
    assert!(alive.load(Ordering::Relaxed));
    drop(task);
    assert!(!alive.load(Ordering::Relaxed), "the body is gone when the handle is");
}

#[test]
fn a_panic_ends_the_task_only() {
    let environment = RealEnvironment::new();
    let runs = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&runs);
    let task = environment
        .spawn(
            "panicking",
            Box::new(move || {
                counter.fetch_add(1, Ordering::Relaxed);
                panic!("a task's own fault");
            }),
        )
        .unwrap();
    wait_until(|| runs.load(Ordering::Relaxed) == 1);
    task.wake();
    task.stop();
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

#[test]
fn a_task_may_stop_itself() {
    let environment = RealEnvironment::new();
    let handle: Arc<OnceLock<Box<dyn Task>>> = Arc::new(OnceLock::new());
    let runs = Arc::new(AtomicU32::new(0));
    let (its_own, counter) = (Arc::clone(&handle), Arc::clone(&runs));
    let task = environment
        .spawn(
            "self-stopping",
            Box::new(move || {
                if let Some(handle) = its_own.get() {
                    counter.fetch_add(1, Ordering::Relaxed);
                    handle.stop();
                }
                TaskStep::Again
            }),
        )
        .unwrap();
    handle.set(task).unwrap();
    wait_until(|| runs.load(Ordering::Relaxed) > 0);
    std::thread::sleep(Duration::from_millis(10));
    assert_eq!(runs.load(Ordering::Relaxed), 1, "no step after the one that stopped it");
}

#[test]
fn processor_time_is_the_tasks_own() {
    let environment = RealEnvironment::new();
    let done = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&done);
    let busy = environment
        .spawn(
            "busy",
            Box::new(move || {
                let start = Instant::now();
                while start.elapsed() < Duration::from_millis(50) {}
                flag.store(true, Ordering::Relaxed);
                TaskStep::Wait
            }),
        )
        .unwrap();
    let idle = environment.spawn("idle", Box::new(|| TaskStep::Wait)).unwrap();
    wait_until(|| done.load(Ordering::Relaxed));
    // The step's time is noted when it ends, a moment after the flag.
    wait_until(|| busy.processor_time().unwrap() > Duration::from_millis(5));
    assert!(idle.processor_time().unwrap() < Duration::from_millis(5));
}

#[test]
fn parallel_work_is_done_once_and_side_by_side() {
    let environment = RealEnvironment::new();
    let done: [AtomicUsize; 8] = Default::default();
    // The barrier opens only if all eight run at the same time.
    let barrier = Barrier::new(8);
    environment.run_parallel(8, &|number| {
        barrier.wait();
        done[number].fetch_add(1, Ordering::Relaxed);
    });
    assert!(done.iter().all(|times| times.load(Ordering::Relaxed) == 1));
    environment.run_parallel(0, &|_| panic!("nothing to do"));
    let caller = std::thread::current().id();
    environment.run_parallel(1, &|_| assert_eq!(std::thread::current().id(), caller));
}

#[test]
fn a_panic_in_parallel_work_is_passed_on() {
    let environment = RealEnvironment::new();
    let finished = AtomicUsize::new(0);
    for culprit in 0..3 {
        let run = std::panic::AssertUnwindSafe(|| {
            environment.run_parallel(3, &|number| {
                assert_ne!(number, culprit, "the culprit");
                finished.fetch_add(1, Ordering::Relaxed);
            });
        });
        let cause = std::panic::catch_unwind(run).unwrap_err();
        assert!(cause.downcast_ref::<String>().unwrap().contains("the culprit"));
    }
    assert_eq!(finished.load(Ordering::Relaxed), 6, "the others finish first");
}

#[test]
fn relaxing_takes_longer_and_longer_but_ends() {
    let environment = RealEnvironment::new();
    for attempt in (0..40).chain([1_000, u32::MAX]) {
        let start = Instant::now();
        environment.relax(attempt);
        assert!(start.elapsed() < Duration::from_secs(1), "attempt {attempt}");
    }
}
