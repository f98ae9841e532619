use super::{Device, DeviceParameters, Timing};
use crate::instrumented::OperationCounters;

/// Times that are easy to add up: 100 ns to read a unit of 256 bytes, 1000 ns to write one.
const TIMING: Timing = Timing {
    read_random_ns: 0,
    read_sequential_ns: 0,
    persist_ns: 0,
    media_read_mb_per_s: 2560,
    media_write_mb_per_s: 256,
    age_ns: 1_000_000,
};

const READ: u64 = 100_000;
const WRITE: u64 = 1_000_000;
const AGE: u64 = 1_000_000_000;

fn device() -> Device {
    Device::new(DeviceParameters::default())
}

/// One DIMM with room for so many units in each buffer.
fn timed(units: u64) -> Device {
    let bytes = 256 * units;
    Device::new(DeviceParameters {
        dimms: 1,
        write_buffer_bytes: bytes,
        read_buffer_bytes: bytes,
        timing: Some(TIMING),
        ..DeviceParameters::default()
    })
}

/// Media writes: of whole units, evicted, aged.
fn writes(counters: &OperationCounters) -> [u64; 3] {
    [counters.media_writes_full, counters.media_writes_evicted, counters.media_writes_aged]
}

/// Hands over the lines that a flush of `length` bytes at `offset` covers.
fn flush(device: &Device, offset: u64, length: u64, counters: &mut OperationCounters) -> u64 {
    let lines = offset / 64..(offset + length).div_ceil(64);
    for line in lines.clone() {
        device.write(line, 0, counters);
    }
    lines.end - lines.start
}

#[test]
fn a_full_buffer_evicts_the_least_recently_used_unit() {
    let two = DeviceParameters { dimms: 1, write_buffer_bytes: 512, ..Default::default() };
    let device = Device::new(two);
    let mut counters = OperationCounters::default();
    let mut put = |unit: u64, line: u64| {
        device.write(unit * 4 + line, 0, &mut counters);
        writes(&counters)
    };
    put(10, 0);
    put(11, 0);
    assert_eq!(put(10, 1), [0, 0, 0]);
    assert_eq!(put(12, 0), [0, 1, 0], "11 makes room");
    put(10, 2);
    assert_eq!(put(10, 3), [1, 1, 0], "10 is whole and leaves");
    assert_eq!(put(13, 0), [1, 1, 0], "in its place");
    assert_eq!(put(12, 1), [1, 1, 0]);
    assert_eq!(put(14, 0), [1, 2, 0], "13 makes room");
    device.drain(&mut counters);
    assert_eq!(writes(&counters), [1, 4, 0]);
    device.drain(&mut counters);
    assert_eq!(writes(&counters), [1, 4, 0]);
}

/// Fifteen records of 232 bytes, each on a fresh line, in a page of 4 KiB whose first line is
/// rewritten after each record. Record i covers lines 4i+1 to 4i+4, so the page uses lines 0 to 60:
/// units 0 to 14 whole, unit 15 with line 60 only.
///
/// The first header write completes unit 0, later ones start it again; all the others leave
/// when the next record completes them.
#[test]
fn sequential_records_with_a_rewritten_header_line() {
    let device = device();
    let mut counters = OperationCounters::default();
    for record in 0..15 {
        assert_eq!(flush(&device, 64 + 256 * record, 232, &mut counters), 4);
        assert_eq!(flush(&device, 0, 8, &mut counters), 1);
        assert_eq!(writes(&counters), [record + 1, 0, 0]);
    }
    device.drain(&mut counters);
    assert_eq!(writes(&counters), [15, 2, 0]);
}

