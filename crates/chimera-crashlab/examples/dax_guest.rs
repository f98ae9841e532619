//! The test program of `chimera-crashlab dax-guest`: runs inside the virtual machine, where nothing
//! else does.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    match chimera_crashlab::dax_guest::guest::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(1)
        }
    }
}
