//! What the models share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chimera_pmem::{Environment, SteppedEnvironment};

/// Runs `body` in every order of its threads in which running ones are interrupted at most `preemptions`
/// times, and with every value that each load can give.
pub(crate) fn check(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.max_branches = 100_000;
    let orders = Arc::new(AtomicU64::new(0));
    let count = orders.clone();
    model.check(move || {
        count.fetch_add(1, Ordering::Relaxed);
        super::atomic::turn();
        body();
    });
    let orders = orders.load(Ordering::Relaxed);
    assert!(orders > 10, "only {orders} orders: the threads do not meet");
}

/// An environment in which waiting lets other threads of the model run.
pub(crate) fn environment() -> Arc<dyn Environment> {
    let environment = SteppedEnvironment::in_memory(1);
    environment.set_relax_hook(|_| loom::thread::yield_now());
    Arc::new(environment)
}
