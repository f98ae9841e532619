//! [`RealEnvironment`]: the operating system's clock, threads and files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use super::memory;
use super::random::{SplitMix, mix};
use super::real_directory::RealDirectory;
use super::real_files::RealFiles;
use super::workers::Workers;
use super::{Directory, Environment, File, FileProvider, OpenMode, Origin, Task, TaskBody};

/// The machine as it is.
#[derive(Debug)]
pub struct RealEnvironment {
    start: Instant,
    random: SplitMix,
    files: RealFiles,
}

impl RealEnvironment {
    /// An environment whose random numbers differ from any other's.
    pub fn new() -> Self {
        Self::with_seed(entropy())
    }

    /// An environment whose random numbers follow from `seed`. Clock and threads stay real, so runs
    /// are repeatable only as far as these do not matter.
    pub fn with_seed(seed: u64) -> Self {
        Self { start: Instant::now(), random: SplitMix::new(seed), files: RealFiles }
    }
}

impl Default for RealEnvironment {
    fn default() -> Self {
        Self::new()
    }
}

impl Environment for RealEnvironment {
    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn unix_seconds(&self) -> u64 {
        std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs()
    }

    fn random_u64(&self) -> u64 {
        self.random.next()
    }

    fn boot_id(&self) -> u64 {
        static BOOT: OnceLock<u64> = OnceLock::new();
        *BOOT.get_or_init(|| {
            let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
            boot_number(&text).unwrap_or_else(|| {
                log::warn!("the system has no boot id: every start will look like a new boot");
                entropy()
            })
        })
    }

    fn process_id(&self) -> u32 {
        std::process::id()
    }

    fn origin(&self) -> Origin {
        Origin::current()
    }

    fn memory_bytes(&self) -> Option<u64> {
        memory::usable_bytes(Path::new("/proc"), Path::new("/sys/fs/cgroup"))
    }

    fn mapped_file_bytes(&self) -> Option<u64> {
        memory::mapped_file_bytes(&fs::read_to_string("/proc/self/statm").ok()?)
    }

    fn parallelism(&self) -> usize {
        thread::available_parallelism().map_or(1, usize::from)
    }

    fn spawn(&self, name: &str, body: TaskBody) -> io::Result<Box<dyn Task>> {
        Ok(Box::new(Workers::current().spawn(name, body)?))
    }

    fn run_parallel(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
        let Some(last) = count.checked_sub(1) else { return };
        thread::scope(|scope| {
            let mut running = Vec::with_capacity(last);
            let mut left = Vec::new();
            for number in 0..last {
                match thread::Builder::new().spawn_scoped(scope, move || work(number)) {
                    Ok(handle) => running.push(handle),
                    Err(_) => left.push(number),
                }
            }
            // This thread does the last piece, and those no thread could be had for.
            work(last);
            left.into_iter().for_each(work);
            for handle in running {
                if let Err(panic) = handle.join() {
                    std::panic::resume_unwind(panic);
                }
            }
        });
    }

    fn relax(&self, attempt: u32) {
        match attempt {
            0..6 => (0..1u32 << attempt).for_each(|_| std::hint::spin_loop()),
            6..20 => thread::yield_now(),
            // The holder of the lock is not running: 1 us, doubling up to about 1 ms.
            _ => thread::sleep(Duration::from_micros(1 << (attempt - 20).min(10))),
        }
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        self.files.open(path, mode)
    }

    fn open_directory(&self, path: &Path) -> io::Result<Arc<dyn Directory>> {
        Ok(Arc::new(RealDirectory::open(path)?))
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.files.create_directory(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        self.files.list(path)
    }

    fn is_directory(&self, path: &Path) -> io::Result<Option<bool>> {
        self.files.is_directory(path)
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        self.files.real_path(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.files.remove(path)
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        self.files.remove_directory(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.files.sync_directory(path)
    }
}

/// A seed from the system; from the time and the process where it gives none.
fn entropy() -> u64 {
    let mut bytes = [0; 8];
    let got = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    if got == Ok(bytes.len()) {
        return u64::from_ne_bytes(bytes);
    }
    let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    mix(since.as_nanos() as u64 ^ u64::from(std::process::id()) << 32)
}

/// A boot id (a UUID) as a number; `None` when it is none.
fn boot_number(text: &str) -> Option<u64> {
    let digits: String = text.trim().chars().filter(|&c| c != '-').collect();
    let number = u128::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 32)?;
    Some(mix(number as u64).wrapping_add((number >> 64) as u64))
}
