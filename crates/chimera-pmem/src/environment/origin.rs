//! [`Origin`]: whether the process is still the one in which something was made, and not a child that was forked from it.
//!
//! A child of `fork` has a copy of its parent's memory and shares its mapped files, but has none of its threads. What was
//! made in the parent is of no use there, and would do harm. To tell costs a load: a process has a page that the kernel
//! gives to a child as zeros (`MADV_WIPEONFORK`), with a word that is 1 in the process itself.

use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use rustix::mm::{self, Advice, MapFlags, ProtFlags};

/// Bytes to map, at least: the system makes a page of it.
const BYTES: usize = 4096;
/// What the word says in the process that made it.
const HERE: u32 = 1;

/// Of processes that are never told from their children.
static ALWAYS_HERE: AtomicU32 = AtomicU32::new(HERE);
/// The word of this process, or of one that it was forked from; null before the first.
static CURRENT: AtomicPtr<AtomicU32> = AtomicPtr::new(std::ptr::null_mut());

/// The process in which something was made.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    word: &'static AtomicU32,
    process_id: u32,
}

impl Origin {
    /// This process.
    ///
    /// # Cost
    /// A page for the process, when it is asked for the first time.
    pub fn current() -> Self {
        Self { word: current_word(), process_id: std::process::id() }
    }

    /// A process for which `word` tells whether it is still that one: 1 while it is.
    pub fn staged(word: &'static AtomicU32, process_id: u32) -> Self {
        Self { word, process_id }
    }

    /// A process that never forks.
    pub fn without_forks(process_id: u32) -> Self {
        Self::staged(&ALWAYS_HERE, process_id)
    }

    /// Whether this is still that process.
    #[inline(always)]
    pub fn is_here(&self) -> bool {
        self.word.load(Ordering::Relaxed) == HERE
    }

    /// The number of that process.
    pub fn process_id(&self) -> u32 {
        self.process_id
    }
}

fn current_word() -> &'static AtomicU32 {
    let found = CURRENT.load(Ordering::Acquire);
    // SAFETY: it is null, or points to a word that is never unmapped and accessed atomically only.
    let word = unsafe { found.as_ref() };
    if let Some(word) = word.filter(|word| word.load(Ordering::Relaxed) == HERE) {
        return word;
    }
    let Some(made) = make_word() else { return &ALWAYS_HERE };
    let made_at = std::ptr::from_ref(made).cast_mut();
    // Where another thread of this process was faster, the page that is left over is as good.
    let _ = CURRENT.compare_exchange(found, made_at, Ordering::AcqRel, Ordering::Acquire);
    made
}

/// A word that is 1 in this process, and 0 in those that are forked from it.
fn make_word() -> Option<&'static AtomicU32> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping, at an address that the system chooses.
    let page =
        unsafe { mm::mmap_anonymous(std::ptr::null_mut(), BYTES, protection, MapFlags::PRIVATE) };
    // SAFETY: the range was just mapped, and nothing is in it.
    let page = page.and_then(|page| unsafe {
        mm::madvise(page, BYTES, Advice::LinuxWipeOnFork).map(|()| page)
    });
    match page {
        Ok(page) => {
            // SAFETY: aligned to a page, mapped for reading and writing and never unmapped; zeros are a valid word, and
            // every access is atomic.
            let word: &'static AtomicU32 = unsafe { &*page.cast::<AtomicU32>() };
            word.store(HERE, Ordering::Release);
            Some(word)
        }
        Err(error) => {
            log::warn!("a child that is forked will not be told from this process: {error}");
            None
        }
    }
}

/// Does `work` in a child that is forked from this process, and returns whether the child ended by itself with `true`.
/// It ends without dropping anything else, and by a signal when it panics or takes longer than a minute. For tests of
/// what a child does with what it inherits: `work` must not wait for a thread, because the child has none but its own.
///
/// # Errors
/// When there can be no child.
#[doc(hidden)]
pub fn in_child(work: impl FnOnce() -> bool) -> std::io::Result<bool> {
    // SAFETY: the child has this thread alone. The C library keeps its allocator whole over a fork; whatever else
    // another thread may have held then, the child's use of it ends with the alarm.
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error()),
        0 => {
            // SAFETY: has no preconditions.
            unsafe { libc::alarm(60) };
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            // SAFETY: ends this process at once, and nothing of it is used any more.
            unsafe { libc::_exit(i32::from(!matches!(done, Ok(true)))) }
        }
        child => {
            let mut status = 0;
            loop {
                // SAFETY: `status` is valid for the call.
                let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
                let error = std::io::Error::last_os_error();
                if ended == child {
                    return Ok(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0);
                }
                if error.kind() != std::io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::{Environment, OpenMode, RealEnvironment, TaskStep};

    #[test]
    fn a_child_is_told_from_its_parent_and_has_an_origin_of_its_own() {
        let parent = Origin::current();
        assert!(parent.is_here() && Origin::current().is_here());
        assert_eq!(parent.process_id(), std::process::id());
        let child = || {
            let (is_parent, own) = (parent.is_here(), Origin::current());
            let in_grandchild = in_child(|| !own.is_here() && !parent.is_here());
            !is_parent
                && own.is_here()
                && !parent.is_here()
                && own.process_id() != parent.process_id()
                && in_grandchild.is_ok_and(|told| told)
        };
        assert!(in_child(child).unwrap());
        assert!(parent.is_here(), "the parent goes on");
        assert!(!in_child(|| false).unwrap());
        assert!(Origin::without_forks(7).is_here());
    }

    #[test]
    fn a_child_neither_unlocks_a_file_nor_waits_for_a_task() {
        let environment = RealEnvironment::new();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let file = environment.open(&path, OpenMode::CreateNew).unwrap();
        assert!(file.try_lock(true).unwrap());
        let task = environment.spawn("idle", Box::new(|| TaskStep::Wait)).unwrap();
        let mut held = Some((file, task));
        let drops = || {
            drop(held.take());
            true
        };
        assert!(in_child(drops).unwrap());
        let second = environment.open(&path, OpenMode::ReadWrite).unwrap();
        assert!(!second.try_lock(true).unwrap(), "a child gave the lock away");
        drop(held.take());
        assert!(second.try_lock(true).unwrap());
    }
}
