//! Schedules that chance hardly ever produces, set up by hand.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::ThreadId;
use std::time::Duration;

use chimera::baselines::RecordLayout;
use chimera::{Geometry, Options, Session, VerifyReads};
use chimera_crashlab::rig::Simulated;

use crate::rig;
use crate::tools::{KEY_BYTES, SMALL, VALUE_BYTES, fill, key, small_with, value, version_of};

/// Five records (seven in the published layout) to a block of one page: a writer is soon back at a
/// block it has filled.
fn one_page_blocks() -> Options {
    let geometry = Geometry { pages_per_block: 1, ..SMALL };
    small_with(geometry).fixed_size(KEY_BYTES as u32, VALUE_BYTES as u32)
}

/// Gets key 0, version 1 of which is in the first slot, and does `meanwhile` in the middle: at the
/// first `step` of the reader.
fn interrupted_get(
    options: &Options,
    step: &'static str,
    meanwhile: impl FnOnce(&mut Session<Simulated>, u64) + Send + 'static,
) -> Option<Vec<u8>> {
    let (rig, db) = rig(options);
    let slots = u64::from(db.stats().viper().expect("Viper").records_per_page);
    let mut writer = db.session();
    fill(&mut writer, 0..slots, 1);
    let stage = Mutex::new(Some((writer, meanwhile)));
    rig.set_hook(move |at| {
        let staged = if at == step { stage.lock().expect("alive").take() } else { None };
        if let Some((mut writer, meanwhile)) = staged {
            meanwhile(&mut writer, slots);
        }
    });
    let found = db.get(key(0)).expect("nothing is damaged");
    assert_eq!(db.get(key(1)).expect("get"), Some(value(1, 1)));
    found
}

/// Whatever happens to a record between the index and the reader: it reads a value of its key, whole.
#[test]
fn an_interrupted_reader_reads_nothing_foreign() {
    for layout in [RecordLayout::Checked, RecordLayout::Published] {
        let steps = ["load", "compare", "read"];
        // The published layout has no header to load.
        let first = usize::from(layout == RecordLayout::Published);
        let verified = steps[first..].iter().map(|step| (*step, VerifyReads::Always));
        // Without its sum a value is read by other steps, in the same order.
        let unverified = steps[first..].iter().map(|step| (*step, VerifyReads::Never));
        for (step, verify) in verified.chain(unverified) {
            let options =
                one_page_blocks().viper(|viper| viper.layout(layout)).verify_reads(verify);
            let about = format!("{layout:?}, {step}, verify reads {verify}");
            // The key moves, and another one takes its slot.
            let found = interrupted_get(&options, step, |writer, slots| {
                fill(writer, [0], 2);
                fill(writer, slots..2 * slots - 1, 1);
                fill(writer, [3 * slots], 9);
            });
            assert_eq!(found, Some(value(0, 2)), "moved: {about}");
            // It is deleted, and another one takes its slot.
            let found = interrupted_get(&options, step, |writer, slots| {
                assert!(writer.delete(key(0)).expect("delete"));
                fill(writer, slots..2 * slots, 1);
                fill(writer, [3 * slots], 9);
            });
            assert_eq!(found, None, "deleted: {about}");
            // It moves twice, the second time to where it was.
            let found = interrupted_get(&options, step, |writer, slots| {
                fill(writer, [0], 2);
                fill(writer, slots..2 * slots - 1, 1);
                fill(writer, [0], 3);
            });
            assert_eq!(found, Some(value(0, 3)), "moved back: {about}");
            // It is deleted and inserted elsewhere.
            let found = interrupted_get(&options, step, |writer, slots| {
                assert!(writer.delete(key(0)).expect("delete"));
                fill(writer, slots..2 * slots, 1);
                fill(writer, [3 * slots], 9);
                fill(writer, [0], 4);
            });
            assert_eq!(found, Some(value(0, 4)), "inserted again: {about}");
        }
    }
}

/// The thread that reads.
static READER: OnceLock<ThreadId> = OnceLock::new();

