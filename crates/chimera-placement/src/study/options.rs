//! [`StudyOptions`]: what is run, how large it is, and on what.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chimera_pmem::instrumented::{CacheParameters, Profile, ReadModel};

use super::plan::plan;
use super::result::{Part, Settings};
use crate::arena::Arena;
use crate::database::CacheKind;
use crate::error::{Error, Result};
use crate::placement::{Placement, Sizes};
use crate::region::RegionOptions;

/// Records of the paper: db_bench's.
const RECORDS: u64 = 1_000_000;
/// Bytes of the block cache of the paper: db_bench's.
const CACHE_BYTES: u64 = 8 << 20;
/// Bytes of a memtable of the paper: RocksDB's.
const WRITE_BUFFER_BYTES: u64 = 64 << 20;
/// Bytes of the block cache where 50 to 90 % of lookups hit: about a quarter of the blocks of all records.
const HITS_CACHE_BYTES: u64 = 288 << 20;
/// Fewer records would fit into one memtable and one block cache of the least size.
const RECORDS_MIN: u64 = 10_000;
/// The least bytes of a block cache and of a memtable.
const COMPONENT_BYTES_MIN: u64 = 128 << 10;
/// The most repetitions: results of all of them are kept.
const REPETITIONS_MAX: usize = 100_000;

/// What the caller may say.
#[derive(Clone, Debug)]
pub struct StudyOptions {
    /// Directory for the databases.
    pub path: PathBuf,
    /// Directory for persistent memory.
    pub pmem: PathBuf,
    /// Whether that has to be on a DAX file system.
    pub require_dax: bool,
    /// Parts to run.
    pub parts: Vec<Part>,
    /// Placements to run, of those that a part has; all of them where none is given. DRAM is always run.
    pub placements: Vec<Placement>,
    /// The profile of persistent memory that is charged. Nothing is charged on DAX.
    pub profile: Profile,
    /// Bytes of a modelled processor cache in front of persistent memory; 0 for none, so that each read goes to the media.
    pub processor_cache_bytes: u64,
    /// Whether databases are read and written past the system's page cache, so that a miss costs a read of the disk.
    pub is_direct: bool,
    /// Divides all published sizes.
    pub scale_down: u64,
    /// Operations of each thread; 0 for as many as there are records, as db_bench does.
    pub operations: u64,
    /// Repetitions of each workload.
    pub repetitions: usize,
    /// Which block cache.
    pub cache_kind: CacheKind,
    /// Seed.
    pub seed: u64,
    /// The command line, for the report.
    pub command: String,
}

