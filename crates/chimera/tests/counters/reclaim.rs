//! measuring
use chimera::pmem::Operation;
use chimera::Options;

use super::counted;
use super::variable::key;

#[test]
fn measure() {
    for (name, options) in [("fixed", Options::new().fixed_size(16, 200)), ("variable", Options::new())] {
        let db = super::open(options);
        let mut session = db.session();
        for number in 0..4080 {
            session.put(&key(number, 16), &[1; 200]).unwrap();
        }
        for number in 0..4080 {
            if number % 3 > 0 {
                session.delete(&key(number, 16)).unwrap();
            }
        }
        drop(session);
        for round in 0..4 {
            let mut stats = None;
            let counters = counted(&db, Operation::Reclaim, || stats = Some(db.compact(10, None).unwrap()));
            println!("{name} {round} {stats:?} used {}\n {:?}\n {:?} other {:?}", db.stats().blocks_used, counters.of(Operation::Reclaim), counters.of(Operation::BlockHandOut), counters.of(Operation::Other));
        }
    }
}
