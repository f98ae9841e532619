use super::super::device::{Buffer, Device, Evicted, Put};
use super::{DeviceParameters, OperationCounters};

/// The four lines of a unit of 256 bytes.
const WHOLE: u64 = 0b1111;

fn device() -> Device {
    Device::new(DeviceParameters::default())
}

/// Full and partial media writes, lazy then eager.
fn writes(counters: &OperationCounters) -> [u64; 4] {
    [
        counters.media_writes_full_lazy,
        counters.media_writes_partial_lazy,
        counters.media_writes_full_eager,
        counters.media_writes_partial_eager,
    ]
}

/// Hands over the lines that a flush of `length` bytes at `offset` covers.
fn flush(device: &Device, offset: u64, length: u64, counters: &mut OperationCounters) -> u64 {
    let lines = offset / 64..(offset + length).div_ceil(64);
    for line in lines.clone() {
        device.write(line, counters);
    }
    lines.end - lines.start
}

#[test]
fn a_full_buffer_evicts_the_least_recently_used_unit() {
    let mut buffer = Buffer::new(2, WHOLE);
    assert_eq!(buffer.put(10, 1), Put::Placed(None));
    assert_eq!(buffer.put(11, 1), Put::Placed(None));
    assert_eq!(buffer.put(10, 2), Put::Joined);
    assert_eq!(buffer.put(12, 1), Put::Placed(Some(Evicted::Partial)), "11 makes room");
    assert_eq!(buffer.put(10, 4), Put::Joined);
    assert_eq!(buffer.put(10, 8), Put::Joined);
    assert_eq!(buffer.put(12, 2), Put::Joined);
    assert_eq!(buffer.put(13, 1), Put::Placed(Some(Evicted::Whole)), "10 is whole");
    assert_eq!(buffer.drain(), (0, 2));
    assert_eq!(buffer.drain(), (0, 0));
}

#[test]
fn a_whole_unit_can_be_taken() {
    let mut buffer = Buffer::new(3, WHOLE);
    buffer.put(11, 1);
    for bit in [1, 2, 4] {
        buffer.put(10, bit);
        assert!(!buffer.take_if_whole());
    }
    buffer.put(10, 8);
    assert!(buffer.take_if_whole());
    assert!(!buffer.take_if_whole());
    assert_eq!(buffer.put(10, 1), Put::Placed(None), "gone");
    assert_eq!(buffer.put(11, 2), Put::Joined);
}

/// Fifteen records of 232 bytes, each on a fresh line, in a page of 4 KiB whose first line is
/// rewritten after each record. Record i covers lines 4i+1 to 4i+4, so the page uses lines 0 to 60:
/// units 0 to 14 whole, unit 15 with line 60 only.
///
/// Eager: the first header write completes unit 0, later ones start it again; all the others leave
/// when the next record completes them.
#[test]
fn sequential_records_with_a_rewritten_header_line() {
    let device = device();
    let mut counters = OperationCounters::default();
    for record in 0..15 {
        assert_eq!(flush(&device, 64 + 256 * record, 232, &mut counters), 4);
        assert_eq!(flush(&device, 0, 8, &mut counters), 1);
        let whole = record + 1;
        assert_eq!(writes(&counters), [0, 0, whole, 0]);
    }
    device.drain(&mut counters);
    assert_eq!(writes(&counters), [15, 1, 15, 2]);
}

/// Viper's page of 18 slots of 216 bytes after 4 bytes of metadata: 5.33 lines per insert, 0.89 media
/// writes lazy and 1.17 eager.
///
/// Bytes 0 to 3892 are units 0 to 14 whole and unit 15 with one line: 16 writes lazy. Eager, record 0
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
    assert_eq!(writes(&counters), [15, 1, 15, 6], "18 x 0.89 and 18 x 1.17");
}

#[test]
fn buffers_are_per_dimm_and_interleaving_by_pages() {
    let parameters = DeviceParameters { write_buffer_bytes: 256, ..Default::default() };
    let device = Device::new(parameters);
    let mut counters = OperationCounters::default();
    for page in 0..12 {
        assert_eq!(device.write(page * 64, &mut counters), (page % 6) as usize);
        assert_eq!(parameters.dimm_of(page * 4096 + 4095), (page % 6) as u32);
    }
    assert_eq!(writes(&counters), [0, 6, 0, 6], "the second page of each DIMM evicts the first");
}

#[test]
fn rewriting_a_line_in_the_buffer_costs_nothing() {
    let device = device();
    let mut counters = OperationCounters::default();
    for _ in 0..100 {
        device.write(5, &mut counters);
    }
    assert_eq!(writes(&counters), [0; 4]);
    device.drain(&mut counters);
    assert_eq!(writes(&counters), [0, 1, 0, 1]);
    assert_eq!(counters.media_reads, 0, "the reads of read-modify-writes are apart");
    assert_eq!((counters.media_reads_lazy(), counters.media_reads_eager()), (1, 1));
}

#[test]
fn media_with_units_of_a_line_never_read_to_write() {
    let parameters = DeviceParameters { xpline_bytes: 64, ..Default::default() };
    let device = Device::new(parameters);
    let mut counters = OperationCounters::default();
    for line in [0, 1, 2, 2] {
        device.write(line, &mut counters);
    }
    device.drain(&mut counters);
    assert_eq!(writes(&counters), [3, 0, 4, 0]);
}

#[test]
fn the_lines_of_a_unit_are_read_together() {
    let parameters = DeviceParameters { read_buffer_bytes: 512, ..Default::default() };
    let device = Device::new(parameters);
    let mut counters = OperationCounters::default();
    for line in [0, 1, 2, 3, 4, 0] {
        device.read(line, &mut counters);
    }
    assert_eq!(counters.media_reads, 2, "units 0 and 1");
    device.read(8, &mut counters);
    device.read(0, &mut counters);
    assert_eq!(counters.media_reads, 3, "unit 2 took the place of unit 1");
    device.read(4, &mut counters);
    assert_eq!(counters.media_reads, 4);
    device.forget_reads();
    device.read(4, &mut counters);
    assert_eq!(counters.media_reads, 5);
}

#[test]
#[should_panic(expected = "whole cache lines")]
fn a_unit_that_is_no_multiple_of_a_line_is_refused() {
    Device::new(DeviceParameters { xpline_bytes: 100, ..Default::default() });
}

#[test]
#[should_panic(expected = "whole media units")]
fn interleaving_inside_a_unit_is_refused() {
    Device::new(DeviceParameters { interleave_bytes: 128, ..Default::default() });
}
