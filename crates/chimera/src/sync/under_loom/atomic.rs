//! Atomics of `loom`, every use of which is a place for another thread to go on.
//!
//! `loom` tries another order of two accesses when it sees that they depend on each other, but remembers
//! only the last access to each object: a store that follows a load by the same thread is not compared
//! with what another thread loaded before both, and the order in which it comes first is never tried. So
//! each access here is preceded by a store to one word that all threads share. Nobody ever loads that
//! word, so it passes nothing on from one thread to another; it only makes all orders be tried.

use loom::sync::atomic;
pub(crate) use loom::sync::atomic::{Ordering, fence};

loom::lazy_static! {
    static ref TURN: atomic::AtomicBool = atomic::AtomicBool::new(false);
}

/// Lets another thread go on here.
pub(super) fn turn() {
    TURN.store(true, Ordering::Relaxed);
}

macro_rules! atomic {
    ($name:ident, $value:ty, { $($extra:ident),* }) => {
        /// As the standard library's.
        #[derive(Debug, Default)]
        pub(crate) struct $name(atomic::$name);

        #[allow(dead_code, reason = "as far as the store needs them")]
        impl $name {
            pub(crate) fn new(value: $value) -> Self {
                Self(atomic::$name::new(value))
            }

            pub(crate) fn load(&self, order: Ordering) -> $value {
                turn();
                self.0.load(order)
            }

            pub(crate) fn store(&self, value: $value, order: Ordering) {
                turn();
                self.0.store(value, order);
            }

            pub(crate) fn swap(&self, value: $value, order: Ordering) -> $value {
                turn();
                self.0.swap(value, order)
            }

            pub(crate) fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                turn();
                self.0.compare_exchange(current, new, success, failure)
            }

            pub(crate) fn fetch_update(
                &self,
                success: Ordering,
                failure: Ordering,
                mut change: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                let mut found = self.load(failure);
                while let Some(new) = change(found) {
                    match self.compare_exchange(found, new, success, failure) {
                        Ok(_) => return Ok(found),
                        Err(now) => found = now,
                    }
                }
                Err(found)
            }

            $(pub(crate) fn $extra(&self, value: $value, order: Ordering) -> $value {
                turn();
                self.0.$extra(value, order)
            })*
        }
    };
}

atomic!(AtomicBool, bool, {});
atomic!(AtomicU32, u32, { fetch_add, fetch_sub, fetch_and, fetch_or, fetch_max });
atomic!(AtomicU64, u64, { fetch_add, fetch_sub, fetch_and, fetch_or, fetch_max });
