use super::maps::{Place, find_line, place_in};
use super::message::Message;
use super::pools::{Addresses, contains};

const MAPS: &str = "\
5500-5600 r-xp 00000000 fe:00 12                        /usr/bin/program\n\
7f00-7f80 rw-s 00003000 fe:00 99                        /data/a store/segment-000001 (deleted)\n\
7f80-7fff ---p 00000000 00:00 0 \n";

fn explain(code: std::ffi::c_int, place: Option<Place<'_>>) -> String {
    let mut text = [0; 2048];
    let mut message = Message::new(&mut text);
    message.explain(code, place);
    String::from_utf8(message.bytes().to_vec()).unwrap()
}

#[test]
fn a_mapped_file_is_found_however_it_is_read() {
    let expected = Place { path: b"/data/a store/segment-000001 (deleted)", offset: 0x3012 };
    for piece in [1, 2, 7, 100, 4096] {
        let mut left = MAPS.as_bytes();
        let mut line = [0; 200];
        let read = |into: &mut [u8]| {
            let count = left.len().min(into.len());
            into[..count].copy_from_slice(&left[..count]);
            left = &left[count..];
            count
        };
        let length = find_line(read, &mut vec![0; piece], &mut line, 0x7f12).unwrap();
        assert_eq!(place_in(&line[..length], 0x7f12), Some(expected));
    }
    let mut once = Some(MAPS);
    let read = |into: &mut [u8]| {
        once.take().map_or(0, |text| {
            into[..text.len()].copy_from_slice(text.as_bytes());
            text.len()
        })
    };
    assert_eq!(find_line(read, &mut [0; 4096], &mut [0; 200], 0x8000), None);
}

#[test]
fn lines_that_are_none_are_no_places() {
    for line in ["", " ", "7f00", "7f00-", "x-y rw-p 0", "7f00-7fff", "7f00-7fff rw-p", "é-1 a b"]
    {
        assert_eq!(place_in(line.as_bytes(), 0x7f00), None, "{line}");
    }
    let anonymous = place_in(b"7f00-7fff rw-p 00000000 00:00 0 ", 0x7f01);
    assert_eq!(anonymous, Some(Place { path: b"", offset: 1 }));
}

#[test]
fn a_missing_page_and_failing_memory_are_told_apart() {
    let place = Place { path: b"/data/segment-000000", offset: 40_960 };
    let missing = explain(libc::BUS_ADRERR, Some(place));
    assert!(missing.contains("SIGBUS at byte 40960 of the store's file `/data/segment-000000`"));
    assert!(missing.contains("was cut while it was open"), "{missing}");
    for code in [libc::BUS_MCEERR_AR, libc::BUS_MCEERR_AO] {
        let failed = explain(code, Some(place));
        assert!(failed.contains("memory failure") && failed.contains("byte 40960"), "{failed}");
        assert!(failed.contains("is lost") && !failed.contains("was cut"), "{failed}");
    }
    assert!(explain(libc::BUS_ADRERR, None).contains("at the memory of a store"));
}

#[test]
fn a_path_without_end_is_cut() {
    let path = vec![b'x'; 5000];
    assert_eq!(explain(libc::BUS_ADRERR, Some(Place { path: &path, offset: 0 })).len(), 2048);
}

#[test]
fn addresses_belong_to_pools_while_these_live() {
    // Addresses no other test's pool can have.
    let first = Addresses::new(16, 16);
    let second = Addresses::new(64, 16);
    assert!(contains(16) && contains(31) && contains(64));
    assert!(!contains(15) && !contains(32) && !contains(63));
    drop(first);
    assert!(!contains(16) && contains(79));
    let again = Addresses::new(16, 8);
    assert!(contains(16) && !contains(24));
    again.set_length(12);
    assert!(contains(27) && !contains(28));
    drop((second, again));
    assert!(!contains(16) && !contains(64));
}
