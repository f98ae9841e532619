//! The facade of locks, atomics and tables in DRAM: the standard library's, or under `--cfg loom` those
//! of `loom`, whose models try every order in which threads can get on and every value that a load can
//! give. See docs/TESTING.md.
//!
//! # Waiting
//! A lock that is held while persistent memory is used, storage is allocated or another lock is waited
//! for is waited for through the environment: [`VersionLock`], the locks of keys, and the mutexes that
//! [`lock_relaxing`] takes. So an environment that runs all threads on one, in an order of its choice,
//! can run the holder meanwhile. A mutex that [`lock`] takes is held for a few instructions on DRAM, and
//! nothing is waited for meanwhile.

#[cfg(loom)]
pub(crate) mod under_loom;
mod version_lock;

use std::sync::TryLockError;

use chimera_pmem::Environment;

#[cfg(not(loom))]
pub(crate) use chimera_pmem::Arena;
#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
#[cfg(not(loom))]
pub(crate) use std::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic};
#[cfg(loom)]
pub(crate) use under_loom::{Arena, ArenaRange, atomic};
pub(crate) use version_lock::{VersionGuard, VersionLock, VersionWord};

/// Elements of an [`Arena`] that follow one another.
#[cfg(not(loom))]
pub(crate) type ArenaRange<'a, T> = &'a [T];

/// Locks a mutex whose data stays meaningful when another holder has panicked, and whose holders wait
/// for nothing.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// As [`lock`], for a mutex whose holders use persistent memory, allocate storage or wait: relaxes
/// between attempts.
pub(crate) fn lock_relaxing<'a, T>(
    mutex: &'a Mutex<T>,
    environment: &dyn Environment,
) -> MutexGuard<'a, T> {
    until_some(environment, || match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    })
}

/// What `attempt` answers, as soon as it answers: relaxes between attempts.
#[inline(always)]
pub(crate) fn until_some<T>(
    environment: &dyn Environment,
    mut attempt: impl FnMut() -> Option<T>,
) -> T {
    let mut attempts = 0;
    loop {
        if let Some(answer) = attempt() {
            return answer;
        }
        environment.relax(attempts);
        attempts = attempts.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier};

    use chimera_pmem::SteppedEnvironment;

    use super::*;

    #[test]
    fn a_waiter_lets_the_holder_run_and_then_has_the_lock() {
        let mutex = Arc::new(Mutex::new(7));
        let steps = Arc::new(Barrier::new(2));
        let holder = std::thread::spawn({
            let (mutex, steps) = (mutex.clone(), steps.clone());
            move || {
                let guard = lock(&mutex);
                steps.wait();
                steps.wait();
                drop(guard);
                steps.wait();
            }
        });
        steps.wait();
        let environment = SteppedEnvironment::in_memory(1);
        environment.set_relax_hook(move |attempt| {
            if attempt == 3 {
                steps.wait();
                steps.wait();
            }
        });
        assert_eq!(*lock_relaxing(&mutex, &environment), 7);
        holder.join().expect("no panic");
    }

    #[test]
    fn a_panic_of_a_holder_does_not_take_the_data_away() {
        let environment = SteppedEnvironment::in_memory(1);
        let mutex = Mutex::new(7);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _guard = lock_relaxing(&mutex, &environment);
            panic!("in the middle");
        }));
        assert!(outcome.is_err());
        assert_eq!(*lock_relaxing(&mutex, &environment), 7);
        assert_eq!(*lock(&mutex), 7);
    }
}
