use super::super::lines::{FLUSHED, LINES_MAX, LineSet, READ};

#[test]
fn a_flag_is_new_once() {
    let mut set = LineSet::new();
    assert!(set.is_empty());
    assert!(set.mark(9, READ));
    assert!(!set.mark(9, READ));
    assert!(set.mark(9, FLUSHED), "flags are independent");
    assert!(set.mark(0, FLUSHED));
    assert!(set.has(9, READ) && set.has(9, FLUSHED) && set.has(0, FLUSHED));
    assert!(!set.has(0, READ) && !set.has(1, READ));
    assert!(!set.is_empty());
}

#[test]
fn clearing_forgets_everything() {
    let mut set = LineSet::new();
    set.mark(9, READ);
    set.clear();
    assert!(set.is_empty() && !set.has(9, READ));
    assert!(set.mark(9, READ));
}

#[test]
fn growing_keeps_every_line_and_flag() {
    let mut set = LineSet::new();
    for line in 0..10_000 {
        assert!(set.mark(line * 64, if line % 2 == 0 { READ } else { FLUSHED }));
    }
    for line in 0..10_000 {
        assert_eq!(set.has(line * 64, READ), line % 2 == 0);
        assert_eq!(set.has(line * 64, FLUSHED), line % 2 == 1);
    }
}

#[test]
fn memory_is_bounded() {
    let mut set = LineSet::new();
    for line in 0..LINES_MAX as u64 {
        assert!(set.mark(line, READ));
    }
    assert!(set.has(0, READ));
    assert!(set.mark(u64::MAX / 2, READ));
    assert!(!set.has(0, READ), "one more than it remembers: it starts anew");
}
