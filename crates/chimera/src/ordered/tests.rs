//! Background threads of an order, stepped by hand.

use std::time::Duration;

use chimera_pmem::SteppedEnvironment;

use super::*;

/// An order with queues of 64 changes and windows of 1000 ns, started.
fn started(options: OrderOptions) -> (Arc<SteppedEnvironment>, Arc<Order>) {
    let environment = Arc::new(SteppedEnvironment::in_memory(1));
    let window = options.sampling_window.map(|_| Duration::from_micros(1));
    let options = options.node_bytes(256).queue_requests(64).sampling_window(window);
    options.validate().unwrap();
    let order = Arc::new(Order::new(environment.clone(), options, false));
    order.begin_rebuild(0);
    order.start().unwrap();
    (environment, order)
}

/// Until all sleep.
fn run_tasks(environment: &SteppedEnvironment) {
    while environment.step_tasks() {}
}

fn insert(order: &Order, numbers: std::ops::Range<u64>) {
    for number in numbers {
        order.changed(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes(), true);
    }
}

#[test]
fn a_window_decides_how_many_threads_work_and_the_others_sleep() {
    let (environment, order) = started(OrderOptions::default().queues(8).threads(4));
    run_tasks(&environment);
    assert_eq!((order.stats().threads_working, order.stats().threads_awake), (4, 0));
    // 40 changes, of which each takes 75 ns: three threads have enough to do.
    environment.advance(5000);
    order.sample(0, environment.now_ns());
    insert(&order, 0..40);
    environment.advance(1000);
    order.sample(40, environment.now_ns() - 3000);
    let stats = order.stats();
    assert_eq!((stats.threads, stats.threads_working, stats.decisions), (4, 3, 1));
    assert_eq!((stats.last_window.arrivals, stats.last_window.apply_ns), (40, 75));
    order.catch_up().unwrap();
    // Nothing arrives: one thread is enough. It applies what falls to the others' queues.
    environment.advance(1000);
    order.sample(1, environment.now_ns());
    assert_eq!((order.stats().threads_working, order.stats().decisions), (1, 2));
    insert(&order, 40..300);
    run_tasks(&environment);
    let stats = order.stats();
    assert_eq!((stats.threads_working, stats.threads_awake), (1, 0));
    assert!(stats.waiting < 8 * 16, "{} changes wait", stats.waiting);
    order.catch_up().unwrap();
    assert_eq!(order.stats().keys, 300);
}

#[test]
fn threads_that_are_chosen_again_are_woken() {
    let (environment, order) = started(OrderOptions::default().queues(2).threads(2));
    environment.advance(5000);
    insert(&order, 0..10);
    order.sample(10, 0);
    run_tasks(&environment);
    assert_eq!(order.stats().threads_working, 1);
    order.catch_up().unwrap();
    // Too few to wake anybody for.
    insert(&order, 10..30);
    assert!(!environment.step_tasks());
    environment.advance(1000);
    order.sample(1, 0);
    assert_eq!((order.stats().threads_working, order.stats().threads_awake), (2, 1));
    run_tasks(&environment);
    assert!((1..20).contains(&order.stats().waiting), "the second thread has its own queue alone");
}

#[test]
fn without_a_window_all_threads_work() {
    let options = OrderOptions::default().queues(3).threads(3).sampling_window(None);
    let (environment, order) = started(options);
    for round in 0..5 {
        insert(&order, round * 100..round * 100 + 100);
        environment.advance(1 << 40);
        run_tasks(&environment);
    }
    order.catch_up().unwrap();
    let stats = order.stats();
    assert_eq!((stats.threads_working, stats.decisions, stats.keys), (3, 0, 500));
}

#[test]
fn each_queue_has_keys_of_one_tree_and_a_thread_those_of_its_own() {
    let options = OrderOptions::default().trees(4).queues(3).threads(8);
    let (_, order) = started(options);
    assert_eq!(order.queues.len(), 12);
    let mut seen = [false; 12];
    for number in 0..500_u64 {
        let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        let queue = order.queue_of(&key);
        seen[queue] = true;
        assert_eq!(queue % 4, order.tree.number_of(&key));
        // The thread that applies it.
        assert_eq!(queue % 8 % 4, order.tree.number_of(&key));
    }
    assert_eq!(seen, [true; 12]);
}

