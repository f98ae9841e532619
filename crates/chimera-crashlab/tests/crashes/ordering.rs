//! Writers that come in the middle of a listing from which the order of keys is made.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use chimera::{EngineKind, Options, Session};
use chimera_crashlab::rig::Simulated;

use crate::rig;
use crate::tools::{assert_sound, contents, fill, key, small, small_any};

/// Stores whose order is made in several steps, and the steps of a listing at which it holds no lock.
fn stores() -> [(Options, &'static [&'static str]); 3] {
    let anywhere: &[&str] = &["load", "read", "compare"];
    let hikv = Options::new()
        .engine(EngineKind::Hikv)
        .segment_bytes(32 << 10)
        .hikv(|hikv| hikv.partitions(2).index_segment_bytes(512).heap_run_bytes(2048));
    [(small(), anywhere), (small_any(), anywhere), (hikv, &["read"])]
}

/// Moves keys, removes some, makes new ones, and uses again the places that became free.
fn change(writer: &mut Session<Simulated>) {
    let delete = |writer: &mut Session<Simulated>, number| {
        assert!(writer.delete(key(number)).expect("delete"), "{number}");
    };
    fill(writer, 0..20, 2);
    (20..25).for_each(|number| delete(writer, number));
    fill(writer, 50..60, 1);
    fill(writer, 0..20, 3);
    (50..53).for_each(|number| delete(writer, number));
    fill(writer, 20..22, 2);
}

/// Whatever a writer does, and at whatever moment of the rebuild, a scan has every key.
#[test]
fn keys_that_move_while_they_are_gathered_are_scanned() {
    for (options, steps) in stores() {
        let options = options.ordered(true).order(|order| {
            order.node_bytes(256).queues(2).queue_requests(2).part_keys(8).threads(0)
        });
        for moment in 0.. {
            // Without order, so that there is nothing to make it of but the listing.
            let (rig, db) = rig(&options.clone().ordered(false));
            fill(&mut db.session(), 0..40, 1);
            db.close().expect("nobody else has it");
            let db = rig.open(&crate::quiet(&options)).expect("the store opens");
            let stage = Arc::new(Mutex::new(Some((moment, db.session()))));
            let staged = stage.clone();
            rig.set_hook(move |step| {
                if !steps.contains(&step) {
                    return;
                }
                let mut stage = staged.lock().expect("alive");
                let writer = match stage.take() {
                    Some((0, writer)) => Some(writer),
                    Some((left, writer)) => {
                        *stage = Some((left - 1, writer));
                        None
                    }
                    None => None,
                };
                drop(stage);
                if let Some(mut writer) = writer {
                    change(&mut writer);
                }
            });
            let begun = db.scan(..).expect("ordered");
            drop(begun);
            // What is left of it, where the rebuild has no such moment.
            let was_late = stage.lock().expect("alive").take();
            rig.set_hook(|_| ());
            let scan = db.scan(..).expect("ordered").collect::<Result<BTreeMap<_, _>, _>>();
            assert!(scan.expect("no damage") == contents(&db), "at moment {moment}");
            assert_sound(&db);
            if let Some((left, _)) = was_late {
                assert!(moment >= 40 && left < moment, "only {moment} moments");
                break;
            }
        }
    }
}
