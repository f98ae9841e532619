//! How much of the disk a store takes, and waiting for the disk.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes of a block as `stat` counts them.
const BLOCK_BYTES: u64 = 512;

/// Waits until the disk has all that was written to the files in a directory.
pub(crate) fn write_back(directory: &Path) -> io::Result<()> {
    walk(directory, &mut |path, _| fs::File::open(path)?.sync_data())
}

/// Bytes that the files in a directory take on their disk (`st_blocks`), those in directories in it included.
pub(crate) fn bytes_on_disk(directory: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    walk(directory, &mut |_, found| {
        bytes += found.blocks() * BLOCK_BYTES;
        Ok(())
    })?;
    Ok(bytes)
}

/// Visits each file in a directory, and in those in it.
fn walk(
    directory: &Path,
    visit: &mut impl FnMut(&Path, &fs::Metadata) -> io::Result<()>,
) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let found = entry.metadata()?;
        if found.is_dir() {
            walk(&entry.path(), visit)?;
        } else {
            visit(&entry.path(), &found)?;
        }
    }
    Ok(())
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
        write_back(directory.path()).expect("the disk takes it");
        let bytes = bytes_on_disk(directory.path()).expect("read");
        assert!((100_000..200_000).contains(&bytes), "{bytes}");
    }
}
