//! What is no regular file in the place of a file of a store is an error at once: opening waits for no
//! pipe and follows no link.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use chimera::{Db, Options};

use crate::tools::{assert_fails, bytes_of, contents, filled_store, open, scratch, small};

/// More than opening a small store takes; far less than for ever.
const PATIENCE: Duration = Duration::from_secs(30);

/// What can be in the place of a file, and what the message then says.
const KINDS: [(&str, &str); 4] = [
    ("pipe", "a pipe"),
    ("link", "a symbolic link"),
    ("directory", "directory"),
    ("socket", "a socket"),
];

fn plant(kind: &str, at: &Path) {
    match kind {
        "pipe" => {
            let made = Command::new("mkfifo").arg(at).status().expect("mkfifo is there");
            assert!(made.success());
        }
        "link" => symlink("/dev/zero", at).expect("a link"),
        "directory" => fs::create_dir(at).expect("a directory"),
        // It stays when nobody listens any more.
        "socket" => drop(UnixListener::bind(at).expect("a socket")),
        _ => unreachable!("{kind}"),
    }
}

/// Opens a store, which must not take for ever.
fn open_in_time(path: &Path, options: &Options) -> chimera::Result<Db> {
    let (sender, receiver) = mpsc::channel();
    let (path, options) = (path.to_owned(), options.clone());
    std::thread::spawn(move || sender.send(Db::open(&path, &options)));
    receiver.recv_timeout(PATIENCE).expect("an answer at once")
}

#[test]
fn a_file_of_a_store_is_a_regular_file() {
    let directory = scratch();
    let path = directory.path().join("store");
    filled_store(&path, &small(), 25);
    let before = bytes_of(&path);
    let kept = directory.path().join("kept");
    for name in ["superblock", "lock", "journal", "segment-000000"] {
        let file = path.join(name);
        // A store in memory has no journal.
        let had_it = fs::rename(&file, &kept).is_ok();
        assert!(had_it || name == "journal");
        for (kind, text) in KINDS {
            plant(kind, &file);
            for options in [small(), small().read_only(true), small().create(false).salvage(true)] {
                assert_fails(open_in_time(&path, &options), &["cannot open", name, text]);
            }
            if kind == "directory" { fs::remove_dir(&file) } else { fs::remove_file(&file) }
                .expect("nothing has replaced it");
        }
        if had_it {
            fs::rename(&kept, &file).expect("put back");
        }
    }
    assert_eq!(bytes_of(&path), before, "a refused open changes nothing");
    assert_eq!(contents(&open(&path, &small())).len(), 25);
}
