//! Models of the overlay.

use std::sync::Arc;

use loom::thread;

use super::*;
use crate::sync::lock;
use crate::sync::under_loom::model;

/// Whether a tree of one key has it, and how often that was changed.
type OneKey = Mutex<(bool, u32)>;

fn make(tree: &OneKey, change: Change) {
    let mut tree = lock(tree);
    *tree = (change == Change::Present, tree.1 + 1);
}

/// Two changes of a key, one after the other, while the overlay is closed: the last one decides, and whoever finds the
/// overlay closed sees what was kept before.
#[test]
fn loom_the_last_change_of_a_key_decides_while_the_overlay_is_closed() {
    model::check(3, || {
        let (overlay, tree) = (Arc::new(Overlay::new()), Arc::new(OneKey::new((true, 0))));
        let environment = model::environment();
        assert!(overlay.keep(&*environment, b"k", Change::Present));
        let writer = thread::spawn({
            let (overlay, tree) = (overlay.clone(), tree.clone());
            move || {
                let environment = model::environment();
                for change in [Change::Absent, Change::Present] {
                    if !overlay.keep(&*environment, b"k", change) {
                        assert!(lock(&tree).1 > 0, "closed, and the tree lacks changes");
                        make(&tree, change);
                    }
                }
            }
        });
        overlay.close(&*environment, |_, change| make(&tree, change));
        writer.join().expect("no panic");
        assert!(lock(&tree).0);
    });
}
