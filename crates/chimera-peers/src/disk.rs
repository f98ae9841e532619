//! How much of the disk a store takes.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes of a block as `stat` counts them.
const BLOCK_BYTES: u64 = 512;

/// Bytes that the files in a directory take on their disk (`st_blocks`), those in directories in it included.
pub(crate) fn bytes_on_disk(directory: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        match entry.metadata() {
            Ok(found) if found.is_dir() => bytes += bytes_on_disk(&entry.path())?,
            Ok(found) => bytes += found.blocks() * BLOCK_BYTES,
            // A store removes files whenever it likes.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_count_with_what_they_take() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::create_dir(directory.path().join("inner")).expect("made");
        fs::write(directory.path().join("inner/full"), vec![1; 100_000]).expect("room");
        let hole = fs::File::create(directory.path().join("hole")).expect("made");
        hole.set_len(1 << 30).expect("a hole needs no room");
        hole.sync_all().expect("synced");
        fs::File::open(directory.path().join("inner/full"))
            .and_then(|it| it.sync_all())
            .expect("synced");
        let bytes = bytes_on_disk(directory.path()).expect("read");
        assert!((100_000..200_000).contains(&bytes), "{bytes}");
    }
}
