//! What a SIGBUS in a store means, said before the process ends.
//!
//! A load from a mapped page that cannot be had is not an error but a signal, and its default action
//! ends the process without a word. With [`install`], a SIGBUS at an address of a mapped pool is first
//! explained on standard error: which file, at which byte, and what to look at. It is opt-in, because
//! what a process does with signals is for its main program to say.
//!
//! - `pools`: which addresses belong to pools. `maps`: which file lies at an address.
//! - `message`: the words.
//!
//! What runs in the handler is async-signal-safe: atomics, system calls, and memory that was there
//! before; no lock, no allocation, no formatting of the standard library.

mod maps;
mod message;
pub(crate) mod pools;

#[cfg(test)]
mod tests;

use std::ffi::{c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use message::Message;

/// What was done about SIGBUS before.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();
/// A thread is explaining: others that fail meanwhile end without a message of their own.
static IS_EXPLAINING: AtomicBool = AtomicBool::new(false);

/// Explains a SIGBUS in a mapped pool on standard error, and then does what would have been done
/// without this call: whatever handler there was is called, or the process ends by the signal.
///
/// Calling it again does nothing. A handler that is installed later replaces this one; it should call
/// the one it replaced.
///
/// # Errors
/// When the operating system does not let the handler be installed.
pub fn install() -> io::Result<()> {
    static IS_INSTALLED: AtomicBool = AtomicBool::new(false);
    if IS_INSTALLED.swap(true, Ordering::AcqRel) {
        return Ok(());
    }
    let mut previous = MaybeUninit::uninit();
    // SAFETY: asks only; `previous` has room for the answer.
    let asked = unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), previous.as_mut_ptr()) };
    if asked != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has succeeded, so it has written its answer.
    let previous = unsafe { previous.assume_init() };
    // Before the handler can need it.
    PREVIOUS.get_or_init(|| previous);
    // The other signals of the mask of before stay blocked meanwhile, as they were for it.
    let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_bus_error;
    let mut action = previous;
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the action is whole, its handler has the type that `SA_SIGINFO` promises, and does only
    // what is async-signal-safe.
    let installed = unsafe { libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) };
    if installed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

extern "C" fn on_bus_error(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: with `SA_SIGINFO` the kernel passes a valid one, for as long as the handler runs.
    let information = unsafe { &*info };
    let code = information.si_code;
    // Others than the kernel send codes up to 0, and no address.
    if code > 0 {
        // SAFETY: for a SIGBUS of the kernel the field is the address.
        let address = unsafe { information.si_addr() }.addr();
        explain(code, address);
    }
    pass_on(signal, info, context, code);
}

/// Writes the message, if the address belongs to a pool.
fn explain(code: c_int, address: usize) {
    if !pools::contains(address) || IS_EXPLAINING.swap(true, Ordering::Acquire) {
        return;
    }
    maps::with_file_at(address, |place, text| {
        let mut message = Message::new(text);
        message.explain(code, place);
        write_to_standard_error(message.bytes());
    });
    IS_EXPLAINING.store(false, Ordering::Release);
}

fn write_to_standard_error(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: `bytes` can be read for its length.
        let written = unsafe { libc::write(2, bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(written) {
            Ok(written) if written > 0 => bytes = &bytes[written.min(bytes.len())..],
            // Interrupted or not, there is no one to tell.
            _ => return,
        }
    }
}

/// Does what was done about SIGBUS before this module.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void, code: c_int) {
    let previous = PREVIOUS.get();
    let handler = previous.map_or(libc::SIG_DFL, |previous| previous.sa_sigaction);
    let is_by_access = code > 0 && code != libc::BUS_MCEERR_AO;
    match previous {
        Some(_) if handler == libc::SIG_IGN && !is_by_access => {}
        Some(previous) if handler != libc::SIG_DFL && handler != libc::SIG_IGN => {
            if previous.sa_flags & libc::SA_SIGINFO != 0 {
                type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
                // SAFETY: the program that installed it with `SA_SIGINFO` promised a function of this type.
                let handler = unsafe { std::mem::transmute::<usize, Handler>(handler) };
                handler(signal, info, context);
            } else {
                // SAFETY: the program that installed it without `SA_SIGINFO` promised a function of this type.
                let handler =
                    unsafe { std::mem::transmute::<usize, extern "C" fn(c_int)>(handler) };
                handler(signal);
            }
        }
        _ => end_by_default(signal, is_by_access),
    }
}

/// Ends the process by the signal once the handler returns: the access that failed does so again, or
/// the signal, sent once more, is no longer blocked.
fn end_by_default(signal: c_int, is_by_access: bool) {
    // SAFETY: the default action needs nothing.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    if !is_by_access {
        // SAFETY: takes a number.
        unsafe { libc::raise(signal) };
    }
}
