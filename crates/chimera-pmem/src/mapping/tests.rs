use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::place::{Place, address_of};
use super::{Addresses, Window};

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

#[test]
fn a_window_lets_go_of_whole_pages_and_the_file_keeps_them() {
    let page = rustix::param::page_size();
    let file: File = tempfile::tempfile().unwrap();
    file.set_len(4 * page as u64).unwrap();
    let window = Window::map(file.as_fd(), 0, 4 * page as u64, false).unwrap();
    let mapped = || [0, 1, 2, 3].map(|number| window.is_mapped(number * page));
    let fill = || [0, 1, 2, 3].map(|number| window.store(number * page, &[7; 8]));
    for (start, length, left) in [
        (page, 2 * page, [true, false, false, true]),
        (page + 8, 8, [true, false, true, true]),
        (2 * page - 8, 16, [true, false, false, true]),
        (3 * page, page, [true, true, true, false]),
        (3 * page, usize::MAX, [true, true, true, false]),
        (0, 0, [true; 4]),
        (4 * page, 0, [true; 4]),
    ] {
        fill();
        assert_eq!(mapped(), [true; 4]);
        window.let_go(start, length).unwrap();
        assert_eq!(mapped(), left, "{length} bytes from {start} on");
    }
    let mut bytes = vec![0; 4 * page];
    file.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!([0, 1, 2, 3].map(|number| bytes[number * page]), [7; 4]);
    window.store(page, &[8; 8]);
    let mut again = [0; 16];
    window.read(page, &mut again);
    assert_eq!(again[..8], [8; 8]);
    assert_eq!(again[8..], [0; 8]);
}

#[test]
fn places_are_as_far_apart_as_their_number_allows() {
    for (bits, gib) in [(47, 64), (48, 128), (39, 0)] {
        let top = 1 << bits;
        let mut addresses: Vec<u64> = (0..1000).map(|number| address_of(number, top)).collect();
        addresses.sort_unstable();
        assert!(addresses[0] >= top / 8 && addresses[999] < top / 8 * 5);
        for pair in addresses.windows(2) {
            assert!(pair[1] - pair[0] >= gib << 30, "{pair:?}");
        }
        assert_eq!(address_of(1, top) - address_of(0, top), top / 4);
    }
}

#[test]
fn a_place_is_taken_once_and_given_back() {
    let places: Vec<Place> = (0..200).map(|_| Place::take().unwrap()).collect();
    let mut addresses: Vec<usize> = places.iter().map(Place::address).collect();
    addresses.sort_unstable();
    addresses.dedup();
    assert_eq!(addresses.len(), 200);
    drop(places);
    // Other tests take and give back places meanwhile, but not thousands.
    for _ in 0..20_000 {
        assert!(Place::take().is_some());
    }
}

#[test]
fn addresses_grow_in_place_until_something_is_behind_them() {
    let mut range = Addresses::reserve(4 * PAGE).unwrap();
    let base = range.base();
    assert!(base.addr().is_multiple_of(2 << 20));
    range.extend(PAGE as usize).unwrap();
    assert_eq!(range.length() as u64, 4 * PAGE);
    range.extend(5 * PAGE as usize).unwrap();
    assert_eq!(range.length() as u64, 8 * PAGE, "twice as long");
    range.extend(100 * PAGE as usize).unwrap();
    assert_eq!((range.length() as u64, range.base()), (100 * PAGE, base));

    let end = range.base().wrapping_byte_add(range.length() + 2 * PAGE as usize);
    let behind = super::addresses::reserve_at(end, PAGE as usize).unwrap();
    let error = range.extend(104 * PAGE as usize).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::OutOfMemory);
    assert!(error.to_string().contains("are taken by something else"), "{error}");
    assert_eq!(range.length() as u64, 100 * PAGE);
    range.extend(102 * PAGE as usize).expect("up to it there is room");
    // SAFETY: reserved above, and nothing points into it.
    unsafe { rustix::mm::munmap(behind, PAGE as usize) }.unwrap();
    range.extend(104 * PAGE as usize).unwrap();
}
