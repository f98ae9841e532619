//! Ctrl-C: what an interrupted command leaves behind, and what it says of it.
//!
//! A command has a [`Plan`] for it, from a guard on. Most end at once, on the thread that waits for the
//! signal: a store is whole at any moment. A command that stores what it reads is told to stop instead,
//! since it knows how far it came. The second Ctrl-C ends that one at once, too.
//!
//! The plan is locked while the thread carries it out, until the process ends. Whoever gives back a guard
//! meanwhile waits for that: no command ends with success while what it made is removed.

mod input;
mod made;

use std::io::{self, IsTerminal, Write};
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::failure::Failure;

pub(crate) use input::Input;
pub(crate) use made::Made;

/// What is to be done when the command is interrupted.
#[derive(Debug)]
pub(crate) enum Plan {
    /// Nothing but to end: this is how it stands.
    Say(&'static str),
    /// To end without a word.
    Quiet,
    /// To remove what only this command has made.
    Remove(Made),
    /// The command stops by itself, once it sees [`is_asked`]. Interrupted once more, it ends and says this.
    Stop(&'static str),
}

struct State {
    plan: Plan,
    json: bool,
}

static STATE: Mutex<State> = Mutex::new(State { plan: Plan::Quiet, json: false });
/// Whether the command was interrupted.
static ASKED: AtomicBool = AtomicBool::new(false);
/// Whether it is about to end for that.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Puts back the plan of before when dropped.
#[derive(Debug)]
pub(crate) struct Guard {
    before: Option<Plan>,
}

/// Waits for Ctrl-C from now on, beside everything else, with this plan where there is no other. Where the signal is ignored, as for a command in
/// the background of a script, it stays ignored.
pub(crate) fn install(json: bool, plan: Plan) {
    *lock() = State { plan, json };
    // Without a thread for it the signal ends the process as ever.
    let _ = ctrlc::try_set_handler(on_interrupt);
}

/// Sets the plan, for as long as the guard is held.
pub(crate) fn plan(plan: Plan) -> Guard {
    Guard { before: Some(mem::replace(&mut lock().plan, plan)) }
}

/// Makes something and sets the plan for it: an interruption comes before both or after both.
///
/// # Errors
/// As `make`. The plan is then as before.
pub(crate) fn make<T, E>(make: impl FnOnce() -> Result<T, E>, plan: Plan) -> Result<(T, Guard), E> {
    let mut state = lock();
    let made = make()?;
    Ok((made, Guard { before: Some(mem::replace(&mut state.plan, plan)) }))
}

/// Whether the command was interrupted and is to stop by itself.
pub(crate) fn is_asked() -> bool {
    ASKED.load(Ordering::Acquire)
}

/// Whether the process is about to end, and nobody is to be told of what that disturbs.
pub(crate) fn is_ending() -> bool {
    ENDING.load(Ordering::Acquire)
}

/// Goes no further when the process is about to end.
pub(crate) fn pass() {
    if is_ending() {
        drop(lock());
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            lock().plan = before;
        }
    }
}

fn lock() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// On the thread that waits for the signal.
fn on_interrupt() {
    let again = ASKED.swap(true, Ordering::AcqRel);
    let state = lock();
    if matches!(state.plan, Plan::Stop(_)) && !again {
        return;
    }
    ENDING.store(true, Ordering::Release);
    let text = match &state.plan {
        Plan::Say(text) | Plan::Stop(text) => Some((*text).to_owned()),
        Plan::Quiet => None,
        Plan::Remove(made) => Some(made.remove()),
    };
    if let Some(text) = text {
        if io::stderr().is_terminal() {
            // Below a progress bar and what the terminal shows of the key.
            let _ = writeln!(io::stderr());
        }
        Failure::Interrupted(text).report(state.json);
    }
    // The lock is held for good.
    std::process::exit(i32::from(Failure::INTERRUPTED))
}
