//! Schedules that chance hardly ever produces, set up by hand.

use std::sync::mpsc::channel;
use std::sync::{Mutex, OnceLock};
use std::thread::ThreadId;

use chimera::Geometry;

use crate::tools::crash;
use crate::tools::{KEY_BYTES, SMALL, VALUE_BYTES, fill, key, scratch, small_with, value};

/// The thread that reads.
static READER: OnceLock<ThreadId> = OnceLock::new();

/// A reader is interrupted between finding a record in the index and reading it. Meanwhile the key
/// moves away, its slot is freed, and the next version of the same key is written into the same slot
/// but is not in force yet. The reader must not see it: it would go back in time with its next
/// read, and after a crash the value would never have been.
#[test]
fn a_reader_never_sees_a_value_before_it_is_in_force() {
    let directory = scratch();
    // Five records to a block of one page: the writer is soon back at the first block.
    let geometry = Geometry { pages_per_block: 1, ..SMALL };
    let options = small_with(geometry).fixed_size(KEY_BYTES as u32, VALUE_BYTES as u32);
    let db = crash::open(directory.path(), &options);
    let mut writer = db.session();
    fill(&mut writer, 0..5, 1);

    let (found_sender, found) = channel();
    let (go_sender, go) = channel();
    let (written_sender, written) = channel();
    let (read_sender, read) = channel();
    let reader_waits = Mutex::new(Some((found_sender, go)));
    let writer_waits = Mutex::new(None);
    let staged = std::sync::Arc::new((reader_waits, writer_waits));
    let stage = staged.clone();
    db.pmem().set_hook(move |step| {
        if READER.get() == Some(&std::thread::current().id()) {
            if step == "prefetch"
                && let Some((found, go)) = stage.0.lock().expect("alive").take()
            {
                found.send(()).expect("the writer waits");
                go.recv().expect("the writer goes on");
            }
        } else if step == "vpage.bit_set"
            && let Some((written, read)) = stage.1.lock().expect("alive").take()
        {
            let (written, read): (std::sync::mpsc::Sender<()>, std::sync::mpsc::Receiver<()>) =
                (written, read);
            written.send(()).expect("the reader waits");
            read.recv().expect("the reader goes on");
        }
    });

    let seen = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            READER.set(std::thread::current().id()).expect("once");
            let mut session = db.session();
            let first = session.get(&key(0)).expect("get").expect("it is there");
            let second = session.get(&key(0)).expect("get").expect("it is there");
            read_sender.send(()).expect("the writer waits");
            [first, second]
        });
        found.recv().expect("the reader has the first location");
        fill(&mut writer, [0, 5, 6, 7, 8], 2);
        *staged.1.lock().expect("alive") = Some((written_sender, read));
        let writer = scope.spawn(move || fill(&mut writer, [0], 3));
        written.recv().expect("version 3 is about to be in force");
        go_sender.send(()).expect("the reader waits");
        let seen = reader.join().expect("the reader is done");
        writer.join().expect("the writer is done");
        seen
    });
    assert_eq!(seen, [value(0, 2), value(0, 2)], "version 3 was not in force yet");
    assert_eq!(db.get(&key(0)).expect("get"), Some(value(0, 3)));
}
