//! [`Failure`]: why a command did not succeed, and the exit code that says so.

use std::io::{self, Write};

use std::path::{Path, PathBuf};

use chimera::metrics::NotMetrics;
use chimera::{Error, Losses};

/// Why a command did not succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Exit code 1.
    #[error("there is no key `{0}`")]
    KeyNotFound(String),
    /// Exit code 1. What is damaged has been printed.
    #[error("the store is damaged")]
    Damaged,
    /// Exit code 4. Everything else was done, and has been printed.
    #[error("done, but {0}")]
    Losses(Losses),
    /// Exit code 4. The key may be one that is left out.
    #[error("there is no key `{key}` in what damage has left: {losses}")]
    NotInWhatIsLeft { key: String, losses: Losses },
    /// Exit code 130, as a shell has it of a command that the signal ends.
    #[error("interrupted: {0}")]
    Interrupted(String),
    /// Exit code 2.
    #[error("{0}")]
    Usage(String),
    #[error(
        "`{}` is a symbolic link to `{}`, where there is nothing: make what it points to, or name another path",
        link.display(), target.display()
    )]
    DanglingLink { link: PathBuf, target: PathBuf },
    #[error("the value of `{key}` has {bytes} bytes and is no counter, which has exactly 8")]
    NotACounter { key: String, bytes: usize },
    #[error("line {number}: {failure}; {done}")]
    Line { number: u64, failure: Box<Self>, done: &'static str },
    #[error("the {what} has {found} bytes, but {what}s of this store have at most {size}")]
    TooLong { what: &'static str, found: usize, size: u32 },
    #[error(transparent)]
    Store(#[from] Error),
    #[error("{}", unpublished(path, holder.as_deref()))]
    Unpublished { path: PathBuf, holder: Option<String> },
    #[error("the file that metrics are published in holds something else: {0}")]
    NotMetrics(NotMetrics),
    #[error(
        "there is no command `chimera-bench`, neither beside this one nor where programs are looked for"
    )]
    NoBench,
    #[error("there is no device `{}`", .0.display())]
    NoDevice(PathBuf),
    #[error("no store can be made here: {0}")]
    NoStoreHere(String),
    #[error("cannot {action}: {source}")]
    Io { action: &'static str, source: io::Error },
    /// Nobody reads the output any more: a quiet end, exit code 0.
    #[error("the output was closed")]
    OutputClosed,
}

impl Failure {
    /// The exit code of a command that was interrupted.
    pub(crate) const INTERRUPTED: u8 = 130;

    /// The exit code of the command.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::OutputClosed => 0,
            Self::KeyNotFound(_) | Self::Damaged => 1,
            Self::Usage(_) => 2,
            Self::Interrupted(_) => Self::INTERRUPTED,
            Self::Losses(_) | Self::NotInWhatIsLeft { .. } => 4,
            _ => 3,
        }
    }

    /// Says on standard error what went wrong.
    pub(crate) fn report(&self, json: bool) {
        if matches!(self, Self::OutputClosed) {
            return;
        }
        let message = self.to_string();
        let mut text = if json {
            let mut error = serde_json::json!({ "kind": self.kind(), "message": message });
            if let Self::Losses(losses) | Self::NotInWhatIsLeft { losses, .. } = self {
                error["losses"] = serde_json::json!(losses);
            }
            serde_json::json!({ "error": error }).to_string()
        } else {
            format!("chimera: {message}")
        };
        if let (false, Some(hint)) = (json, self.hint()) {
            text = format!("{text}\nhint: {hint}");
        }
        // There is nowhere left to complain to.
        let _ = writeln!(io::stderr(), "{text}");
    }

    /// What kind of failure it is, for programs.
    fn kind(&self) -> &'static str {
        match self {
            Self::KeyNotFound(_) => "key_not_found",
            Self::Damaged => "damaged",
            Self::Losses(_) | Self::NotInWhatIsLeft { .. } => "losses",
            Self::Usage(_) => "usage",
            Self::Interrupted(_) => "interrupted",
            Self::TooLong { what: "key", .. } => "key_size",
            Self::TooLong { .. } => "value_size",
            Self::Store(error) => kind_of(error),
            // As of every other command: what matters is that the store is in use.
            Self::Unpublished { holder: Some(_), .. } => "locked",
            Self::Unpublished { .. } => "unpublished",
            Self::DanglingLink { .. } => "dangling_link",
            Self::Line { .. } => "line",
            Self::NotACounter { .. } => "not_a_counter",
            Self::NotMetrics(_) => "not_metrics",
            Self::NoBench => "no_bench",
            Self::NoDevice(_) => "no_device",
            Self::NoStoreHere(_) => "no_store_here",
            Self::Io { .. } => "io",
            Self::OutputClosed => "output_closed",
        }
    }

    /// What the user of this command can do, where the library's message speaks to programs.
    fn hint(&self) -> Option<&'static str> {
        if matches!(self, Self::Unpublished { .. }) {
            return Some(
                "the process that opens the store publishes with Options::publish_metrics, a benchmark \
                 with --publish-metrics",
            );
        }
        if matches!(self, Self::Losses(_) | Self::NotInWhatIsLeft { .. }) {
            return Some(
                "`chimera check` says more of the damage; a copy of the store may have what is left out",
            );
        }
        if matches!(self, Self::NotACounter { .. }) {
            return Some(
                "nothing was changed; --at OFFSET says where in it a number is, --force takes its first \
                 8 bytes for one, and `chimera delete` makes room for a counter",
            );
        }
        if matches!(self, Self::NoDevice(_)) {
            return Some(
                "`ls /dev/dax*` shows the DAX devices; `ndctl create-namespace --mode=devdax` makes one",
            );
        }
        if matches!(self, Self::NoBench) {
            return Some("in Chimera's sources: cargo install --path crates/chimera-bench");
        }
        let Self::Store(error) = self else { return None };
        match error {
            Error::NotFound { .. } => {
                Some("another directory is named by --path DIR or by the variable CHIMERA_PATH")
            }
            Error::AlreadyExists { .. } => {
                Some("an export that was interrupted goes on with --resume; a backup is made anew")
            }
            Error::Corrupted { .. } | Error::PowerLost { .. } => {
                Some("`chimera check` says what is left; --salvage opens the store all the same")
            }
            _ => None,
        }
    }
}