/// A reader is interrupted between finding a record in the index and reading it. Meanwhile the key
/// moves away, its slot is freed, and the next version of the same key is written into the same slot
/// but is not in force yet. The reader must not see it: it would go back in time with its next
/// read, and after a crash the value would never have been.
#[test]
fn a_reader_never_sees_a_value_before_it_is_in_force() {
    let (rig, db) = rig(&one_page_blocks());
    let mut writer = db.session();
    fill(&mut writer, 0..5, 1);

    let (found_sender, found) = channel();
    let (go_sender, go) = channel();
    let (written_sender, written) = channel();
    let (read_sender, read) = channel();
    let reader_waits = Mutex::new(Some((found_sender, go)));
    let writer_waits = Mutex::new(None);
    let staged = Arc::new((reader_waits, writer_waits));
    let stage = staged.clone();
    rig.set_hook(move |step| {
        if READER.get() == Some(&std::thread::current().id()) {
            if step == "load"
                && let Some((found, go)) = stage.0.lock().expect("alive").take()
            {
                found.send(()).expect("the writer waits");
                go.recv().expect("the writer goes on");
            }
        } else if step == "vpage.commit"
            && let Some((written, read)) = stage.1.lock().expect("alive").take()
        {
            let (written, read): (std::sync::mpsc::Sender<()>, std::sync::mpsc::Receiver<()>) =
                (written, read);
            written.send(()).expect("the reader waits");
            // A reader that has noticed waits for the writer, which holds the index's segment: this
            // ends it.
            let _ = read.recv_timeout(Duration::from_millis(500));
        }
    });

    let seen = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            READER.set(std::thread::current().id()).expect("once");
            let mut session = db.session();
            let first = session.get(key(0)).expect("get").expect("it is there");
            let second = session.get(key(0)).expect("get").expect("it is there");
            // The writer may have stopped waiting.
            let _ = read_sender.send(());
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
    let seen = seen.map(|found| version_of(0, &found));
    assert!(seen[0] <= seen[1], "back in time: version 3 was not in force yet: {seen:?}");
    assert_eq!(db.get(key(0)).expect("get"), Some(value(0, 3)));
}

/// The key moves each time the reader has found out where it is: it must not be reported missing.
#[test]
fn a_key_that_moves_all_the_time_is_found() {
    for layout in [RecordLayout::Checked, RecordLayout::Published] {
        let (rig, db) = rig(&one_page_blocks().viper(|viper| viper.layout(layout)));
        let slots = u64::from(db.stats().viper().expect("Viper").records_per_page);
        let mut writer = db.session();
        fill(&mut writer, 0..slots, 1);
        let moves = 6;
        let stage = Mutex::new((1, Some(writer)));
        rig.set_hook(move |at| {
            // Taken out meanwhile: the writer's own steps come by here as well.
            let taken = if at == "compare" {
                stage.lock().ok().and_then(|mut stage| Some((stage.0, stage.1.take()?)))
            } else {
                None
            };
            let Some((version, mut writer)) = taken else { return };
            if version <= moves {
                let others = version * 100;
                fill(&mut writer, [0], version + 1);
                fill(&mut writer, others..others + slots, 1);
            }
            *stage.lock().expect("alive") = (version + 1, Some(writer));
        });
        let found = db.get(key(0)).expect("nothing is damaged");
        assert_eq!(found, Some(value(0, moves + 1)), "{layout:?}");
    }
}

/// What the two threads of the next test tell each other.
#[derive(Debug, PartialEq)]
enum Said {
    ReaderWaits,
    ReaderHas(u64),
}

/// An update in place is not seen before it is durable: a reader that comes in between waits.
#[test]
fn an_update_in_place_is_seen_once_it_is_durable() {
    let (rig, db) = rig(&one_page_blocks());
    db.put(key(0), [0; VALUE_BYTES]).expect("put");
    db.fetch_add_u64(key(0), 8, 1).expect("the first one of the record");

    let (go_sender, go) = channel();
    let (said_sender, said) = channel();
    let (done_sender, done) = channel();
    // The reader's environment: it says that it waits, and waits.
    let waits = Mutex::new(Some((said_sender.clone(), done)));
    rig.environment().set_relax_hook(move |_| {
        if let Some((said, done)) = waits.lock().expect("alive").take() {
            said.send(Said::ReaderWaits).expect("the writer listens");
            done.recv().expect("the writer goes on");
        }
    });
    // The writer, between its store and its fence.
    let (heard_sender, heard) = channel();
    let stage = Mutex::new((0, go_sender, said));
    rig.set_hook(move |at| {
        if at == "vpage.value_word" {
            let mut stage = stage.lock().expect("alive");
            stage.0 += 1;
            if stage.0 == 3 {
                stage.1.send(()).expect("the reader waits");
                heard_sender.send(stage.2.recv().expect("it says something")).expect("alive");
            }
        }
    });
    std::thread::scope(|scope| {
        let db = &db;
        let reader = scope.spawn(move || {
            go.recv().expect("the writer goes on");
            let found = db.get(key(0)).expect("get").expect("it is there");
            let counter = u64::from_le_bytes(found[8..16].try_into().expect("8 bytes"));
            // Nobody may listen any more.
            let _ = said_sender.send(Said::ReaderHas(counter));
            counter
        });
        db.fetch_add_u64(key(0), 8, 1).expect("in place");
        done_sender.send(()).expect("the reader waits");
        let heard = heard.recv().expect("the writer has stopped in between");
        assert!(heard == Said::ReaderWaits || heard == Said::ReaderHas(1), "{heard:?}");
        assert_eq!(reader.join().expect("the reader is done"), 2);
    });
}
