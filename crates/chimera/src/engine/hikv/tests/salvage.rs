//! Damaged items of a store that salvages.

use super::*;

/// A get takes the key's lock where others leave it no moment without a change: it has to say the same there.
#[test]
fn a_damaged_value_is_absent_to_a_get_under_the_lock_too() {
    let (mut store, mut model) = (Store::new(PARAMETERS), Model::new());
    store.all((0..4).map(|key| Put(key, 40)), &mut model);
    let mut image = store.media.image();
    let wanted = model.remove(&2).expect("put before");
    let at = image.windows(wanted.len()).position(|bytes| bytes == wanted).expect("in the image");
    image[at + 9] ^= 16;
    for (salvages, opens) in [(true, looking()), (false, looking_later())] {
        let mut store =
            Store::open(&image, PARAMETERS, &opens.salvage(salvages)).expect("it opens");
        let items = store.engine.items();
        let mut get = |key: u64| {
            let bytes = key.to_le_bytes();
            let hash = items.core().hash.of(&bytes);
            items.read_locked(&mut store.client, hash, &bytes, true)
        };
        assert!(get(1).expect("sound"));
        let damaged = get(2);
        if salvages {
            assert!(!damaged.expect("as if it were absent"));
            assert_eq!(items.pool().losses().count, 1);
        } else {
            assert!(matches!(damaged, Err(Error::Corrupted { .. })), "{damaged:?}");
        }
    }
}
