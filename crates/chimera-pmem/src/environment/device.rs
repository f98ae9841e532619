//! [`DaxDevice`]: a DAX character device, which can only be mapped.

use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Dev, major, minor};

use crate::mapping::Window;

/// What sysfs says about a DAX device.
#[derive(Debug)]
pub(super) struct DaxDevice {
    capacity: u64,
    /// Mappings are multiples of this, in offset and length.
    alignment: u64,
    /// The directory of its region, when that is read-only.
    read_only_region: Option<PathBuf>,
}

impl DaxDevice {
    /// The DAX device with device number `number`.
    ///
    /// # Errors
    /// `InvalidInput` when it is a device of another kind.
    pub(super) fn from_number(number: Dev) -> io::Result<Self> {
        let name = format!("{}:{}", major(number), minor(number));
        Self::from_directory(&PathBuf::from("/sys/dev/char").join(name))
    }

    /// The device that `directory` in sysfs describes.
    pub(super) fn from_directory(directory: &Path) -> io::Result<Self> {
        let subsystem = fs::read_link(directory.join("subsystem")).unwrap_or_default();
        if !subsystem.ends_with("bus/dax") && !subsystem.ends_with("class/dax") {
            let message = "a character device that is not a DAX device";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let capacity = read_number(&directory.join("size"))?;
        // Kernels before 4.18 do not say; 2 MiB was the only usual choice.
        let alignment = read_number(&directory.join("align")).unwrap_or(2 << 20);
        if !alignment.is_power_of_two() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Self { capacity, alignment, read_only_region: read_only_region(directory) })
    }

    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    pub(super) fn alignment(&self) -> u64 {
        self.alignment
    }

    /// Refuses a device whose region is read-only. The kernel does not: it maps such a device for
    /// writing all the same.
    ///
    /// # Errors
    /// `ReadOnlyFilesystem`.
    pub(super) fn check_writable(&self) -> io::Result<()> {
        let Some(region) = &self.read_only_region else { return Ok(()) };
        let message = format!(
            "its region is read-only (`{}/read_only` says 1): open it for reading only, or make the \
             region writable there",
            region.display()
        );
        Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, message))
    }

    /// Reads by a mapping.
    pub(super) fn read_at(
        &self,
        device: BorrowedFd<'_>,
        offset: u64,
        into: &mut [u8],
    ) -> io::Result<()> {
        if into.is_empty() {
            return Ok(());
        }
        let (window, start) = self.window(device, offset, into.len(), true)?;
        window.read(start, into);
        Ok(())
    }

    /// Writes by a mapping.
    ///
    /// # Durability
    /// The bytes are durable when it returns.
    pub(super) fn write_at(
        &self,
        device: BorrowedFd<'_>,
        offset: u64,
        bytes: &[u8],
    ) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let (window, start) = self.window(device, offset, bytes.len(), false)?;
        window.write(start, bytes);
        Ok(())
    }

    /// Maps what holds `length` bytes at `offset`, and says where in the mapping they begin.
    fn window(
        &self,
        device: BorrowedFd<'_>,
        offset: u64,
        length: usize,
        read_only: bool,
    ) -> io::Result<(Window, usize)> {
        let end = offset.checked_add(length as u64).filter(|&end| end <= self.capacity);
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        let first = offset / self.alignment * self.alignment;
        let length = end.next_multiple_of(self.alignment) - first;
        let window = Window::map(device, first, length, read_only)?;
        Ok((window, (offset - first) as usize))
    }
}

/// The region that the device `directory` belongs to, when it says that it is read-only: the nearest
/// directory above with a file `read_only`. Devices that are not made of NVDIMMs have none.
fn read_only_region(directory: &Path) -> Option<PathBuf> {
    let directory = fs::canonicalize(directory).ok()?;
    let mut above = directory.ancestors();
    let (region, says) =
        above.find_map(|above| Some((above, fs::read_to_string(above.join("read_only")).ok()?)))?;
    (says.trim() != "0").then(|| region.to_owned())
}

/// A number in a file of sysfs, decimal or hexadecimal.
fn read_number(path: &Path) -> io::Result<u64> {
    let text = fs::read_to_string(path)?;
    let text = text.trim();
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
