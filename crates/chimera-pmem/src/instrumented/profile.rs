//! [`Profile`]: which persistent memory to imitate, and [`Latencies`]: its constants.

use std::fmt;
use std::str::FromStr;

/// Shortest persist of `hikv-nvm`, in nanoseconds.
pub const HIKV_PERSIST_NS_MIN: u32 = 50;
/// Longest persist of `hikv-nvm`, in nanoseconds.
pub const HIKV_PERSIST_NS_MAX: u32 = 1400;
/// Persist of `hikv-nvm` unless told otherwise, in nanoseconds (HiKV, ATC 2017, section 5.1).
pub const HIKV_PERSIST_NS: u32 = 600;

/// Most parts that the bandwidth of `optane-100` is divided into.
pub const OPTANE_PARTS_MAX: u32 = 1000;

/// A latency profile: what is added to every miss and every persist, on top of what the machine
/// itself takes. The constants are fixed and never tuned to a result; results under any profile but
/// `dram` are to be labelled *modelled*.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(into = "String")]
pub enum Profile {
    /// Nothing is added. Text: `dram`.
    #[default]
    Dram,
    /// The emulation of HiKV (ATC 2017, section 5.1 and 5.6): a fixed time per persist, reads free or
    /// with an addition. Text: `hikv-nvm`, `hikv-nvm:<persist ns>` or
    /// `hikv-nvm:<persist ns>:<read ns>`.
    HikvNvm {
        /// Added to each persist, 50 to 1400 ns; 600 in most of the paper.
        persist_ns: u32,
        /// Added to each missing read, 0 or 60 ns (60 makes the paper's 120 ns reads).
        read_ns: u32,
    },
    /// First-generation Optane DIMMs: persistent memory minus DRAM in Table 1 of Viper (PVLDB 2021).
    /// Text: `optane-100`.
    Optane100,
    /// The same with a part of the bandwidth: that of a few threads where many share fewer DIMMs. With 16 threads on 2 of 6
    /// DIMMs two of the threads have a 24th of it. Text: `optane-100:<parts>`.
    Optane100Part {
        /// The bandwidth is one of so many equal parts, 2 to 1000.
        parts: u32,
    },
    /// Persistent memory behind CXL with 64-byte media units: 100 ns on reads and persists. Text:
    /// `cxl-nvcmm`.
    CxlNvcmm,
}

impl Profile {
    /// `hikv-nvm` as in most of the paper: 600 ns per persist, reads free.
    pub const HIKV_NVM: Self = Self::HikvNvm { persist_ns: HIKV_PERSIST_NS, read_ns: 0 };

    /// The name without parameters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dram => "dram",
            Self::HikvNvm { .. } => "hikv-nvm",
            Self::Optane100 | Self::Optane100Part { .. } => "optane-100",
            Self::CxlNvcmm => "cxl-nvcmm",
        }
    }

    /// The constants; `None` when nothing is added.
    pub fn latencies(self) -> Option<Latencies> {
        match self {
            Self::Dram => None,
            Self::HikvNvm { persist_ns, read_ns } => Some(Latencies {
                unit_bytes: 256,
                read_random_ns: read_ns,
                read_sequential_ns: read_ns,
                read_further_ns: 0,
                persist_random_ns: persist_ns,
                persist_sequential_ns: persist_ns,
                bandwidth: None,
            }),
            Self::Optane100 => Some(Latencies::optane(1)),
            Self::Optane100Part { parts } => Some(Latencies::optane(parts)),
            Self::CxlNvcmm => Some(Latencies {
                unit_bytes: 64,
                read_random_ns: 100,
                read_sequential_ns: 100,
                read_further_ns: 0,
                persist_random_ns: 100,
                persist_sequential_ns: 100,
                bandwidth: None,
            }),
        }
    }
}

