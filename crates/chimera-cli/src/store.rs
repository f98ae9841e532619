//! Opening a store the way a command needs it.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::SystemTime;

use chimera::{Db, Options, StoreOutline};
use chimera_pmem::environment::OpenMode;
use chimera_pmem::{Environment, RealEnvironment};

use crate::arguments::{StoreArguments, WriteArguments};
use crate::failure::Failure;
use crate::progress::Bar;

/// Bytes of a superblock: both copies.
const SUPERBLOCK_BYTES: usize = StoreOutline::BYTES;
/// Segments of a store made without saying a size. The library's default of 1 GiB suits servers;
/// these files are small enough to copy with any tool. Storage is taken block by block either way.
const DEFAULT_SEGMENT_BYTES: u64 = 64 << 20;

/// Most bytes of the journal of a store made on a plain file, which begins with less. Commands write little, and the
/// journal is opened with the library's default of 64 MiB by others.
const JOURNAL_BYTES: u64 = 256 << 10;

/// Opens a store, with a progress bar where that takes long.
///
/// # Errors
/// As [`Db::open`].
pub(crate) fn open(path: &Path, options: Options) -> Result<Db, chimera::Error> {
    // Their order takes longer than most commands, and none of these needs it.
    open_with_bar(path, options.ordered(false), Bar::new("opening", "blocks").as_ref())
}

/// Opens a store to scan it. The bar shows how far the order of its keys is, and is to be dropped when a scan has begun.
///
/// # Errors
/// As [`Db::open`].
pub(crate) fn open_ordered(
    path: &Path,
    options: Options,
) -> Result<(Db, Option<Bar>), chimera::Error> {
    let (opening, ordering) = (Bar::new("opening", "blocks"), Bar::new("sorting", "keys"));
    let options = options.ordered(true).order(|order| order.this_time(true));
    let options = match opening.as_ref().zip(ordering.as_ref()) {
        Some((opening, ordering)) => {
            options.order(|order| order.progress(ordering.callback_after(opening)))
        }
        None => options,
    };
    Ok((open_with_bar(path, options, opening.as_ref())?, ordering))
}

fn open_with_bar(path: &Path, options: Options, bar: Option<&Bar>) -> Result<Db, chimera::Error> {
    // A command is done long before a pass would be.
    let options = options.scrub_every(None);
    let options = match bar {
        Some(bar) => options.progress(bar.callback()),
        None => options,
    };
    Db::open(path, &options)
}

/// Opens a store for reading, beside other readers.
///
/// # Errors
/// As [`Db::open`].
pub(crate) fn open_to_read(path: &Path, arguments: &StoreArguments) -> Result<Db, Failure> {
    let options = Options::new().read_only(true).salvage(arguments.salvage);
    Ok(open(path, options)?)
}

/// Opens a store for reading keys in their order.
///
/// # Errors
/// As [`Db::open`].
pub(crate) fn open_to_scan(
    path: &Path,
    arguments: &StoreArguments,
) -> Result<(Db, Option<Bar>), Failure> {
    let options = Options::new().read_only(true).salvage(arguments.salvage);
    Ok(open_ordered(path, options)?)
}

/// How a store is opened for the writes of one command.
pub(crate) fn options_to_write(arguments: &WriteArguments) -> Options {
    Options::new()
        .create(false)
        .salvage(arguments.store.salvage)
        .durability(arguments.durability)
        // One command writes little: it takes storage block by block, instead of 128 KiB ahead, and
        // in small pages: with huge ones the kernel allocates 2 MiB of the file at the first touch.
        .populate_ahead_bytes(0)
        .reclaim_percent(0)
        .huge_pages(false)
}

/// How a store is made by a command that says nothing of its sizes.
pub(crate) fn options_to_create(path: &Path, arguments: &WriteArguments) -> Options {
    let options = options_to_write(arguments).create(true).journal_bytes(JOURNAL_BYTES);
    // On a device the library chooses segments that fill it.
    if is_device(path) { options } else { options.segment_bytes(DEFAULT_SEGMENT_BYTES) }
}

