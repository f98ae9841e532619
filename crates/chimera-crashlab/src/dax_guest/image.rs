//! Files that are NVDIMMs: the kernel's namespace info block, and a file system behind it.
//!
//! A raw namespace cannot be mapped directly. The block at byte 4096 says what it is and that its data
//! begin at 2 MiB, with the kernel's own bookkeeping in ordinary memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Where the info block lies.
const INFO_AT: u64 = 4096;
const INFO_BYTES: usize = 4096;
/// Where data begin.
pub(crate) const DATA_AT: u64 = 2 << 20;
const PAGE_BYTES: u64 = 4096;

/// What a namespace is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A block device for a DAX file system.
    FsDax,
    /// A character device.
    DevDax,
}

/// Makes the file of an NVDIMM of `bytes` bytes, all zeros but for its info block.
///
/// # Errors
/// When the file cannot be made.
pub(crate) fn make(path: &Path, bytes: u64, mode: Mode, id: u128) -> io::Result<()> {
    let file = File::create(path)?;
    file.set_len(bytes)?;
    file.write_all_at(&info_block(bytes, mode, id), INFO_AT)
}

/// Makes an ext4 file system at `offset` of a file of `bytes` bytes.
///
/// # Errors
/// When the program is missing or fails.
pub(crate) fn make_ext4(program: &Path, path: &Path, bytes: u64, offset: u64) -> io::Result<()> {
    let blocks = (bytes - offset) / PAGE_BYTES;
    // Blocks of the page's size, or the kernel refuses to map them directly.
    let output = Command::new(program)
        .args(["-q", "-F", "-b", "4096", "-E", &format!("offset={offset}")])
        .arg(path)
        .arg(blocks.to_string())
        .stdin(Stdio::null())
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{}: {}", program.display(), text.trim())))
}

/// The info block, version 1.4.
fn info_block(bytes: u64, mode: Mode, id: u128) -> [u8; INFO_BYTES] {
    let signature: &[u8; 16] = match mode {
        Mode::FsDax => b"NVDIMM_PFN_INFO\0",
        Mode::DevDax => b"NVDIMM_DAX_INFO\0",
    };
    let mut block = [0; INFO_BYTES];
    let mut at = 0;
    let mut put = |field: &[u8]| {
        block[at..at + field.len()].copy_from_slice(field);
        at += field.len();
    };
    put(signature);
    put(&id.to_le_bytes());
    // Of the parent: none.
    put(&[0; 16]);
    // Flags.
    put(&0_u32.to_le_bytes());
    // Version, major and minor.
    put(&1_u16.to_le_bytes());
    put(&4_u16.to_le_bytes());
    put(&DATA_AT.to_le_bytes());
    put(&((bytes - DATA_AT) / PAGE_BYTES).to_le_bytes());
    // The kernel's bookkeeping lies in ordinary memory.
    put(&1_u32.to_le_bytes());
    // Padding at the start and at the end.
    put(&0_u32.to_le_bytes());
    put(&0_u32.to_le_bytes());
    // Alignment.
    put(&(2_u32 << 20).to_le_bytes());
    put(&(PAGE_BYTES as u32).to_le_bytes());
    // Bytes of the kernel's bookkeeping for each page.
    put(&64_u16.to_le_bytes());
    let checksum = fletcher64(&block);
    block[INFO_BYTES - 8..].copy_from_slice(&checksum.to_le_bytes());
    block
}

/// The kernel's checksum: sums of words, and sums of these sums.
fn fletcher64(bytes: &[u8]) -> u64 {
    let (mut low, mut high) = (0_u32, 0_u64);
    for word in bytes.chunks_exact(4) {
        low =
            low.wrapping_add(word.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte)));
        high = high.wrapping_add(u64::from(low));
    }
    high << 32 | u64::from(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_where_the_kernel_looks() {
        let block = info_block(64 << 20, Mode::DevDax, u128::MAX);
        assert_eq!(&block[..16], b"NVDIMM_DAX_INFO\0");
        assert_eq!(block[16..32], [0xff; 16]);
        assert_eq!(block[52..56], [1, 0, 4, 0], "the version");
        assert_eq!(block[56..64], (2_u64 << 20).to_le_bytes(), "where data begin");
        assert_eq!(block[64..72], (62_u64 << 8).to_le_bytes(), "pages");
        assert_eq!(block[72..76], [1, 0, 0, 0], "the mode");
        assert_eq!(block[84..88], (2_u32 << 20).to_le_bytes(), "the alignment");
        assert_eq!(block[88..94], [0, 16, 0, 0, 64, 0], "sizes of pages");
        let mut without = block;
        without[4088..].fill(0);
        assert_eq!(block[4088..], fletcher64(&without).to_le_bytes());
    }

    #[test]
    fn the_checksum_is_the_kernels() {
        // By hand: words 1 and 2; low = 1, 3; high = 1 + 3.
        assert_eq!(fletcher64(&[1, 0, 0, 0, 2, 0, 0, 0]), 4 << 32 | 3);
        assert_eq!(fletcher64(&[0xff; 8]), (0xffff_fffd_u64 << 32) | 0xffff_fffe);
    }
}
