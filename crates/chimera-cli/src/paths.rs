//! Paths that lead nowhere, paths in JSON, and what stands for a stream in place of one.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde::{Serialize, Serializer};

use crate::failure::Failure;
use crate::text::encode_hex;

/// What stands for standard input and output in place of a file.
pub(crate) const STANDARD_STREAM: &str = "-";

/// Refuses a path that is a symbolic link to nothing, or leads through one.
///
/// # Errors
/// `DanglingLink`, which names the link and what it points to.
pub(crate) fn refuse_dangling(path: &Path) -> Result<(), Failure> {
    for link in path.ancestors() {
        let is_missing =
            fs::metadata(link).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        if let (true, Ok(target)) = (is_missing, fs::read_link(link)) {
            return Err(Failure::DanglingLink { link: link.to_owned(), target });
        }
    }
    Ok(())
}

/// A path in JSON, which is text: what is not UTF-8 is replaced, and the bytes come beside it.
#[derive(Serialize)]
struct Shown {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_hex: Option<String>,
}

/// The fields `path` and, where it is not UTF-8, `path_hex`. For `#[serde(flatten)]`.
///
/// # Errors
/// As `serializer`.
pub(crate) fn fields<P: AsRef<Path>, S: Serializer>(
    path: &P,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let path = path.as_ref().as_os_str();
    let path_hex = path.to_str().is_none().then(|| encode_hex(path.as_bytes()));
    Shown { path: path.to_string_lossy().into_owned(), path_hex }.serialize(serializer)
}

/// A path as text, with signs of replacement for what is not UTF-8.
///
/// # Errors
/// As `serializer`.
pub(crate) fn text<P: AsRef<Path>, S: Serializer>(
    path: &P,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.as_ref().display())
}