#[test]
fn a_dump_that_there_is_no_memory_for_is_gathered_again() {
    for trees in [1, 3] {
        let environment = Arc::new(SteppedEnvironment::in_memory(1));
        let options = OrderOptions::default().trees(trees).node_bytes(256);
        let order = Order::new(environment, options, false);
        let keys: Vec<_> = (0..600_u16).map(|number| (number * 100).to_be_bytes()).collect();
        order.tree.limit(trees - 1, 5);
        assert!(!order.load(keys.iter()));
        order.tree.limit(trees - 1, u32::MAX);
        order.begin_rebuild(600);
        let gather = |_, run: &mut KeyRun| {
            for key in &keys {
                run.push(key);
            }
            Ok(())
        };
        while let RebuildStep::Again = order.rebuild_step(gather).unwrap() {}
        order.catch_up().unwrap_or_else(|error| panic!("{trees} trees: {error}"));
        assert_eq!((order.stats().keys, order.is_complete()), (600, true));
    }
}

/// An order of 64 keys in many parts, which are gathered by steps.
fn unmade() -> Order {
    let environment = Arc::new(SteppedEnvironment::in_memory(1));
    let order =
        Order::new(environment, OrderOptions::default().node_bytes(256).part_keys(4), false);
    order.begin_rebuild(64);
    order
}

/// Gathers one key for each part.
#[expect(clippy::unnecessary_wraps, reason = "as what gathers the keys of a store")]
fn gather(positions: RangeInclusive<u64>, run: &mut KeyRun) -> Result<()> {
    run.push(&positions.start().to_be_bytes());
    Ok(())
}

#[test]
fn scans_are_refused_when_a_thread_that_gathers_keys_panics() {
    let order = unmade();
    order.rebuild_step(gather).unwrap();
    order.changed(b"kept", true);
    let step = || order.rebuild_step(|_, _| panic!("to be caught"));
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(step)).unwrap_err();
    assert_eq!(order.rebuild_step(gather).unwrap(), RebuildStep::Done);
    order.changed(b"later", true);
    assert!(matches!(order.catch_up(), Err(Error::OrderFailed)));
    assert!(!order.is_complete() && order.stats().keys_gathered == 1);
}

#[test]
fn what_is_gathered_and_kept_takes_memory_until_the_tree_is_made() {
    let order = unmade();
    let bytes = || order.stats().dram_bytes;
    let before = bytes();
    order.rebuild_step(gather).unwrap();
    let gathered = bytes();
    assert!(gathered >= before + 8 + 24, "{gathered} bytes, {before} before");
    order.changed(&[7; 1000], true);
    // A queue is caught up with by a scan; nothing waits for the tree.
    order.catch_up().unwrap();
    assert!((gathered + 1000..gathered + 1100).contains(&bytes()), "{} bytes", bytes());
    order.changed(&[7; 1000], false);
    order.catch_up().unwrap();
    assert!(bytes() < gathered + 1100, "a key is kept once");
    while let RebuildStep::Again = order.rebuild_step(gather).unwrap() {}
    let (tree, queues) =
        (order.tree.figures().bytes, order.queues.iter().map(Queue::bytes).sum::<u64>());
    assert_eq!((bytes(), order.rebuild.bytes()), (tree + queues, 0));
}

#[test]
fn what_was_gathered_is_given_up_when_a_part_fails() {
    let order = unmade();
    order.rebuild_step(gather).unwrap();
    assert!(order.rebuild.bytes() > 0);
    order
        .rebuild_step(|_, _| {
            // Another thread fails meanwhile.
            order.rebuild_step(|_, _| Err(Error::corrupted("a test", 7))).unwrap_err();
            Ok(())
        })
        .unwrap();
    assert_eq!(order.rebuild.bytes(), 0);
    assert!(matches!(order.catch_up(), Err(Error::Corrupted { at: 7, .. })));
}
