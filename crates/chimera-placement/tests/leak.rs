//! What lookups take, they give back. In a process of its own, so that nothing else allocates.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod tools;

use tools::{Setup, Way, key, value};

/// Bytes that are allocated.
fn allocated() -> usize {
    // SAFETY: it only reads the allocator's counts.
    unsafe { nix::libc::mallinfo2() }.uordblks
}

#[test]
fn lookups_in_memtables_keep_no_memory() {
    let scratch = tempfile::tempdir().unwrap();
    let setup = Setup::new(scratch.path(), Way::Both(100));
    let database = setup.open();
    for number in 0..100 {
        database.put(&key(number), &value(number, 0)).unwrap();
    }
    let mut found = Vec::new();
    let mut look = |lookups: u64| {
        for number in 0..lookups {
            assert_eq!(database.get(&key(number % 200), &mut found).unwrap(), number % 200 < 100);
        }
    };
    look(1000);
    let before = allocated();
    look(100_000);
    let more = allocated().saturating_sub(before);
    assert!(more < 1 << 20, "{more} bytes for 100,000 lookups");
}
