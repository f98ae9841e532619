//! Who begins when, and that nothing is lost.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use super::schedule::{Next, Schedule};
use super::{EXTRA, LINGER, PATIENCE, WorkerTask, Workers};
use crate::environment::{Task, TaskStep};

/// Long enough for a slow machine; a test that waits this long has failed.
const LONG: Duration = Duration::from_secs(20);

fn workers(processors: usize) -> &'static Workers {
    Box::leak(Box::new(Workers::new(processors)))
}

fn wait_until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < LONG, "waited too long");
        thread::sleep(Duration::from_millis(1));
    }
}

fn task(workers: &'static Workers, body: impl FnMut() -> TaskStep + Send + 'static) -> WorkerTask {
    workers.spawn("test", Box::new(body)).unwrap()
}

/// A task that counts its steps.
fn counting(workers: &'static Workers, step: TaskStep) -> (WorkerTask, Arc<AtomicU32>) {
    let steps = Arc::new(AtomicU32::new(0));
    let its_own = steps.clone();
    let task = task(workers, move || {
        its_own.fetch_add(1, Relaxed);
        step
    });
    (task, steps)
}

/// The number of the task that begins next.
fn begin(schedule: &mut Schedule, now: Instant, processors: usize) -> Result<u64, Option<Instant>> {
    match schedule.next(now, processors) {
        Next::Run(mut job) => {
            let number = job.number();
            let step = job.run();
            assert!(schedule.finish(job, step, now).is_none());
            Ok(number)
        }
        Next::Wait(until) => Err(until),
    }
}

#[test]
fn tasks_that_have_more_to_do_take_turns() {
    let (mut schedule, now) = (Schedule::default(), Instant::now());
    let numbers: Vec<u64> =
        (0..3).map(|_| schedule.add("turn", Box::new(|| TaskStep::Again), now).0).collect();
    for _ in 0..5 {
        for &number in &numbers {
            assert_eq!(begin(&mut schedule, now, 1), Ok(number));
        }
    }
}

#[test]
fn timers_come_first_and_nothing_comes_never() {
    let (mut schedule, start) = (Schedule::default(), Instant::now());
    let time = Duration::from_millis(1);
    let timed = schedule.add("timed", Box::new(move || TaskStep::WaitAtMost(time)), start).0;
    let busy = schedule.add("busy", Box::new(|| TaskStep::Again), start).0;
    assert_eq!(begin(&mut schedule, start, 1), Ok(timed));
    assert_eq!(begin(&mut schedule, start, 1), Ok(busy));
    assert_eq!(schedule.earliest_timer(), Some(start + time));
    assert_eq!(begin(&mut schedule, start + time, 1), Ok(timed), "it is due");
    // A timer that is always due lets the other one in, once that has waited.
    let late = start + time + PATIENCE;
    let steps: Vec<_> =
        (1..9).map(|step| begin(&mut schedule, late + step * PATIENCE, 1)).collect();
    assert!(steps.contains(&Ok(busy)) && steps.contains(&Ok(timed)), "{steps:?}");
}

#[test]
fn more_steps_than_processors_begin_only_when_they_must() {
    let (mut schedule, start) = (Schedule::default(), Instant::now());
    for _ in 0..3 {
        schedule.add("task", Box::new(|| TaskStep::Wait), start);
    }
    let first = schedule.next(start, 1);
    assert!(matches!(first, Next::Run(_)));
    assert_eq!(begin(&mut schedule, start, 1), Err(Some(start + PATIENCE)));
    assert_eq!(begin(&mut schedule, start + PATIENCE, 1), Ok(1));
    assert_eq!(begin(&mut schedule, start, 2), Ok(2), "there is a second processor");
    assert_eq!(begin(&mut schedule, start, 2), Err(None));
    assert!(schedule.wake(1, start) && !schedule.wake(1, start), "once is enough");
    assert!(!schedule.wake(0, start), "it runs");
    assert!(schedule.stop(1).is_some() && schedule.stop(1).is_none());
    assert_eq!(begin(&mut schedule, start, 2), Err(None), "the one that was woken is gone");
}