/// Opens an existing store for writing.
///
/// # Errors
/// As [`Db::open`].
pub(crate) fn open_to_write(path: &Path, arguments: &WriteArguments) -> Result<Db, Failure> {
    Ok(open(path, options_to_write(arguments))?)
}

/// Whether there is a device at `path`.
pub(crate) fn is_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.file_type().is_char_device())
}

/// The bytes of the superblock of the store on a device, there or not.
///
/// # Errors
/// When there is no DAX device at `path`, or one that is too small.
pub(crate) fn superblock_of_device(path: &Path) -> io::Result<[u8; SUPERBLOCK_BYTES]> {
    let device = RealEnvironment::new().open(path, OpenMode::Read)?;
    let mut bytes = [0; SUPERBLOCK_BYTES];
    device.read_at(0, &mut bytes)?;
    Ok(bytes)
}

/// Whether there is no store at `path` yet: no superblock, or one that holds nothing but zeros
/// because its creation was interrupted.
///
/// # Errors
/// When the superblock is no regular file, or cannot be read.
pub(crate) fn is_absent(path: &Path) -> Result<bool, Failure> {
    let is_blank = |bytes: &[u8]| bytes.iter().all(|&byte| byte == 0);
    if is_device(path) {
        // What cannot be read the library explains better.
        return Ok(superblock_of_device(path).is_ok_and(|bytes| is_blank(&bytes)));
    }
    let path = path.join("superblock");
    match read_regular(&path, SUPERBLOCK_BYTES) {
        Ok(found) => Ok(is_blank(&found.bytes)),
        Err(source) => match source.kind() {
            io::ErrorKind::NotFound => Ok(true),
            // A file at `path`, or a superblock that is too long: the library explains that better.
            io::ErrorKind::NotADirectory | io::ErrorKind::FileTooLarge => Ok(false),
            _ => Err(chimera::Error::Io { action: "open", path, source }.into()),
        },
    }
}

/// What a regular file held.
pub(crate) struct Contents {
    pub(crate) bytes: Vec<u8>,
    /// None where the file system does not say.
    pub(crate) modified: Option<SystemTime>,
}

/// Reads a regular file whole. A link is not followed, and a pipe does not hang.
///
/// # Errors
/// `NotFound`; `FileTooLarge` when it has more than `bytes_max` bytes; `InvalidInput` when it is no
/// regular file; what the system says.
pub(crate) fn read_regular(path: &Path, bytes_max: usize) -> io::Result<Contents> {
    let file = regular(path)?;
    let modified = file.metadata()?.modified().ok();
    let mut bytes = Vec::new();
    // One more than there may be, since it may grow meanwhile.
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > bytes_max {
        let message = format!("it has more than {bytes_max} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(Contents { bytes, modified })
}

/// Opens a regular file for reading.
fn regular(path: &Path) -> io::Result<File> {
    let file = RealEnvironment::new().open(path, OpenMode::Read)?;
    let file = match file.descriptor() {
        Some(descriptor) => File::from(descriptor.try_clone_to_owned()?),
        None => return Err(io::ErrorKind::Unsupported.into()),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a device, not a regular file"));
    }
    Ok(file)
}

/// Bytes of every key and of every value; none where they may be any.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sizes {
    pub(crate) key: Option<u32>,
    pub(crate) value: Option<u32>,
}

impl Sizes {
    /// Of an open store.
    pub(crate) fn of(db: &Db) -> Self {
        let stats = db.stats();
        match stats.key_bytes {
            0 => Self::default(),
            key => Self { key: Some(key), value: Some(stats.value_bytes) },
        }
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.key, self.value) {
            (Some(key), Some(value)) => {
                write!(f, "keys of {key} bytes, values of {value} bytes")
            }
            _ => f.write_str("keys and values of any size"),
        }
    }
}
