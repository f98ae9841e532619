//! What host and guest say to each other: a [`Plan`] goes in with the initial file system, bytes and
//! [`Message`]s come out of the serial port.
//!
//! A message is one line of JSON, from `{` to the line's end. Between messages each byte stands for
//! itself: a small letter is an acknowledged operation of the thread with that number, `a` being 0.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where the plan lies in the guest.
pub(crate) const PLAN_PATH: &str = "/plan.json";
/// Threads that write to each store.
pub(crate) const THREADS: usize = 2;
/// Written by a thread that waits for its power to be cut, and does nothing else any more.
pub(crate) const CUT_ME: u8 = b'!';

/// What the guest is to do in one start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// All operations follow from it.
    pub(crate) seed: u64,
    /// The engine of the stores, by its name.
    pub(crate) engine: String,
    pub(crate) stores: Vec<Target>,
    /// Devices that must be there before anything is done.
    pub(crate) devices: Vec<String>,
    pub(crate) mount: Option<Mount>,
    /// Operations for each thread; none for as many as there is time for.
    pub(crate) operations: Option<u64>,
    /// A cut at an exact step instead of a random moment.
    pub(crate) exact: Option<Exact>,
    /// Whether to send what `chimera doctor` says of each store.
    pub(crate) doctor: bool,
    /// Calls of the command `chimera`, before the stores are opened.
    pub(crate) commands: Vec<Vec<String>>,
}

/// A file system to mount in the guest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Mount {
    pub(crate) device: String,
    pub(crate) options: String,
}

/// Where the guest mounts it.
pub(crate) const MOUNT_POINT: &str = "/mnt";

/// A store of the guest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Target {
    pub(crate) path: String,
    /// For each thread, how many of its operations have been acknowledged.
    pub(crate) done: [u64; THREADS],
    /// The first number of its threads.
    pub(crate) first_thread: usize,
    pub(crate) access: Access,
    /// Asked for, as text.
    pub(crate) durability: String,
    /// Whether it keeps its keys in their order.
    pub(crate) ordered: bool,
}

/// How a store is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Access {
    Write,
    /// For writing, if it can be had with this durability.
    WriteIfPossible,
    /// For writing, which must be refused, and then for reading.
    RefusedThenRead,
    /// For writing, whatever is damaged or lost.
    Salvage,
}

/// A cut at an exact step of an operation.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Exact {
    /// Of which thread.
    pub(crate) thread: usize,
    /// After how many of its operations in this start.
    pub(crate) operation: u64,
    /// At which step from there on: before a store, swap, copy, flush or fence.
    pub(crate) step: u64,
}

/// What the guest says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Message {
    /// What begins now, for whoever asks why nothing follows.
    Doing(String),
    /// The stores are opened now.
    Opening,
    /// A store is open and verified.
    Verified(Verified),
    /// Opening a store for writing was refused, with this text.
    Refused { path: String, error: String },
    /// What `chimera doctor --json` says about a path.
    Doctor { path: String, report: Value },
    /// What a call of the command `chimera` printed; nothing when it failed.
    Ran { output: Option<String> },
    /// A thread has reached the step at which its power is to be cut.
    Cut { thread: usize, operation: u64, step: String },
    /// All is done that was asked for; stores are closed.
    Done,
    /// Something is wrong.
    Problem(String),
}

/// A store that was opened and verified.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Verified {
    pub(crate) path: String,
    pub(crate) medium: String,
    pub(crate) durability: String,
    pub(crate) flush_instruction: String,
    pub(crate) records: u64,
    /// Second copies of a key that recovery found.
    pub(crate) duplicates_cleared: u64,
    /// For each thread, how many of its operations the store holds.
    pub(crate) done: [u64; THREADS],
    /// What is not as it must be.
    pub(crate) problems: Vec<String>,
}

/// What came out of the serial port so far.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// For each thread, operations acknowledged in this start.
    pub(crate) acknowledged: Vec<u64>,
    pub(crate) messages: Vec<Message>,
    /// A thread waits for its power to be cut.
    pub(crate) wants_cut: bool,
    /// What could not be understood.
    pub(crate) garbled: Vec<String>,
    line: Option<Vec<u8>>,
}

impl Log {
    pub(crate) fn new(threads: usize) -> Self {
        Self { acknowledged: vec![0; threads], ..Self::default() }
    }

    /// Takes in what came next.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.take_byte(byte);
        }
    }

    fn take_byte(&mut self, byte: u8) {
        match (&mut self.line, byte) {
            (Some(_), b'\n') => {
                let line = self.line.take().unwrap_or_default();
                match serde_json::from_slice(&line) {
                    Ok(message) => self.messages.push(message),
                    Err(_) => self.garbled.push(String::from_utf8_lossy(&line).into_owned()),
                }
            }
            (Some(line), byte) => line.push(byte),
            (None, b'{' | b'"') => self.line = Some(vec![byte]),
            (None, CUT_ME) => self.wants_cut = true,
            (None, byte) => {
                let thread = usize::from(byte.wrapping_sub(b'a'));
                match self.acknowledged.get_mut(thread) {
                    Some(count) => *count += 1,
                    None => self.garbled.push(format!("byte {byte}")),
                }
            }
        }
    }

    /// The messages about verified stores.
    pub(crate) fn verified(&self) -> impl Iterator<Item = &Verified> {
        self.messages.iter().filter_map(|message| match message {
            Message::Verified(verified) => Some(verified),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_messages_are_told_apart() {
        let mut log = Log::new(2);
        log.take(b"aab{\"Problem\":\"b\"}\na\"Opening\"\n!");
        assert_eq!(log.acknowledged, [3, 1]);
        assert_eq!(log.messages, [Message::Problem("b".to_owned()), Message::Opening]);
        assert!(log.wants_cut && log.garbled.is_empty());
    }

    #[test]
    fn a_message_that_was_cut_off_is_none() {
        let mut log = Log::new(2);
        log.take(b"a\"Don");
        assert!(log.messages.is_empty() && log.garbled.is_empty());
        log.take(b"e\"\nc{}\n");
        assert_eq!(log.messages, [Message::Done]);
        assert_eq!(log.garbled, ["byte 99", "{}"]);
    }
}
