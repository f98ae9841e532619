//! What the disk itself does: written between the stores' turns, so that a slow moment is told from a slow store.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Instant;

/// Bytes of a piece of the sequential write.
const PIECE_BYTES: usize = 1 << 20;
/// Bytes that are written before each sync of a small write.
const SMALL_BYTES: usize = 4096;
/// Small writes and syncs.
const SYNCS: usize = 16;

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Probed {
    /// A new file written in order, with one `fdatasync` at its end.
    pub(crate) sequential_bytes_per_s: f64,
    /// An overwrite of 4 KiB and an `fdatasync`: the median.
    pub(crate) sync_ns: f64,
}

/// Writes `bytes` in order and syncs them; then small pieces, each synced.
pub(crate) fn probe(directory: &Path, bytes: u64) -> io::Result<Probed> {
    let path = directory.join("probe");
    let mut file = File::create(&path)?;
    // Not zeros: those could be written as a hole.
    let piece: Vec<u8> = (0..PIECE_BYTES).map(|at| ((at * 31) >> 3) as u8).collect();
    let begun = Instant::now();
    let pieces = bytes.div_ceil(PIECE_BYTES as u64);
    (0..pieces).try_for_each(|_| file.write_all(&piece))?;
    file.sync_data()?;
    let elapsed = begun.elapsed().as_secs_f64().max(1e-9);
    let sequential_bytes_per_s = (pieces * PIECE_BYTES as u64) as f64 / elapsed;
    let mut times = Vec::new();
    for _ in 0..SYNCS {
        file.seek(SeekFrom::Start(0))?;
        let begun = Instant::now();
        file.write_all(&piece[..SMALL_BYTES])?;
        file.sync_data()?;
        times.push(begun.elapsed().as_nanos() as f64);
    }
    drop(file);
    std::fs::remove_file(&path)?;
    Ok(Probed { sequential_bytes_per_s, sync_ns: chimera_bench::measure::median(&times) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_finds_something_and_leaves_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let found = probe(directory.path(), 1 << 20).expect("room");
        assert!(found.sequential_bytes_per_s > 0.0 && found.sync_ns > 0.0, "{found:?}");
        assert_eq!(std::fs::read_dir(directory.path()).expect("there").count(), 0);
    }
}
