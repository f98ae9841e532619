//! Hardware transactions (TSX, RTM): what a thread does to DRAM in one happens at one moment, or not at all.
//!
//! Few machines have them. On some of those they are switched off, so that each one aborts. Any transaction may abort, for
//! any reason: another thread touched the same lines, there were too many of them, an interrupt came. So whoever uses them
//! has another way to do the same, and [`transactions_commit`] says whether they are worth trying.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::arch;

/// Transactions that are tried to find out.
const TRIED: u64 = 64;

/// Whether transactions commit on this machine. Found out by running some, once for a process.
pub fn transactions_commit() -> bool {
    static COMMIT: OnceLock<bool> = OnceLock::new();
    *COMMIT.get_or_init(|| {
        let word = AtomicU64::new(0);
        for _ in 0..TRIED {
            try_transaction(|| word.fetch_add(1, Ordering::Relaxed));
        }
        word.into_inner() >= TRIED / 2
    })
}

/// Runs `work` in a transaction: what it returned. `None`, with nothing done, when the transaction was aborted, and on
/// machines without transactions, where `work` does not run.
///
/// `work` should be short, touch few lines, and call nothing of the system. A panic in it aborts, too.
#[inline]
pub fn try_transaction<T>(work: impl FnOnce() -> T) -> Option<T> {
    if !arch::has_transactions() {
        return None;
    }
    // SAFETY: the machine has them.
    if unsafe { arch::begin_transaction() } != arch::TRANSACTION_BEGUN {
        return None;
    }
    let done = work();
    // SAFETY: the thread is in the transaction that began above. `work` can have ended only one that it began itself.
    unsafe { arch::end_transaction() }
    Some(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_transactions_do_not_commit_nothing_is_done() {
        if transactions_commit() {
            return;
        }
        println!("transactions do not commit here: the rest is untested");
        if !arch::has_transactions() {
            assert!(try_transaction(|| unreachable!("there are none")).is_none());
        }
    }

    #[test]
    fn a_transaction_is_all_or_nothing() {
        const ROUNDS: u64 = 20_000;
        let words = [const { AtomicU64::new(0) }; 2];
        // Not atomic by itself: only a transaction keeps both words alike.
        let add = || {
            for word in &words {
                word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            }
        };
        let committed = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        if try_transaction(add).is_some() {
                            committed.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        let committed = committed.into_inner();
        assert_eq!(words.map(AtomicU64::into_inner), [committed; 2]);
        assert!(committed > 0 || !transactions_commit());
    }
}
