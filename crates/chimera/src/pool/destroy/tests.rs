//! What is removed, in which order, and what is left alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chimera_pmem::SteppedEnvironment;
use chimera_pmem::environment::{FileProvider, MemoryFiles};
use chimera_pmem::{Hardware, HardwareOptions, Medium};

use super::super::superblock::MAGIC;
use super::*;
use crate::pool::tests::media::Media;
use crate::pool::tests::watched::{Deed, Watched};

const WORD: u64 = 0x5a5a;

fn environment(files: &Watched) -> SteppedEnvironment {
    SteppedEnvironment::with_files(1, Arc::new(files.clone()))
}

/// The words of a superblock's file with a magic number at the start of these copies, and something else everywhere.
fn superblock(copies: &[u64]) -> Vec<u64> {
    let mut words = vec![WORD; (FILE_BYTES / 8) as usize];
    for at in copies {
        words[(at / 8) as usize] = MAGIC;
    }
    words
}

fn write(files: &Watched, name: &str, content: &[u8]) {
    let file = files.files.open(&Path::new("/pool").join(name), OpenMode::CreateNew).unwrap();
    file.write_at(0, content).unwrap();
}

/// A directory with these files beside the lock and the superblock.
fn directory(others: &[&str]) -> Watched {
    let files = Watched::default();
    files.files.create_directory(Path::new("/pool")).unwrap();
    write(&files, LOCK, &[]);
    write(&files, SUPERBLOCK, superblock(&[0]).as_bytes());
    for name in others {
        write(&files, name, &[]);
    }
    files
}

fn destroyed(files: &Watched) -> Result<()> {
    let memory = Hardware::new(HardwareOptions::default()).unwrap();
    destroy(&memory, &environment(files), Path::new("/pool"), &["metrics"])
}

fn left(files: &Watched) -> Vec<PathBuf> {
    let mut left = files.files.list(Path::new("/pool")).unwrap_or_default();
    left.sort();
    left.into_iter().map(|path| path.file_name().unwrap().into()).collect()
}

#[test]
fn the_segments_go_first_and_the_lock_goes_last_each_step_durable_before_the_next() {
    for has_guest in [false, true] {
        let mut names = vec!["journal", "metrics", "segment-000001", "segment-000000"];
        names.extend(has_guest.then_some("guest"));
        let files = directory(&names);
        destroyed(&files).unwrap();
        let deeds = files.take(|deed| matches!(deed, Deed::Removed(_) | Deed::SyncedEntries(_)));
        let removed = |name: &str| Deed::Removed(name.to_owned());
        let synced = |name: &str| Deed::SyncedEntries(name.to_owned());
        let steps = ["segment-000000", "segment-000001", "journal", "metrics"].map(removed);
        let rest = [synced("pool"), removed(SUPERBLOCK), synced("pool"), removed(LOCK)];
        // The entry of the directory itself, or where it stays that of the lock.
        let end = [synced(if has_guest { "pool" } else { "" })];
        assert_eq!(deeds, [&steps[..], &rest, &end].concat());
        assert_eq!(left(&files), if has_guest { vec![PathBuf::from("guest")] } else { vec![] });
    }
}

/// It is not known what is in it then.
#[test]
fn a_superblock_that_cannot_be_opened_is_no_missing_one() {
    for refused in [1, 2] {
        let files = directory(&[]);
        let opened = AtomicU64::new(0);
        files.refuse(move |deed| {
            let is_meant = *deed == Deed::Opened(SUPERBLOCK.to_owned())
                && opened.fetch_add(1, Ordering::Relaxed) + 1 == refused;
            is_meant.then_some(io::ErrorKind::PermissionDenied)
        });
        let error = destroyed(&files).unwrap_err();
        let is_right = matches!(&error, Error::Io { action: "open", source, .. }
            if source.kind() == io::ErrorKind::PermissionDenied);
        assert!(is_right, "{error}");
        assert_eq!(left(&files), [LOCK, SUPERBLOCK].map(PathBuf::from));
    }
}

