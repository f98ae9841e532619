//! Ctrl-C: what a benchmark has made is removed, and the process ends with 130.
//!
//! The list of what is made is locked while it is removed, until the process ends. Whoever is done with a
//! directory meanwhile waits for that.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How often a directory is emptied until no thread makes anything in it any more.
const ROUNDS: usize = 50;
const PAUSE: Duration = Duration::from_millis(10);
/// As a shell has it of a command that the signal ends.
const EXIT_CODE: i32 = 130;

/// Removes a directory with what a benchmark made in it; whether nothing of it is left.
pub(crate) type Remove = Box<dyn Fn() -> bool + Send>;

/// A directory that a benchmark made.
struct Made {
    number: u64,
    path: PathBuf,
    /// None of one that is to be kept.
    remove: Option<Remove>,
}

struct State {
    made: Vec<Made>,
    next: u64,
}

static STATE: Mutex<State> = Mutex::new(State { made: Vec::new(), next: 0 });

/// What was registered, until it is given to [`finish`].
#[derive(Debug)]
pub(crate) struct Registered(u64);

/// Waits for Ctrl-C from now on. `say` is told how it stands before the process ends. Where the signal is
/// ignored, it stays ignored.
pub fn install(say: impl Fn(&str) + Send + 'static) {
    // Without a thread for it the signal ends the process as ever.
    let _ = ctrlc::try_set_handler(move || {
        let state = lock();
        say(&clear(&state.made));
        // The lock is held for good.
        std::process::exit(EXIT_CODE)
    });
}

/// Makes a directory by `make`, which `remove` removes; nothing does of one that is to be kept. An interruption
/// comes before both or after both.
///
/// # Errors
/// As `make`. There is nothing to remove then.
pub(crate) fn make<T, E>(
    path: PathBuf,
    remove: Option<Remove>,
    make: impl FnOnce() -> Result<T, E>,
) -> Result<(T, Registered), E> {
    let mut state = lock();
    let made = make()?;
    let number = state.next;
    state.next += 1;
    state.made.push(Made { number, path, remove });
    Ok((made, Registered(number)))
}

/// Ends what a benchmark has to do in a directory by `end`, which an interruption does not come between.
pub(crate) fn finish(registered: &Registered, end: impl FnOnce()) {
    let mut state = lock();
    state.made.retain(|made| made.number != registered.0);
    end();
}

fn lock() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes everything, and says how it stands then.
fn clear(made: &[Made]) -> String {
    let one = |made: &Made| {
        let path = made.path.display();
        let Some(remove) = &made.remove else {
            return format!("`{path}` is kept, with stores that are not complete");
        };
        let is_gone = (0..ROUNDS).any(|_| {
            let is_gone = remove();
            if !is_gone {
                thread::sleep(PAUSE);
            }
            is_gone
        });
        if is_gone {
            format!("`{path}` is as it was before")
        } else {
            format!(
                "parts of a benchmark are left in `{path}`: the next one removes them with --overwrite"
            )
        }
    };
    let all: Vec<_> = made.iter().map(one).collect();
    if all.is_empty() { "nothing is left behind".to_owned() } else { all.join("; ") }
}
