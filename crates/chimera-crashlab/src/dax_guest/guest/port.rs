//! [`Port`]: a serial port whose bytes the host has before a call returns.
//!
//! The console of a guest lags behind; a byte written to the transmit register of an emulated PCI
//! serial port goes to the host's file at once, or, when the host does not take it, as soon as it does. Until
//! then the port says that its transmitter is not empty: it is asked, because two bytes that wait
//! there would be lost with the machine. The registers are reached through sysfs, without unsafe code: a
//! file `resource0` of ports takes reads and writes of one byte.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::dax_guest::plan::Message;

/// Vendor and device number of the serial port.
const NUMBERS: [(&str, &str); 2] = [("vendor", "0x1b36"), ("device", "0x0002")];

/// The register that says how the line is, and its bit for an empty transmitter.
const LINE_STATUS: u64 = 5;
const TRANSMITTER_EMPTY: u8 = 1 << 6;

/// The serial port.
#[derive(Debug)]
pub(super) struct Port {
    registers: Mutex<File>,
}

impl Port {
    /// Finds it among the devices of the machine.
    pub(super) fn find() -> io::Result<Self> {
        for entry in fs::read_dir("/sys/bus/pci/devices")? {
            let device = entry?.path();
            if NUMBERS.iter().all(|(file, number)| says(&device.join(file), number)) {
                if says(&device.join("enable"), "0") {
                    fs::write(device.join("enable"), "1")?;
                }
                let file =
                    OpenOptions::new().read(true).write(true).open(device.join("resource0"))?;
                return Ok(Self { registers: Mutex::new(file) });
            }
        }
        Err(io::Error::new(io::ErrorKind::NotFound, "the machine has no PCI serial port"))
    }

    /// Sends one byte.
    pub(super) fn send(&self, byte: u8) -> io::Result<()> {
        self.send_all(&[byte])
    }

    /// Sends a message in one piece.
    pub(super) fn say(&self, message: &Message) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.send_all(&line)
    }

    fn send_all(&self, bytes: &[u8]) -> io::Result<()> {
        let registers = self.registers.lock().unwrap_or_else(PoisonError::into_inner);
        // One byte each: more would go to the registers behind.
        bytes.iter().try_for_each(|&byte| {
            registers.write_all_at(&[byte], 0)?;
            wait_until_sent(&registers)
        })
    }
}

fn wait_until_sent(registers: &File) -> io::Result<()> {
    let mut status = [0];
    while status[0] & TRANSMITTER_EMPTY == 0 {
        registers.read_exact_at(&mut status, LINE_STATUS)?;
    }
    Ok(())
}

fn says(file: &Path, text: &str) -> bool {
    fs::read_to_string(file).is_ok_and(|found| found.trim() == text)
}