#[test]
fn many_tasks_share_few_threads_which_end() {
    let workers = workers(2);
    let tasks: Vec<_> = (0..500).map(|_| counting(workers, TaskStep::Wait)).collect();
    wait_until(|| tasks.iter().all(|(_, steps)| steps.load(Relaxed) == 1));
    for (task, _) in &tasks {
        task.wake();
    }
    wait_until(|| tasks.iter().all(|(_, steps)| steps.load(Relaxed) == 2));
    assert!(workers.lock().workers <= 2 + EXTRA);
    // One stays for those that are left.
    thread::sleep(LINGER);
    wait_until(|| workers.lock().workers == 1);
    tasks[17].0.wake();
    wait_until(|| tasks[17].1.load(Relaxed) == 3);
    drop(tasks);
    wait_until(|| workers.lock().workers == 0);
    let (_task, steps) = counting(workers, TaskStep::Done);
    wait_until(|| steps.load(Relaxed) == 1);
}

#[test]
fn steps_that_are_blocked_do_not_stop_others() {
    let workers = workers(2);
    let (release, blocked) = (Arc::new(Barrier::new(9)), Arc::new(AtomicU32::new(0)));
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let (release, blocked) = (release.clone(), blocked.clone());
            task(workers, move || {
                blocked.fetch_add(1, Relaxed);
                release.wait();
                TaskStep::Done
            })
        })
        .collect();
    wait_until(|| blocked.load(Relaxed) == 8);
    let (other, steps) = counting(workers, TaskStep::Wait);
    wait_until(|| steps.load(Relaxed) == 1);
    let start = Instant::now();
    let (_timed, steps) = counting(workers, TaskStep::WaitAtMost(Duration::from_millis(5)));
    wait_until(|| steps.load(Relaxed) > 4);
    assert!(start.elapsed() >= Duration::from_millis(15));
    release.wait();
    drop((tasks, other));
}

#[test]
fn there_are_no_more_workers_than_may_be() {
    let workers = workers(1);
    let (is_open, running) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let tasks: Vec<_> = (0..EXTRA + 20)
        .map(|_| {
            let (is_open, running) = (is_open.clone(), running.clone());
            task(workers, move || {
                running.fetch_add(1, Relaxed);
                while !is_open.load(Relaxed) {
                    thread::sleep(Duration::from_millis(1));
                }
                TaskStep::Done
            })
        })
        .collect();
    wait_until(|| running.load(Relaxed) as usize == 1 + EXTRA);
    thread::sleep(3 * PATIENCE);
    assert_eq!(running.load(Relaxed) as usize, 1 + EXTRA);
    assert_eq!(workers.lock().workers, 1 + EXTRA);
    is_open.store(true, Relaxed);
    wait_until(|| running.load(Relaxed) as usize == EXTRA + 20);
    drop(tasks);
}

/// Wake-ups from several threads, of tasks that end or are stopped meanwhile.
#[test]
fn wake_ups_stops_and_ends_may_come_at_once() {
    let workers = workers(2);
    for round in 0..300_u64 {
        let (asked, seen) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (its_asked, its_seen) = (asked.clone(), seen.clone());
        let task = task(workers, move || {
            its_seen.store(its_asked.load(Relaxed), Relaxed);
            match round % 3 {
                0 if its_asked.load(Relaxed) >= 40 => TaskStep::Done,
                1 => TaskStep::WaitAtMost(Duration::from_micros(50)),
                _ => TaskStep::Wait,
            }
        });
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        asked.fetch_add(1, Relaxed);
                        task.wake();
                    }
                });
            }
            if round % 5 == 4 {
                scope.spawn(|| task.stop());
            }
        });
        if round % 5 != 4 && round % 3 != 0 {
            wait_until(|| seen.load(Relaxed) == 100);
        }
        task.stop();
        let last = seen.load(Relaxed);
        task.wake();
        thread::yield_now();
        assert_eq!(seen.load(Relaxed), last, "no step after a stop");
    }
    assert!(workers.lock().schedule.is_empty());
}

#[test]
fn a_step_that_stops_its_own_task_or_drops_others_is_the_last() {
    let workers = workers(2);
    let (inner, steps) = counting(workers, TaskStep::WaitAtMost(Duration::from_micros(10)));
    wait_until(|| steps.load(Relaxed) > 0);
    let mut inner = Some(inner);
    // The task owns the other one, and drops it in a step.
    let outer = task(workers, move || {
        inner.take();
        TaskStep::Done
    });
    wait_until(|| workers.lock().schedule.is_empty());
    let last = steps.load(Relaxed);
    thread::sleep(Duration::from_millis(5));
    assert_eq!(steps.load(Relaxed), last);
    drop(outer);
}