impl StudyOptions {
    /// Checks what makes no sense together.
    ///
    /// # Errors
    /// Says which option is wrong.
    pub fn check(&self) -> Result<()> {
        let wrong = |text: String| Err(Error::Option(text));
        if self.scale_down == 0 || self.records() < RECORDS_MIN {
            let most = RECORDS / RECORDS_MIN;
            return wrong(format!("--scale-down is 1 to {most}, not {}", self.scale_down));
        }
        let is_run = |placement: &Placement| {
            *placement == Placement::DRAM
                || self.parts.iter().any(|part| has_placement(*part, *placement))
        };
        if let Some(placement) = self.placements.iter().find(|placement| !is_run(placement)) {
            return wrong(format!("no part that is run has the placement {placement}"));
        }
        if self.is_direct && is_in_memory(&self.path) {
            let text = "--direct has no effect where the database lies in memory (tmpfs); choose --path DIR on a disk";
            return wrong(text.to_owned());
        }
        if !(1..=REPETITIONS_MAX).contains(&self.repetitions) {
            return wrong(format!(
                "--repetitions is 1 to {REPETITIONS_MAX}, not {}",
                self.repetitions
            ));
        }
        if self.cache_kind == CacheKind::HyperClock
            && self.parts.iter().any(|part| matches!(part, Part::Hits | Part::Ycsb))
        {
            let text = "HyperClockCache has no tier behind it, and the parts ycsb and hits have tiers; choose --part published,shares";
            return wrong(text.to_owned());
        }
        if self.cache_kind == CacheKind::HyperClock
            && !self.parts.is_empty()
            && self.scale_down > 10
        {
            return wrong(
                "HyperClockCache needs a cache of some size; --scale-down is 1 to 10 with it"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// Whether a placement is to be run.
    pub(super) fn wants(&self, placement: Placement) -> bool {
        let is_all = self.placements.is_empty() || placement == Placement::DRAM;
        is_all || self.placements.contains(&placement)
    }

    /// Where the databases of this process are made.
    pub(super) fn database_path(&self) -> PathBuf {
        self.path.join(format!("chimera-placement-{}", std::process::id()))
    }

    /// Records.
    pub fn records(&self) -> u64 {
        RECORDS / self.scale_down.max(1)
    }

    /// Operations of each thread.
    pub fn operations(&self) -> u64 {
        if self.operations == 0 { self.records() } else { self.operations }
    }

    /// Sizes of the components in a part.
    pub fn sizes(&self, part: Part) -> Sizes {
        let scaled = |bytes: u64| (bytes / self.scale_down.max(1)).max(COMPONENT_BYTES_MIN);
        let cache_bytes = if part == Part::Hits { HITS_CACHE_BYTES } else { CACHE_BYTES };
        Sizes {
            cache_bytes: scaled(cache_bytes),
            write_buffer_bytes: scaled(WRITE_BUFFER_BYTES),
            cache_kind: self.cache_kind,
        }
    }

    /// Maps persistent memory that is enough for each of `parts`.
    ///
    /// # Errors
    /// As [`Arena::open`].
    pub fn open_arena(&self, parts: &[Part]) -> Result<Arc<Arena>> {
        let mut bytes = crate::region::REGION_BYTES_MIN;
        for part in parts {
            bytes = bytes.max(self.sizes(*part).pmem_bytes()?);
        }
        let (directory, require_dax) = (self.pmem.clone(), self.require_dax);
        let options = RegionOptions { directory, bytes, require_dax };
        Ok(Arc::new(Arena::open(&options)?))
    }

    /// What charges reads: nothing on DAX, and nothing under a profile that takes no time.
    pub fn model(&self, is_dax: bool) -> Option<Arc<ReadModel>> {
        let device = self.profile.device();
        let cache =
            CacheParameters { bytes: self.processor_cache_bytes, ..CacheParameters::default() };
        let cache = (self.processor_cache_bytes > 0).then_some(cache);
        let is_charged = !is_dax && device.timing.is_some();
        is_charged.then(|| Arc::new(ReadModel::new(device, cache)))
    }

    /// Where and how the study runs.
    pub fn settings(&self, is_dax: bool) -> Settings {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let cpu = read("/proc/cpuinfo");
        let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        let is_modelled = self.model(is_dax).is_some();
        let published = self.sizes(Part::Published);
        Settings {
            command: self.command.clone(),
            cpu: model.map_or(std::env::consts::ARCH, |(_, name)| name.trim()).to_owned(),
            cores: cores(),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            profile: if is_modelled { self.profile.to_string() } else { "none".to_owned() },
            is_modelled,
            is_dax,
            processor_cache_bytes: if is_modelled { self.processor_cache_bytes } else { 0 },
            is_direct: self.is_direct,
            scale_down: self.scale_down,
            records: self.records(),
            operations: self.operations(),
            cache_bytes: published.cache_bytes,
            cache_kind: self.cache_kind,
            hits_cache_bytes: self.sizes(Part::Hits).cache_bytes,
            write_buffer_bytes: published.write_buffer_bytes,
            repetitions: self.repetitions,
            seed: self.seed,
        }
    }
}

/// Whether a directory is one of a file system in memory. Not where there is none.
fn is_in_memory(path: &Path) -> bool {
    const TMPFS_MAGIC: i64 = 0x0102_1994;
    rustix::fs::statfs(path).is_ok_and(|status| status.f_type == TMPFS_MAGIC)
}

/// Whether a part has a placement.
fn has_placement(part: Part, placement: Placement) -> bool {
    plan(part).is_ok_and(|groups| groups.iter().any(|group| group.placements.contains(&placement)))
}

/// Cores that the process may use.
pub(super) fn cores() -> usize {
    // Not what a control group leaves of them: threads that share a core are what matters.
    rustix::thread::sched_getaffinity(None).map_or(1, |cores| cores.count() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(profile: Profile) -> StudyOptions {
        StudyOptions {
            path: "/nowhere".into(),
            pmem: "/nowhere".into(),
            require_dax: false,
            parts: vec![Part::Published],
            placements: Vec::new(),
            profile,
            processor_cache_bytes: 0,
            is_direct: false,
            scale_down: 1,
            operations: 0,
            repetitions: 1,
            cache_kind: CacheKind::Lru,
            seed: 1,
            command: String::new(),
        }
    }

    #[test]
    fn nothing_is_injected_on_dax_and_the_settings_say_so() {
        for (profile, is_dax, is_modelled) in [
            (Profile::OPTANE_100, false, true),
            (Profile::OPTANE_100, true, false),
            (Profile::Dram, false, false),
        ] {
            let options = options(profile);
            assert_eq!(options.model(is_dax).is_some(), is_modelled);
            let settings = options.settings(is_dax);
            assert_eq!((settings.is_modelled, settings.is_dax), (is_modelled, is_dax));
            assert_eq!(settings.profile == "none", !is_modelled);
        }
    }

    #[test]
    fn sizes_are_those_of_db_bench() {
        let options = options(Profile::Dram);
        let sizes = options.sizes(Part::Published);
        assert_eq!((options.records(), options.operations()), (1_000_000, 1_000_000));
        assert_eq!((sizes.cache_bytes, sizes.write_buffer_bytes), (8 << 20, 64 << 20));
    }
}
