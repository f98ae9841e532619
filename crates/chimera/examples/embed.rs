//! Opens a store, writes a few records, reads them, and lists what there is.
//!
//! `cargo run -p chimera --example embed`

use std::error::Error;

use chimera::{Db, Options};

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("fruit");

    // Creates the store, or recovers it. Keys and values may have any size.
    let db = Db::open(&path, &Options::new())?;
    db.put(b"apples", b"3")?;
    db.put(b"pears", b"5")?;
    let is_new = db.put(b"apples", b"4")?;
    assert!(!is_new);

    assert_eq!(db.get(b"apples")?.as_deref(), Some(&b"4"[..]));
    assert!(!db.contains_key(b"plums")?);
    db.delete(b"pears")?;
    db.put(b"quinces", b"1")?;
    // Dropping the last handle closes the store as well; this way errors are seen.
    db.close()?;

    // Later, perhaps in another process: everything that was acknowledged is there.
    let db = Db::open(&path, &Options::new())?;
    for record in &db {
        let (key, value) = record?;
        println!("{}: {}", String::from_utf8_lossy(&key), String::from_utf8_lossy(&value));
    }
    println!("{} records, durability {}", db.len(), db.effective_durability());
    assert_eq!(db.len(), 2);
    Ok(())
}
