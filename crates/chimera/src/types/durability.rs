//! [`Durability`]: what an acknowledged write survives.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use chimera_pmem::Medium;

use super::error::Error;

/// What an acknowledged write survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Durability {
    /// The strongest that the medium gives at full speed: `Immediate` on fsdax and devdax,
    /// `Group { 50 ms }` on other files, `Process` in memory.
    #[default]
    Auto,
    /// Power loss, as soon as the call returns. Refused in memory. On plain files every write waits for
    /// a sync of the device, which writes at the same time share, and a read waits for the writes
    /// that are under way. Memory as with `Group`.
    Immediate,
    /// Power loss, once a sync that starts within `max_delay` has ended. A power loss drops only a suffix of
    /// the acknowledged writes. The end of the process drops nothing. The sync takes as long as the device
    /// needs; when a whole window is behind, writers wait. After a kill, open the store before the machine
    /// starts anew and before its files are copied to another one: else that is as a power loss. Refused in
    /// memory; on fsdax and devdax it is `Immediate`.
    Group {
        /// Longest time between an acknowledged write and the start of the sync that covers it.
        max_delay: Duration,
    },
    /// The end of the process (kill -9), not of the machine: a store on plain files that was open when
    /// the machine went down is refused. In anonymous memory nothing survives. No journal, and no memory beside the page cache.
    Process,
    /// What an engine with a log in batches reports where it was asked for them: any end of the process, a kill or a power
    /// loss, may take the last batch of each session, beside what the durability that was asked for may lose (on plain files
    /// with `Group` a power loss takes the writes that are not synced). `sync`, the end of a session and closing make all of
    /// it as durable as the medium can. Nothing that options can ask for.
    Batched,
}

impl Durability {
    /// The window of [`Auto`](Self::Auto) on plain files.
    const MAX_DELAY_DEFAULT: Duration = Duration::from_millis(50);

    /// The durability of a store on `medium` that is opened with this one.
    ///
    /// # Errors
    /// [`InvalidOptions`](crate::Error::InvalidOptions) when it cannot be had there.
    pub fn effective_on(self, medium: Medium) -> Result<Self, Error> {
        match (self, medium) {
            (Self::Batched, _) => Err(Error::InvalidOptions(
                "batches are an engine's own: they are not asked for as a durability".to_owned(),
            )),
            (Self::Process, _) => Ok(Self::Process),
            (_, medium) if medium.is_persistent_memory() => Ok(Self::Immediate),
            (Self::Auto, Medium::File) => Ok(Self::Group { max_delay: Self::MAX_DELAY_DEFAULT }),
            (asked, Medium::File) => Ok(asked),
            (Self::Auto, _) => Ok(Self::Process),
            (asked, _) => Err(Error::InvalidOptions(format!(
                "durability `{asked}` cannot be had on medium `{medium}`, which is gone when the \
                 machine stops: use a file system on a device, or ask for `process` durability"
            ))),
        }
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Immediate => f.write_str("immediate"),
            Self::Group { max_delay } => write!(f, "group ({} ms)", max_delay.as_millis()),
            Self::Process => f.write_str("process"),
            Self::Batched => f.write_str("batched"),
        }
    }
}

impl FromStr for Durability {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let milliseconds = |text: &str| text.parse().ok().map(Duration::from_millis);
        match text.split_once(':') {
            None if text == "auto" => Some(Self::Auto),
            None if text == "immediate" => Some(Self::Immediate),
            None if text == "process" => Some(Self::Process),
            Some(("group", delay)) => milliseconds(delay).map(|max_delay| Self::Group { max_delay }),
            _ => None,
        }
        .ok_or_else(|| format!("unknown durability `{text}`: there are auto, immediate, group:MILLISECONDS, process"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durability_is_read_from_text() {
        assert_eq!("auto".parse(), Ok(Durability::Auto));
        assert_eq!("immediate".parse(), Ok(Durability::Immediate));
        assert_eq!("process".parse(), Ok(Durability::Process));
        let max_delay = Duration::from_millis(50);
        assert_eq!("group:50".parse(), Ok(Durability::Group { max_delay }));
        for wrong in ["", "group", "group:", "group:x", "immediate:1", "best", "batched"] {
            assert!(wrong.parse::<Durability>().is_err(), "{wrong}");
        }
    }
}
