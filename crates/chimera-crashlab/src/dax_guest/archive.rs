//! [`Archive`]: an initial file system in the "newc" format of cpio, which the kernel unpacks.

use std::fmt::Write as _;

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

/// An archive being made. Archives may be put one behind the other.
#[derive(Debug, Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a directory; `path` is without a slash in front.
    pub(crate) fn directory(&mut self, path: &str) {
        self.entry(path, DIRECTORY, &[]);
    }

    /// Adds a file, which may be executed.
    pub(crate) fn file(&mut self, path: &str, contents: &[u8]) {
        self.entry(path, PROGRAM, contents);
    }

    /// The whole archive.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn entry(&mut self, path: &str, mode: u32, contents: &[u8]) {
        self.entries += 1;
        let links = 1;
        let mut header = "070701".to_owned();
        let name_bytes = path.len() as u32 + 1;
        // Number, mode, owner, group, links, time, length, four device numbers, length of the name,
        // check.
        let fields =
            [self.entries, mode, 0, 0, links, 0, contents.len() as u32, 0, 0, 0, 0, name_bytes, 0];
        for field in fields {
            // Writing to a `String` cannot fail.
            let _ = write!(header, "{field:08x}");
        }
        self.bytes.extend_from_slice(header.as_bytes());
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(contents);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_follow_each_other_at_multiples_of_four() {
        let mut archive = Archive::new();
        archive.directory("dev");
        archive.file("dev/a", b"hello");
        let bytes = archive.finish();
        let number = |at: usize| {
            let digits = std::str::from_utf8(&bytes[at..at + 8]).expect("digits");
            usize::from_str_radix(digits, 16).expect("a number")
        };
        let mut at = 0;
        let mut found = Vec::new();
        while at < bytes.len() {
            assert_eq!(&bytes[at..at + 6], b"070701");
            let (length, name_length) = (number(at + 54), number(at + 94));
            let name = &bytes[at + 110..at + 110 + name_length - 1];
            let start = (at + 110 + name_length).next_multiple_of(4);
            found.push((name.to_vec(), bytes[start..start + length].to_vec()));
            at = (start + length).next_multiple_of(4);
        }
        let expected: [(&[u8], &[u8]); 3] =
            [(b"dev", b""), (b"dev/a", b"hello"), (b"TRAILER!!!", b"")];
        assert_eq!(found, expected.map(|(name, contents)| (name.to_vec(), contents.to_vec())));
    }
}
