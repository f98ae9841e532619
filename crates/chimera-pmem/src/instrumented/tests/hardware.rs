use std::sync::Arc;

use super::{InstrumentedOptions, SITE};
use crate::environment::{AnonymousFile, File};
use crate::{Hardware, HardwareOptions, Instrumented, Medium, Operation, Pmem};

const LENGTH: u64 = 1 << 20;

fn mapped() -> Instrumented {
    let hardware = Hardware::new(HardwareOptions::default()).unwrap();
    let pmem = Instrumented::new(hardware, InstrumentedOptions::default());
    let file: Arc<dyn File> = Arc::new(AnonymousFile::new(LENGTH));
    pmem.map(0, &file, 0, LENGTH).unwrap();
    pmem.populate(0, LENGTH).unwrap();
    pmem
}

/// Every call reaches the hardware and its answer comes back.
#[test]
fn the_hardware_carries_everything_out() {
    let pmem = mapped();
    assert_eq!(
        (pmem.mapped(), pmem.inner().mapped(), pmem.medium()),
        (LENGTH, LENGTH, Medium::Anonymous)
    );
    assert!(pmem.check(LENGTH - 8, 16).is_none());
    assert_eq!(pmem.snapshot().total(), super::OperationCounters::default());

    pmem.store_u64(0, 1, SITE);
    assert_eq!(pmem.cas_u64(0, 1, 2, SITE), Ok(1));
    assert_eq!(pmem.cas_u64(0, 1, 3, SITE), Err(2));
    pmem.publish(8, 7, &[], SITE);
    assert_eq!(pmem.publish_cas(8, 7, 9, &[], SITE), Ok(7));
    assert_eq!((pmem.load_u64(0), pmem.inner().load_u64(8)), (2, 9));

    let range = pmem.check(256, 256).unwrap();
    pmem.prefetch_write(range);
    pmem.copy(range, &[5; 13], SITE);
    pmem.flush(range, SITE);
    pmem.fence(SITE);
    pmem.prefetch(range);
    assert!(pmem.compare(range, &[5; 13]));
    assert!(!pmem.compare(range, &[5; 14]));
    pmem.copy_nt(range, &[6; 256], SITE);
    pmem.fence(SITE);
    let mut read = [0; 256];
    pmem.read(range, &mut read);
    assert_eq!(read, [6; 256]);
    pmem.zero(range, SITE);
    assert_eq!(pmem.load_u64(504), 0);
    pmem.sync(SITE).unwrap();

    let other = pmem.snapshot().of(Operation::Other);
    assert_eq!((other.stores, other.fences, other.lines_flushed), (7, 2, 4));
    assert_eq!(other.bytes_stored, 8 * 4 + 16 + 256 + 256);
}
