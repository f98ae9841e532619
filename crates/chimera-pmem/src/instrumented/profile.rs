//! [`Profile`]: which persistent memory to imitate. Each is an instance of the device model with constants of its own.

use std::fmt;
use std::str::FromStr;

use super::device::{DeviceParameters, Timing};

/// Shortest persist of `hikv-nvm`, in nanoseconds.
pub const HIKV_PERSIST_NS_MIN: u32 = 50;
/// Longest persist of `hikv-nvm`, in nanoseconds.
pub const HIKV_PERSIST_NS_MAX: u32 = 1400;
/// Persist of `hikv-nvm` unless told otherwise, in nanoseconds (HiKV, ATC 2017, section 4.1).
pub const HIKV_PERSIST_NS: u32 = 600;

/// DIMMs of `optane-100` unless told otherwise (Viper, PVLDB 2021, section 5.1).
pub const OPTANE_DIMMS: u32 = 6;
/// Most DIMMs of `optane-100`.
pub const OPTANE_DIMMS_MAX: u32 = 64;

/// Reads of persistent memory less those of DRAM (Viper, PVLDB 2021, Table 1).
const OPTANE_READ_RANDOM_NS: u32 = 450 - 190;
const OPTANE_READ_SEQUENTIAL_NS: u32 = 50 - 40;
/// A store, a write-back and a fence without load, less the same on DRAM (Yang et al., FAST 2020, section 3.1).
const OPTANE_PERSIST_NS: u32 = 62 - 57;
/// Greatest bandwidth of six DIMMs, in 10^6 bytes per second (Viper, PVLDB 2021, Table 1).
const OPTANE_READ_MB_PER_S: u32 = 40_000;
const OPTANE_WRITE_MB_PER_S: u32 = 13_000;
/// Nobody has published it. Far more than the time in which a thread that writes on fills a unit, and short enough that a
/// device at rest empties its buffers. From 20 us up it makes no difference to any figure of docs/DEVICE-MODEL.md.
const OPTANE_AGE_NS: u64 = 50_000;

/// A latency profile: what is added to every miss and every persist, on top of what the machine
/// itself takes. The constants are fixed and never tuned to a result; results under any profile but
/// `dram` are to be labelled *modelled*.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(into = "String"))]
pub enum Profile {
    /// Nothing is added. Text: `dram`.
    #[default]
    Dram,
    /// The emulation of HiKV (ATC 2017, sections 4.1 and 4.6): a fixed time per persist, reads free or
    /// with an addition. Text: `hikv-nvm`, `hikv-nvm:<persist ns>` or
    /// `hikv-nvm:<persist ns>:<read ns>`.
    HikvNvm {
        /// Added to each persist, 50 to 1400 ns; 600 in most of the paper.
        persist_ns: u32,
        /// Added to each missing read, 0 or 60 ns (60 makes the paper's 120 ns reads).
        read_ns: u32,
    },
    /// First-generation Optane DIMMs. Text: `optane-100` for six of them, `optane-100:<DIMMs>`.
    Optane100 {
        /// Interleaved DIMMs, 1 to 64.
        dimms: u32,
    },
    /// Persistent memory behind CXL with 64-byte media units: 100 ns on reads and persists. Text:
    /// `cxl-nvcmm`.
    CxlNvcmm,
}

impl Profile {
    /// `hikv-nvm` as in most of the paper: 600 ns per persist, reads free.
    pub const HIKV_NVM: Self = Self::HikvNvm { persist_ns: HIKV_PERSIST_NS, read_ns: 0 };
    /// `optane-100` with six DIMMs.
    pub const OPTANE_100: Self = Self::Optane100 { dimms: OPTANE_DIMMS };

    /// The name without parameters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dram => "dram",
            Self::HikvNvm { .. } => "hikv-nvm",
            Self::Optane100 { .. } => "optane-100",
            Self::CxlNvcmm => "cxl-nvcmm",
        }
    }

    /// The device. That of `dram` takes no time: it is six Optane DIMMs, for their counts.
    pub fn device(self) -> DeviceParameters {
        let optane = DeviceParameters::default();
        match self {
            Self::Dram => optane,
            Self::HikvNvm { persist_ns, read_ns } => {
                let timing = unlimited(read_ns, persist_ns);
                DeviceParameters { timing: Some(timing), ..optane }
            }
            Self::Optane100 { dimms } => DeviceParameters { dimms, timing: Some(OPTANE), ..optane },
            Self::CxlNvcmm => {
                let timing = unlimited(100, 100);
                DeviceParameters { dimms: 1, xpline_bytes: 64, timing: Some(timing), ..optane }
            }
        }
    }
}

const OPTANE: Timing = Timing {
    read_random_ns: OPTANE_READ_RANDOM_NS,
    read_sequential_ns: OPTANE_READ_SEQUENTIAL_NS,
    persist_ns: OPTANE_PERSIST_NS,
    media_read_mb_per_s: OPTANE_READ_MB_PER_S / OPTANE_DIMMS,
    media_write_mb_per_s: OPTANE_WRITE_MB_PER_S / OPTANE_DIMMS,
    age_ns: OPTANE_AGE_NS,
};

/// Fixed latencies, and media that keeps nobody waiting.
fn unlimited(read_ns: u32, persist_ns: u32) -> Timing {
    Timing {
        read_random_ns: read_ns,
        read_sequential_ns: read_ns,
        persist_ns,
        media_read_mb_per_s: 0,
        media_write_mb_per_s: 0,
        age_ns: OPTANE_AGE_NS,
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match *self {
            Self::HikvNvm { persist_ns: HIKV_PERSIST_NS, read_ns: 0 } => Ok(()),
            Self::HikvNvm { persist_ns, read_ns: 0 } => write!(f, ":{persist_ns}"),
            Self::HikvNvm { persist_ns, read_ns } => write!(f, ":{persist_ns}:{read_ns}"),
            Self::Optane100 { dimms } if dimms != OPTANE_DIMMS => write!(f, ":{dimms}"),
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
            "no latency profile is called {:?}; there are dram, optane-100[:<DIMMs, 1 to \
             {OPTANE_DIMMS_MAX}>], cxl-nvcmm and hikv-nvm[:<persist ns, {HIKV_PERSIST_NS_MIN} to {HIKV_PERSIST_NS_MAX}>\
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
            "optane-100" => return Ok(Self::OPTANE_100),
            "cxl-nvcmm" => return Ok(Self::CxlNvcmm),
            "hikv-nvm" => return Ok(Self::HIKV_NVM),
            _ => {}
        }
        if let Some(dimms) = text.strip_prefix("optane-100:") {
            let dimms = dimms.parse().map_err(|_| error())?;
            let is_valid = (1..=OPTANE_DIMMS_MAX).contains(&dimms);
            return is_valid.then_some(Self::Optane100 { dimms }).ok_or_else(error);
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
