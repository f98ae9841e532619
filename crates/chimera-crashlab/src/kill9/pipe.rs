//! Acknowledgements as bytes: what the writer tells through a pipe, and what has come through.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a message: few enough for a pipe to take them as one.
const BYTES: usize = 16;
/// Most sessions of a writer.
pub(super) const SESSIONS_MAX: usize = 8;

/// What a writer tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// The store is open.
    Opened,
    /// A session begins its operation number `step`.
    Begin { session: u8, step: u64 },
    /// It is acknowledged.
    End { session: u8, step: u64 },
    /// All sessions are done; the store is being closed.
    Closing,
}

impl Message {
    /// Sends it, whole, also beside other threads.
    pub(super) fn send(self, mut to: impl Write) -> io::Result<()> {
        let (kind, session, step) = match self {
            Self::Opened => (1, 0, 0),
            Self::Begin { session, step } => (2, session, step),
            Self::End { session, step } => (3, session, step),
            Self::Closing => (4, 0, 0),
        };
        let mut bytes = [0; BYTES];
        bytes[0] = kind;
        bytes[1] = session;
        bytes[8..].copy_from_slice(&u64::to_le_bytes(step));
        to.write_all(&bytes)
    }

    fn from_bytes(bytes: [u8; BYTES]) -> Option<Self> {
        let session = bytes[1];
        let step = u64::from_le_bytes(*bytes.last_chunk().expect("longer"));
        match bytes[0] {
            1 => Some(Self::Opened),
            2 => Some(Self::Begin { session, step }),
            3 => Some(Self::End { session, step }),
            4 => Some(Self::Closing),
            _ => None,
        }
    }
}

/// What has come through the pipe; read while it grows.
#[derive(Debug, Default)]
pub(super) struct Received {
    opened: AtomicU64,
    closing: AtomicU64,
    /// The last operation of each session that has begun, and that has ended.
    begun: [AtomicU64; SESSIONS_MAX],
    ended: [AtomicU64; SESSIONS_MAX],
}

impl Received {
    /// Takes everything that comes until the writer is gone.
    ///
    /// # Errors
    /// When the pipe fails, or brings what no writer sends.
    pub(super) fn take_all(&self, mut from: impl Read) -> io::Result<()> {
        let mut bytes = [0; BYTES];
        loop {
            match from.read_exact(&mut bytes) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                done => done?,
            }
            let message = Message::from_bytes(bytes).filter(|message| self.take(*message));
            message
                .ok_or_else(|| io::Error::other(format!("not an acknowledgement: {bytes:?}")))?;
        }
    }

    /// Whether the message comes after those before it.
    fn take(&self, message: Message) -> bool {
        let next = |numbers: &[AtomicU64], session: u8, step| {
            let last =
                numbers.get(usize::from(session)).map(|number| number.swap(step, Ordering::AcqRel));
            last.is_some_and(|last| last + 1 == step)
        };
        match message {
            Message::Opened => self.opened.fetch_add(1, Ordering::AcqRel) == 0,
            Message::Closing => self.closing.fetch_add(1, Ordering::AcqRel) == 0,
            Message::Begin { session, step } => next(&self.begun, session, step),
            Message::End { session, step } => {
                next(&self.ended, session, step) && self.begun(session.into()) == step
            }
        }
    }

    pub(super) fn is_opened(&self) -> bool {
        self.opened.load(Ordering::Acquire) > 0
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire) > 0
    }

    /// Operations of a session that have begun.
    pub(super) fn begun(&self, session: usize) -> u64 {
        self.begun[session].load(Ordering::Acquire)
    }

    /// Operations of a session that are acknowledged.
    pub(super) fn ended(&self, session: usize) -> u64 {
        self.ended[session].load(Ordering::Acquire)
    }

    /// Operations of all sessions that are acknowledged.
    pub(super) fn acknowledged(&self) -> u64 {
        (0..SESSIONS_MAX).map(|session| self.ended(session)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receive(messages: &[Message]) -> (io::Result<()>, Received) {
        let mut bytes = Vec::new();
        for message in messages {
            message.send(&mut bytes).unwrap();
        }
        let received = Received::default();
        (received.take_all(&*bytes), received)
    }

    #[test]
    fn acknowledgements_are_counted() {
        let begin = |step| Message::Begin { session: 2, step };
        let end = |step| Message::End { session: 2, step };
        let (outcome, received) = receive(&[Message::Opened, begin(1), end(1), begin(2)]);
        outcome.unwrap();
        assert!(received.is_opened() && !received.is_closing());
        assert_eq!((received.begun(2), received.ended(2), received.acknowledged()), (2, 1, 1));
    }

    #[test]
    fn what_no_writer_sends_is_refused() {
        let begin = |step| Message::Begin { session: 0, step };
        let end = |step| Message::End { session: 0, step };
        for wrong in
            [&[begin(2)][..], &[end(1)], &[begin(1), end(1), end(2)], &[begin(1), begin(1)]]
        {
            assert!(receive(wrong).0.is_err(), "{wrong:?}");
        }
        assert!(Received::default().take_all(&[9; BYTES][..]).is_err());
        // Cut in the middle by the kill.
        assert!(Received::default().take_all(&[9; 5][..]).is_ok());
    }
}
