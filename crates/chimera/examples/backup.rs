//! Copies of an open store: as a stream, which any store can read, and as a store.
//!
//! `cargo run -p chimera --example backup`

use std::error::Error;
use std::fs::File;
use std::io::{BufReader, BufWriter};

use chimera::{BackupOptions, Db, ExportOptions, ImportOptions, Options, StreamReader};

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let path = |name: &str| directory.path().join(name);
    let db = Db::open(path("original"), &Options::new())?;
    let mut session = db.session();
    for number in 0..1000_u32 {
        let value = format!("the value of {number}");
        session.put(number.to_be_bytes(), value.as_bytes())?;
    }

    // A stream: for another machine, another engine, or an archive. Sessions may write meanwhile.
    let mut file = BufWriter::new(File::create(path("stream"))?);
    let exported = db.export(&mut file, &ExportOptions::new())?;
    file.into_inner()?.sync_all()?;
    println!("exported {} records, {} bytes", exported.records, exported.bytes);

    // Reads all of it, and stores nothing.
    let verified = StreamReader::new(BufReader::new(File::open(path("stream"))?))?.verify()?;
    assert!(verified.is_complete());

    let copy = Db::open(path("copy"), &Options::new())?;
    let mut reader = StreamReader::new(BufReader::new(File::open(path("stream"))?))?;
    let imported = copy.import(&mut reader, &ImportOptions::new())?;
    println!("imported {} records", imported.records);
    assert_eq!(copy.len(), db.len());

    // A backup: a store like this one, which opens only when it is complete.
    let report = db.backup(path("backup"), &BackupOptions::new())?;
    println!("backed up {} records", report.records);
    let backup = Db::open(path("backup"), &Options::new().read_only(true))?;
    assert_eq!(backup.get(7_u32.to_be_bytes())?.as_deref(), Some(&b"the value of 7"[..]));
    Ok(())
}
