//! The newest content of lines.

use super::*;

const LINE: usize = 64;

/// Lines by number, each filled with a byte.
fn lines(of: &[(u64, u8)]) -> Lines {
    let mut lines = Lines::default();
    for (line, byte) in of {
        lines.push(*line, &[*byte; LINE]);
    }
    lines.fold();
    lines
}

/// The runs handed out: where each begins, and the byte that each of its lines is filled with.
fn runs_of(lines: &Lines) -> Vec<(u64, Vec<u8>)> {
    let mut runs = Vec::new();
    let each = |at, bytes: &[u8]| {
        let filled = |line: &[u8]| line.iter().all(|byte| *byte == line[0]).then_some(line[0]);
        runs.push((at, bytes.chunks(LINE).map(|line| filled(line).unwrap()).collect()));
        Ok(())
    };
    lines.for_each_run(each).unwrap();
    runs
}

#[test]
fn lines_are_handed_out_in_order_in_runs_with_their_newest_content() {
    let lines = lines(&[(7, 1), (12, 2), (5, 3), (7, 4), (6, 5), (10, 6), (13, 7), (12, 8)]);
    let expected = [(5 * 64, vec![3, 5, 4]), (10 * 64, vec![6]), (12 * 64, vec![8, 7])];
    assert_eq!(runs_of(&lines), expected);
    assert_eq!(lines.end(), 14 * 64);
    assert!(!lines.is_empty());
    assert_eq!(lines.bytes(), 8 * LINE, "of all that were added");
}

#[test]
fn of_no_lines_nothing_is_handed_out() {
    let mut lines = lines(&[(1, 1), (2, 2)]);
    lines.clear();
    for lines in [&lines, &Lines::default()] {
        lines.for_each_run(|at, _| panic!("a run at {at}")).unwrap();
        assert!(lines.is_empty());
        assert_eq!((lines.end(), lines.bytes()), (0, 0), "no content stays in memory");
    }
    lines.push(2, &[3; LINE]);
    assert_eq!(runs_of(&lines), [(2 * 64, vec![3])]);
}

#[test]
fn a_long_run_is_handed_out_in_pieces_of_256_kib() {
    let many: Vec<_> = (3..3 + 8193).map(|line| (line, line as u8)).collect();
    let runs = runs_of(&lines(&many));
    let places: Vec<_> = runs.iter().map(|(at, bytes)| (*at, bytes.len())).collect();
    assert_eq!(places, [(3 * 64, 4096), (4099 * 64, 4096), (8195 * 64, 1)]);
    assert!(
        runs.iter().flat_map(|(_, bytes)| bytes).copied().eq((3..3 + 8193).map(|line| line as u8))
    );
}

#[test]
fn handing_out_ends_at_the_first_error() {
    let mut runs = 0;
    let each = |_, _: &[u8]| {
        runs += 1;
        Err(io::ErrorKind::BrokenPipe.into())
    };
    let error = lines(&[(1, 1), (3, 3), (5, 5)]).for_each_run(each).unwrap_err();
    assert_eq!((error.kind(), runs), (io::ErrorKind::BrokenPipe, 1));
}

#[test]
fn only_the_lines_in_a_range_are_put_over_it() {
    let lines = lines(&[(9, 1), (10, 2), (12, 3), (13, 4)]);
    let mut bytes = [0xff; 3 * LINE];
    lines.put_over(10 * 64..13 * 64, &mut bytes);
    assert_eq!(bytes, *[[2; LINE], [0xff; LINE], [3; LINE]].as_flattened());
}