impl From<chimera::CloseError> for Failure {
    fn from(failed: chimera::CloseError) -> Self {
        Error::from(failed).into()
    }
}

/// Why there are no figures of a store that is not to be opened.
fn unpublished(path: &Path, holder: Option<&str>) -> String {
    match holder {
        Some(holder) => {
            format!("the store is in use by {holder}, which does not publish its metrics")
        }
        None => format!(
            "no metrics are published in `{}`: no process has the store open, or it does not publish them",
            path.display()
        ),
    }
}

fn kind_of(error: &Error) -> &'static str {
    match error {
        Error::Io { .. } => "io",
        Error::NotFound { .. } => "store_not_found",
        Error::NotAStore { .. } => "not_a_store",
        Error::NewerFormat { .. } => "newer_format",
        Error::OlderFormat { .. } => "older_format",
        Error::NeedsFeature { .. } => "needs_feature",
        Error::Locked { .. } => "locked",
        Error::Forked { .. } => "forked",
        Error::Mismatch { .. } => "mismatch",
        Error::InvalidOptions(_) => "invalid_options",
        Error::KeySize { .. } => "key_size",
        Error::ValueSize { .. } => "value_size",
        Error::KeyLength { .. } => "key_length",
        Error::ValueLength { .. } => "value_length",
        Error::KeyCollisions => "key_collisions",
        Error::FieldOutOfRange { .. } => "field_out_of_range",
        Error::PoolFull { .. } => "pool_full",
        Error::Removed { .. } => "removed",
        Error::AfterClosing { .. } => "after_closing",
        Error::InTheWay { .. } => "in_the_way",
        Error::Corrupted { .. } => "corrupted",
        Error::PowerLost { .. } => "power_lost",
        Error::ReadOnly => "read_only",
        Error::Poisoned { .. } => "poisoned",
        Error::StillInUse { .. } => "still_in_use",
        Error::AlreadyExists { .. } => "already_exists",
        Error::Incomplete { .. } => "incomplete",
        Error::StreamIo { .. } => "stream_io",
        Error::NewerStream { .. } => "newer_stream",
        Error::StreamTruncated { .. } => "stream_truncated",
        Error::StreamDamaged { .. } => "stream_damaged",
        Error::StreamMismatch(_) => "stream_mismatch",
        Error::ImportStopped { .. } => "import_stopped",
        _ => "other",
    }
}
