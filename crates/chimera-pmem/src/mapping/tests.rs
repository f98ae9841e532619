mod page_state;

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Window;

const PAGE: u64 = 4096;

#[test]
fn a_window_reads_and_writes_at_any_byte() {
    let file: File = tempfile::tempfile().unwrap();
    file.set_len(4 * PAGE).unwrap();
    let before: Vec<u8> = (0..2 * PAGE).map(|at| (at % 251) as u8).collect();
    file.write_all_at(&before, PAGE).unwrap();
    let window = Window::map(file.as_fd(), PAGE, 2 * PAGE, false).unwrap();
    for (start, length) in [(0, 1), (1, 6), (3, 200), (64, 64), (8191, 1), (7, 0), (0, 8192)] {
        let mut bytes = vec![0; length];
        window.read(start, &mut bytes);
        assert_eq!(bytes, before[start..start + length]);
    }
    window.write(61, b"seven b");
    let mut expected = before;
    expected[61..68].copy_from_slice(b"seven b");
    let mut after = vec![0; expected.len()];
    file.read_exact_at(&mut after, PAGE).unwrap();
    assert_eq!(after, expected, "what lies beside is kept");
    let outside = catch_unwind(AssertUnwindSafe(|| window.read(8190, &mut [0; 3])));
    let message = outside.unwrap_err().downcast::<String>().unwrap();
    assert!(message.contains("of a window"), "{message}");
}