/// The constants of a profile, in nanoseconds added.
///
/// # Rules
/// - A call that loads misses for each line the cache model does not have. The first unit missed in a
///   call is *sequential* when it is the same as or next to the last unit this thread missed, else
///   *random*; further units of the same call overlap with it and add `read_further_ns` each.
/// - Misses of prefetches, and of stores that must fetch their line, delay nobody by themselves. They
///   form a group with those before them; the dearest call of the group is charged once, when a load
///   touches a line of it, together with the next missing load, or at the next fence, whichever comes
///   first, and overlapping with what that call costs by itself.
/// - A persist is a fence with flushes or copies past the cache before it. It is charged once:
///   *sequential* when each line flushed lies in the same unit as, or in one next to, the line that
///   this thread flushed before it, else *random*.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Latencies {
    /// Bytes per unit of the above.
    pub unit_bytes: u64,
    /// First unit missed by a call, anywhere.
    pub read_random_ns: u32,
    /// First unit missed by a call, same as or next to the last one.
    pub read_sequential_ns: u32,
    /// Each further unit missed by the same call.
    pub read_further_ns: u32,
    /// A persist with a line away from the one before it.
    pub persist_random_ns: u32,
    /// A persist without such a line.
    pub persist_sequential_ns: u32,
    /// Limits over all threads together.
    pub bandwidth: Option<Bandwidth>,
}

impl Latencies {
    /// Those of Optane DIMMs, with one of so many equal parts of their bandwidth.
    fn optane(parts: u32) -> Self {
        let part = |mb_per_s: u64| (mb_per_s / u64::from(parts.max(1))).max(1);
        Self {
            unit_bytes: 256,
            read_random_ns: 450 - 190,
            read_sequential_ns: 50 - 40,
            read_further_ns: 50 - 40,
            persist_random_ns: 900 - 170,
            persist_sequential_ns: 230 - 110,
            bandwidth: Some(Bandwidth {
                read_mb_per_s: part(40_000),
                write_mb_per_s: part(13_000),
            }),
        }
    }

    /// Whether a missing read ever costs anything.
    pub(super) fn charges_reads(self) -> bool {
        let dearest = self.read_random_ns.max(self.read_sequential_ns).max(self.read_further_ns);
        dearest > 0 || self.bandwidth.is_some()
    }
}

/// Bandwidth limits over all threads together, in 10^6 bytes per second. Reads count as whole units,
/// writes as lines of 64 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Bandwidth {
    /// Limit of fetching.
    pub read_mb_per_s: u64,
    /// Limit of flushing and copying past the cache.
    pub write_mb_per_s: u64,
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match *self {
            Self::HikvNvm { persist_ns: HIKV_PERSIST_NS, read_ns: 0 } => Ok(()),
            Self::HikvNvm { persist_ns, read_ns: 0 } => write!(f, ":{persist_ns}"),
            Self::HikvNvm { persist_ns, read_ns } => write!(f, ":{persist_ns}:{read_ns}"),
            Self::Optane100Part { parts } => write!(f, ":{parts}"),
            _ => Ok(()),
        }
    }
}

impl From<Profile> for String {
    fn from(profile: Profile) -> Self {
        profile.to_string()
    }
}

/// A text that names no profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileError {
    text: String,
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no latency profile is called {:?}; there are dram, optane-100[:<parts of the \
             bandwidth, 2 to {OPTANE_PARTS_MAX}>], cxl-nvcmm and hikv-nvm[:<persist ns, {HIKV_PERSIST_NS_MIN} to {HIKV_PERSIST_NS_MAX}>\
             [:<read ns, 0 or 60>]]",
            self.text
        )
    }
}

impl std::error::Error for ProfileError {}

impl FromStr for Profile {
    type Err = ProfileError;

    fn from_str(text: &str) -> Result<Self, ProfileError> {
        let error = || ProfileError { text: text.to_owned() };
        match text {
            "dram" => return Ok(Self::Dram),
            "optane-100" => return Ok(Self::Optane100),
            "cxl-nvcmm" => return Ok(Self::CxlNvcmm),
            "hikv-nvm" => return Ok(Self::HIKV_NVM),
            _ => {}
        }
        if let Some(parts) = text.strip_prefix("optane-100:") {
            let parts = parts.parse().map_err(|_| error())?;
            let is_valid = (2..=OPTANE_PARTS_MAX).contains(&parts);
            return is_valid.then_some(Self::Optane100Part { parts }).ok_or_else(error);
        }
        let numbers = text.strip_prefix("hikv-nvm:").ok_or_else(error)?;
        let (persist, read) = numbers.split_once(':').unwrap_or((numbers, "0"));
        let persist_ns = persist.parse().map_err(|_| error())?;
        let read_ns = read.parse().map_err(|_| error())?;
        let valid = (HIKV_PERSIST_NS_MIN..=HIKV_PERSIST_NS_MAX).contains(&persist_ns)
            && matches!(read_ns, 0 | 60);
        valid.then_some(Self::HikvNvm { persist_ns, read_ns }).ok_or_else(error)
    }
}