/// What is left of a pool without its superblock is known by its lock, or by that there is nothing else.
#[test]
fn without_a_superblock_the_lock_says_whose_directory_it_is() {
    let writer = format!("{:<LOCK_BYTES$}", 4711);
    let longer = format!("{writer}1");
    for (lock, others, expected) in [
        ("", vec![], Ok(())),
        (&*writer, vec![], Ok(())),
        (&writer, vec!["guest"], Ok(())),
        ("", vec!["guest"], Err("it has no file `superblock`")),
        ("4711", vec!["guest"], Err("it has no file `superblock`")),
        (&longer, vec!["guest"], Err("it has no file `superblock`")),
        ("not a process' number", vec!["guest"], Err("it has no file `superblock`")),
        ("twenty bytes of text", vec!["guest"], Err("it has no file `superblock`")),
        (&writer, vec!["segment-000000"], Err("is missing: put it back")),
        (&writer, vec!["journal"], Err("is missing: put it back")),
        ("", vec!["journal"], Err("is missing: put it back")),
    ] {
        let files = Watched::default();
        files.files.create_directory(Path::new("/pool")).unwrap();
        write(&files, LOCK, lock.as_bytes());
        for name in &others {
            write(&files, name, &[]);
        }
        let before = left(&files);
        match (destroyed(&files), expected) {
            (Ok(()), Ok(())) => assert!(!left(&files).contains(&PathBuf::from(LOCK))),
            (Err(Error::NotAStore { reason, .. }), Err(words)) => {
                assert!(reason.contains(words), "{lock:?}, {others:?}: {reason}");
                assert_eq!(left(&files), before);
            }
            (done, expected) => panic!("{lock:?}, {others:?}: {done:?}, not {expected:?}"),
        }
    }
}

#[test]
fn a_superblock_that_was_cut_or_extended_is_known_by_its_magic_number() {
    let whole = superblock(&[COPY_STRIDE]);
    for (bytes, is_known) in [(4096, false), (4104, true), (8192, true), (9000, true), (8, false)] {
        let files = Watched::default();
        files.files.create_directory(Path::new("/pool")).unwrap();
        write(&files, LOCK, &[]);
        let mut content = whole.as_bytes().to_vec();
        content.resize(bytes, 0x77);
        write(&files, SUPERBLOCK, &content);
        match destroyed(&files) {
            Ok(()) => assert!(is_known, "{bytes} bytes"),
            Err(error) => {
                assert!(error.to_string().contains("magic number"), "{bytes}: {error}");
                assert!(!is_known);
            }
        }
    }
    // Eight bytes of the first copy.
    let files = directory(&[]);
    let file = files.files.open(Path::new("/pool/superblock"), OpenMode::ReadWrite).unwrap();
    file.set_length(8).unwrap();
    destroyed(&files).unwrap();
}

#[test]
fn a_file_that_is_gone_already_is_no_error_and_any_other_one_is() {
    for (kind, is_gone) in
        [(io::ErrorKind::NotFound, true), (io::ErrorKind::PermissionDenied, false)]
    {
        let files = directory(&["journal"]);
        files.refuse(move |deed| (*deed == Deed::Removed("journal".to_owned())).then_some(kind));
        let done = destroyed(&files);
        assert_eq!(done.is_ok(), is_gone);
        let is_told = matches!(done, Err(Error::Io { action: "remove", .. }));
        assert_eq!(is_told, !is_gone);
    }
}

/// A device whose first words are these.
fn device(words: &[u64]) -> Watched {
    let files = Watched::of(MemoryFiles::new().on(Medium::DevDax));
    let file = files.files.open(Path::new("/device"), OpenMode::CreateNew).unwrap();
    file.allocate(0, 4 << 20).unwrap();
    file.write_at(0, words.as_bytes()).unwrap();
    files
}

#[test]
fn of_a_device_the_magic_number_goes_last_and_all_is_durable() {
    const COPY: usize = (COPY_STRIDE / 8) as usize;
    for (copies, last) in [(vec![0, COPY_STRIDE], 0), (vec![0], 0), (vec![COPY_STRIDE], COPY)] {
        let words = superblock(&copies);
        let files = device(&[&words[..], &[WORD; 8]].concat());
        let media = Media::default();
        let all = words.len();
        let fenced = media.durable_at_fences(all + 8, || {
            destroy(&media, &environment(&files), Path::new("/device"), &[]).unwrap();
        });
        let [first, second, third] = &fenced[..] else { panic!("three steps") };
        // The copies but for what they begin with.
        let in_copies = |word: usize| (1..WORDS).contains(&(word % COPY)) && word < all;
        for word in 0..all + 8 {
            let expected = if in_copies(word) {
                0
            } else if word < all {
                words[word]
            } else {
                WORD
            };
            assert_eq!(first[word], expected, "word {word} after the first step");
            let expected = if word == last {
                MAGIC
            } else if word < all {
                0
            } else {
                WORD
            };
            assert_eq!(second[word], expected, "word {word} after the second step");
            let expected = if word < all { 0 } else { WORD };
            assert_eq!(third[word], expected, "word {word} in the end");
        }
    }
}

#[test]
fn a_device_without_a_pool_is_left_alone() {
    for (words, is_blank) in [(vec![0; 1024], true), (superblock(&[]), false)] {
        let files = device(&words);
        let media = Media::default();
        let error = destroy(&media, &environment(&files), Path::new("/device"), &[]).unwrap_err();
        assert_eq!(matches!(error, Error::NotFound { .. }), is_blank, "{error}");
        assert_eq!(matches!(error, Error::NotAStore { .. }), !is_blank, "{error}");
        assert_eq!(media.counts(), (0, 0));
    }
}