/// Viper's page of 18 slots of 216 bytes after 4 bytes of metadata: 5.33 lines and 1.17 media writes per insert.
///
/// Bytes 0 to 3892 are units 0 to 14 whole and unit 15 with one line. Record 0
/// completes unit 0 and the first header write starts it again, which stays to the end. Any other unit
/// is started again when a record ends inside its last line, where the next record begins: record n
/// begins at 4 + 216n, which is 192 to 255 bytes into a unit for n = 1 (unit 0), 7, 8, 13 and 14. So
/// 15 whole, and partial unit 15, unit 0 again and four more.
#[test]
fn vipers_page() {
    let device = device();
    let mut counters = OperationCounters::default();
    let mut lines = 0;
    for record in 0..18 {
        lines += flush(&device, 4 + 216 * record, 216, &mut counters);
        lines += flush(&device, 0, 8, &mut counters);
    }
    device.drain(&mut counters);
    assert_eq!(lines, 96, "18 x 5.33");
    assert_eq!(writes(&counters), [15, 6, 0], "18 x 1.17");
}

#[test]
fn buffers_are_per_dimm_and_interleaving_by_pages() {
    let parameters = DeviceParameters { write_buffer_bytes: 256, ..Default::default() };
    let device = Device::new(parameters);
    let mut counters = OperationCounters::default();
    for page in 0..12 {
        assert_eq!(device.write(page * 64, 0, &mut counters).dimm, (page % 6) as usize);
        assert_eq!(parameters.dimm_of(page * 4096 + 4095), (page % 6) as u32);
    }
    assert_eq!(writes(&counters), [0, 6, 0], "the second page of each DIMM evicts the first");
}

#[test]
fn rewriting_a_line_in_the_buffer_costs_nothing() {
    let device = device();
    let mut counters = OperationCounters::default();
    for _ in 0..100 {
        device.write(5, 0, &mut counters);
    }
    assert_eq!(writes(&counters), [0; 3]);
    device.drain(&mut counters);
    assert_eq!(writes(&counters), [0, 1, 0]);
    assert_eq!(counters.media_reads, 0, "the reads of read-modify-writes are apart");
    assert_eq!((counters.media_writes(), counters.media_reads_all()), (1, 1));
}

#[test]
fn media_with_units_of_a_line_never_read_to_write() {
    let parameters = DeviceParameters { xpline_bytes: 64, ..Default::default() };
    let device = Device::new(parameters);
    let mut counters = OperationCounters::default();
    for line in [0, 1, 2, 2] {
        device.write(line, 0, &mut counters);
    }
    device.drain(&mut counters);
    assert_eq!(writes(&counters), [4, 0, 0]);
}

#[test]
fn the_lines_of_a_unit_are_read_together() {
    let parameters = DeviceParameters { read_buffer_bytes: 512, ..Default::default() };
    let device = Device::new(parameters);
    let mut counters = OperationCounters::default();
    for line in [0, 1, 2, 3, 4, 0] {
        device.read(line, 0, &mut counters);
    }
    assert_eq!(counters.media_reads, 2, "units 0 and 1");
    device.read(8, 0, &mut counters);
    device.read(0, 0, &mut counters);
    assert_eq!(counters.media_reads, 3, "unit 2 took the place of unit 1");
    device.read(4, 0, &mut counters);
    assert_eq!(counters.media_reads, 4);
    device.forget_reads();
    device.read(4, 0, &mut counters);
    assert_eq!(counters.media_reads, 5);
}

#[test]
fn a_line_waits_for_nothing_while_the_buffer_gathers() {
    let device = timed(64);
    let mut counters = OperationCounters::default();
    for unit in 0..64 {
        assert_eq!(device.write(unit * 4, unit, &mut counters).at_ps, unit);
    }
    assert_eq!(writes(&counters), [0; 3]);
}

#[test]
fn the_media_takes_two_units_at_a_time() {
    let device = timed(1);
    let mut counters = OperationCounters::default();
    let mut put = |line: u64, now_ps: u64| device.write(line, now_ps, &mut counters).at_ps;
    assert_eq!(put(0, 0), 0);
    assert_eq!(put(4, 0), 0, "unit 0 is read until 100 ns and written until 1100");
    assert_eq!(put(8, 0), 0, "unit 1 is read until 200, and written after unit 0 until 2100");
    assert_eq!(put(12, 0), READ + WRITE, "unit 2 has to wait until unit 0 is written");
    assert_eq!(put(16, 2 * WRITE), READ + 2 * WRITE, "unit 3, until unit 1 is");
    assert_eq!(put(20, 20 * WRITE), 20 * WRITE, "all of them are written");
    assert_eq!(writes(&counters), [0, 5, 0]);
}

