//! What runs inside the guest: opens and verifies the stores, and writes until its power is cut.

mod cut;
mod outcome;
mod port;
mod verify;
mod write;

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use chimera::{Db, EngineKind, Options};
use chimera_pmem::{Environment, Hardware, Pmem, RealEnvironment};

use super::plan::{Access, MOUNT_POINT, Message, Mount, PLAN_PATH, Plan, THREADS, Target};
use super::workload::{KEY_BYTES, VALUE_BYTES};
use cut::CutPmem;
use outcome::Outcome;
use port::Port;
use verify::{Before, verify};

/// Runs the plan that lies in the initial file system.
///
/// # Errors
/// Whatever goes wrong; the host is told, too, if there is a way to.
pub fn run() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let port = Arc::new(Port::find()?);
    let done = carry_out(&port);
    match &done {
        Ok(()) => port.say(&Message::Done)?,
        Err(error) => port.say(&Message::Problem(error.to_string()))?,
    }
    done
}

fn carry_out(port: &Arc<Port>) -> Outcome<()> {
    let plan: Plan = serde_json::from_slice(&fs::read(PLAN_PATH)?)?;
    for device in &plan.devices {
        doing(port, format!("waiting for {device}"))?;
        wait_for(Path::new(device));
    }
    if let Some(Mount { device, options }) = &plan.mount {
        doing(port, format!("mounting {device}"))?;
        let mount = ["mount", "-t", "ext4", "-o", options, device, MOUNT_POINT];
        busybox(&mount)?;
    }
    if plan.doctor {
        for store in &plan.stores {
            doing(port, format!("running `chimera doctor` on {}", store.path))?;
            port.say(&doctor(&store.path)?)?;
        }
    }
    for arguments in &plan.commands {
        doing(port, format!("running `chimera {}`", arguments.join(" ")))?;
        port.say(&Message::Ran { output: chimera(arguments).ok() })?;
    }
    port.say(&Message::Opening)?;
    match plan.exact {
        None => on(port, &plan, |path, options| Db::open(path, options)),
        Some(_) => on(port, &plan, |path, options| {
            let pmem = Hardware::new(options.hardware_options()).map_err(|source| {
                chimera::Error::Io { action: "map", path: path.into(), source }
            })?;
            let environment: Arc<dyn Environment> = Arc::new(RealEnvironment::new());
            Db::open_on(CutPmem::new(pmem), &environment, path, options)
        }),
    }
}

/// Tells the host what begins now.
fn doing(port: &Port, what: String) -> Outcome<()> {
    Ok(port.say(&Message::Doing(what))?)
}

/// How stores of an engine are created and opened: small, so that what grows, splits and is collected does so within
/// hundreds of operations.
fn options(engine: EngineKind) -> Options {
    let options = Options::new().engine(engine);
    let options = if engine.capabilities().fixed_size {
        options.fixed_size(KEY_BYTES, VALUE_BYTES)
    } else {
        options
    };
    options
        .hikv(|hikv| hikv.partitions(2).index_segment_bytes(1024).heap_run_bytes(16 << 10))
        .chameleon(|chameleon| {
            let sizes = chameleon.shards(2).memtable_bytes(1024).levels(3).ratio(2);
            sizes.log_run_bytes(16 << 10).log_batch_bytes(0)
        })
        .log_hash(|options| {
            options.index_segment_bytes(1024).log_run_bytes(16 << 10).log_batch_bytes(0)
        })
        .huge_pages(false)
        .populate_ahead_bytes(1 << 20)
}

/// Carries out the plan with stores that `open` opens.
fn on<P: Pmem>(
    port: &Arc<Port>,
    plan: &Plan,
    open: impl Fn(&str, &Options) -> chimera::Result<Db<P>>,
) -> Outcome<()> {
    let engine: EngineKind = plan.engine.parse()?;
    let mut writers = Vec::new();
    let mut stores = Vec::new();
    for target in &plan.stores {
        doing(port, format!("opening {}", target.path))?;
        let Some(db) = open_target(port, engine, target, &open)? else { continue };
        doing(port, format!("verifying {}", target.path))?;
        let (verified, states) = verify(&db, &Before { seed: plan.seed, target });
        let is_sound = verified.problems.is_empty();
        port.say(&Message::Verified(verified))?;
        if is_sound && target.access != Access::RefusedThenRead {
            writers.extend(states.into_iter().map(|state| (db.session(), state)));
        }
        stores.push(db);
    }
    doing(port, "writing".to_owned())?;
    // Only now: no thread writes before every store is verified.
    let writers: Vec<_> = writers
        .into_iter()
        .map(|(session, state)| {
            let (port, plan) = (port.clone(), plan.clone());
            thread::spawn(move || write::write(session, state, &plan, &port))
        })
        .collect();
    for writer in writers {
        writer.join().map_err(|_| "a writing thread panicked")??;
    }
    doing(port, "closing".to_owned())?;
    for db in stores {
        db.close()?;
    }
    Ok(())
}

/// Opens a store the way the plan wants it; none when that was refused as expected.
fn open_target<P: Pmem>(
    port: &Port,
    engine: EngineKind,
    target: &Target,
    open: &impl Fn(&str, &Options) -> chimera::Result<Db<P>>,
) -> Outcome<Option<Db<P>>> {
    let Target { path, access, .. } = target;
    let mut options = options(engine)
        .create(target.done == [0; THREADS])
        .durability(target.durability.parse()?)
        .ordered(target.ordered)
        .salvage(*access == Access::Salvage);
    if !path.starts_with("/dev/") {
        // Files are created in full: small ones.
        options = options.segment_bytes(8 << 20);
    }
    let refused = |error: &chimera::Error| {
        port.say(&Message::Refused { path: path.clone(), error: error.to_string() })
    };
    let failed = |error| format!("`{path}`: {error}").into();
    match (open(path, &options), access) {
        (Ok(_), Access::RefusedThenRead) => Err(format!("`{path}` was opened for writing").into()),
        (Err(error), Access::RefusedThenRead) => {
            refused(&error)?;
            open(path, &options.read_only(true)).map(Some).map_err(failed)
        }
        (Err(error @ chimera::Error::InvalidOptions(_)), Access::WriteIfPossible) => {
            refused(&error)?;
            Ok(None)
        }
        (outcome, _) => outcome.map(Some).map_err(failed),
    }
}

/// Waits for a device to appear: for ever, because the host knows best how fast the machine is, and ends it.
fn wait_for(device: &Path) {
    while !device.exists() {
        thread::sleep(Duration::from_millis(10));
    }
}

fn busybox(arguments: &[&str]) -> Outcome<()> {
    let output = Command::new("/busybox").args(arguments).output()?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(format!("{}: {}", arguments.join(" "), text.trim()).into())
}

/// What the command `chimera` prints.
fn chimera<T: AsRef<OsStr>>(arguments: &[T]) -> Outcome<String> {
    let output = Command::new("/chimera").args(arguments).output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    eprintln!("chimera: {}", text.trim());
    Err(format!("chimera: {}", text.trim()).into())
}

fn doctor(path: &str) -> Outcome<Message> {
    let output = chimera(&["doctor", "--json", "--path", path])?;
    Ok(Message::Doctor { path: path.to_owned(), report: serde_json::from_str(&output)? })
}
