//! Models of the overlay.

use std::sync::Arc;

use loom::thread;

use super::*;
use crate::sync::lock;
use crate::sync::under_loom::model;

/// The payload that a tree of one key has; none.
type OneKey = Mutex<Option<u64>>;

fn make(tree: &OneKey, change: Change) {
    *lock(tree) = match change {
        Change::Present(payload) => Some(payload),
        Change::Absent => None,
    };
}

/// Two changes of a key, one after the other, while the overlay is closed: the last one decides, and whoever finds the
/// overlay closed sees what was kept before.
#[test]
fn loom_the_last_change_of_a_key_decides_while_the_overlay_is_closed() {
    model::check(3, || {
        let (overlay, tree) = (Arc::new(Overlay::new()), Arc::new(OneKey::new(Some(7))));
        let environment = model::environment();
        assert!(overlay.keep(&*environment, b"k", Change::Present(1)));
        let writer = thread::spawn({
            let (overlay, tree) = (overlay.clone(), tree.clone());
            move || {
                let environment = model::environment();
                for change in [Change::Absent, Change::Present(3)] {
                    if !overlay.keep(&*environment, b"k", change) {
                        assert!(*lock(&tree) != Some(7), "closed, and the tree lacks changes");
                        make(&tree, change);
                    }
                }
            }
        });
        overlay.close(&*environment, |_, change| make(&tree, change));
        writer.join().expect("no panic");
        assert_eq!(*lock(&tree), Some(3));
    });
}