#[test]
fn a_whole_unit_is_not_read() {
    let device = timed(1);
    let mut counters = OperationCounters::default();
    let mut put = |line: u64| device.write(line, 0, &mut counters).at_ps;
    for line in 0..8 {
        assert_eq!(put(line), 0, "units 0 and 1");
    }
    for line in 8..11 {
        assert_eq!(put(line), 0);
    }
    assert_eq!(put(11), WRITE, "unit 2 leaves when unit 0 is written");
    for line in 12..15 {
        put(line);
    }
    assert_eq!(put(15), 2 * WRITE);
    assert_eq!(writes(&counters), [4, 0, 0]);
}

#[test]
fn a_unit_that_is_left_alone_leaves_by_itself() {
    let device = timed(4);
    let mut counters = OperationCounters::default();
    device.write(0, 0, &mut counters);
    device.write(4, 1, &mut counters);
    device.write(0, 2, &mut counters);
    device.write(8, AGE, &mut counters);
    assert_eq!(writes(&counters), [0; 3]);
    device.write(8, AGE + 1, &mut counters);
    assert_eq!(writes(&counters), [0, 0, 1], "unit 1");
    device.write(8, AGE + 2, &mut counters);
    assert_eq!(writes(&counters), [0, 0, 2], "unit 0, which was written to after it");
    device.write(8, 2 * AGE + 1, &mut counters);
    assert_eq!(writes(&counters), [0, 0, 2], "unit 2 was used since");
    assert_eq!((counters.media_writes(), counters.media_reads_all()), (2, 2));
}

#[test]
fn old_units_leave_as_the_media_takes_them() {
    let device = timed(8);
    let mut counters = OperationCounters::default();
    for unit in 0..4 {
        device.write(unit * 4, 0, &mut counters);
    }
    device.write(100, AGE, &mut counters);
    assert_eq!(writes(&counters), [0, 0, 2], "the media is busy with two");
    device.write(100, AGE + READ + WRITE - 1, &mut counters);
    assert_eq!(writes(&counters), [0, 0, 2]);
    device.write(100, AGE + READ + WRITE, &mut counters);
    assert_eq!(writes(&counters), [0, 0, 3]);
    device.write(100, AGE + READ + 2 * WRITE, &mut counters);
    assert_eq!(writes(&counters), [0, 0, 4]);
}

#[test]
fn reads_follow_each_other_on_the_media() {
    let device = timed(4);
    let mut counters = OperationCounters::default();
    let mut read = |line: u64, now_ps: u64| device.read(line, now_ps, &mut counters).at_ps;
    assert_eq!(read(0, 0), 0);
    assert_eq!(read(4, 0), READ);
    assert_eq!(read(5, 7), 7, "in the buffer");
    assert_eq!(read(8, 10 * READ), 10 * READ);
    assert_eq!(counters.media_reads, 3);
}

#[test]
fn reads_wait_for_those_of_partial_writes() {
    let device = timed(1);
    let mut counters = OperationCounters::default();
    device.write(0, 0, &mut counters);
    device.write(4, 0, &mut counters);
    assert_eq!(device.read(100, 0, &mut counters).at_ps, READ);
}

#[test]
fn without_times_nothing_waits_and_nothing_is_old() {
    let device = Device::new(timed(1).parameters().untimed());
    let mut counters = OperationCounters::default();
    for unit in 0..10 {
        assert_eq!(device.write(unit * 4, 0, &mut counters).at_ps, 0);
    }
    assert_eq!(writes(&counters), [0, 9, 0]);
}

#[test]
#[should_panic(expected = "whole cache lines")]
fn a_unit_that_is_no_multiple_of_a_line_is_refused() {
    let _ = Device::new(DeviceParameters { xpline_bytes: 100, ..Default::default() });
}

#[test]
#[should_panic(expected = "whole media units")]
fn interleaving_inside_a_unit_is_refused() {
    let _ = Device::new(DeviceParameters { interleave_bytes: 128, ..Default::default() });
}
