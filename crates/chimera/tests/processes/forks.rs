//! Children that are forked while a store is open: whatever they do with the handle they inherited, they are refused, and
//! the parent goes on undisturbed. Each case is a process of its own, because a child has one thread of its parent alone.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use chimera::{
    BackupOptions, Db, Durability, EngineKind, Error, ErrorKind, ExportOptions, Options, Session,
};
use chimera_pmem::environment::{MemoryFiles, in_child};
use chimera_pmem::{Environment, Hardware, Medium, Pmem, SteppedEnvironment};

use crate::tools::{assert_sound, contents, fill, key, open, scratch, scratch_on_disk, value};

const CASE: &str = "CHIMERA_TEST_FORK_CASE";

fn options(engine: EngineKind, durability: Durability) -> Options {
    Options::new()
        .engine(engine)
        .segment_bytes(4 << 20)
        .durability(durability)
        .ordered(true)
        .reclaim_percent(50)
}

fn is_refused<T>(outcome: Result<T, Error>) -> bool {
    match outcome {
        Err(error @ Error::Forked { .. }) => {
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert!(error.to_string().contains("after the fork"), "{error}");
            true
        }
        Err(error) => panic!("another error: {error}"),
        Ok(_) => false,
    }
}

fn panics(call: impl FnOnce()) -> bool {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).is_err()
}

/// Everything that can be asked of a handle and a session.
fn assert_all_refused<P: Pmem>(db: &Db<P>, session: &mut Session<P>) {
    let (key, value) = (key(1), value(1, 9));
    let records = [(&key, &value)];
    assert!(is_refused(session.put(&key, &value)));
    assert!(is_refused(session.multi_put(&records)));
    assert!(is_refused(session.get(&key)));
    assert!(is_refused(session.contains_key(&key)));
    assert!(is_refused(session.multi_get(&[&key])));
    assert!(is_refused(session.get_by_engine(&[&key], |_| ())));
    assert!(is_refused(session.update(&key, |_| ())));
    assert!(is_refused(session.fetch_add_u64(&key, 0, 1)));
    assert!(is_refused(session.compare_and_swap_u64(&key, 0, 1, 2)));
    assert!(is_refused(session.compare_and_swap(&key, &value, &value)));
    assert!(is_refused(session.delete(&key)));
    assert!(is_refused(session.scan(..)));
    assert!(is_refused(session.scan_n(b"", 3)));
    assert!(is_refused(session.scan_with(.., 3, |_, _| true)));

    assert!(is_refused(db.put(&key, &value)));
    assert!(is_refused(db.multi_put(&records)));
    assert!(is_refused(db.get(&key)));
    assert!(is_refused(db.delete(&key)));
    assert!(is_refused(db.update(&key, |_| ())));
    assert!(is_refused(db.fetch_add_u64(&key, 0, 1)));
    assert!(is_refused(db.compare_and_swap(&key, &value, &value)));
    assert!(is_refused(db.for_each(|_, _| true)));
    assert!(db.iter().next().is_some_and(is_refused));
    assert!(db.keys().next().is_some_and(is_refused));
    assert!(is_refused(db.scan(..)));
    assert!(is_refused(db.sync()));
    assert!(is_refused(db.compact(50, None)));
    assert!(is_refused(db.try_session()));
    assert!(is_refused(db.export(&mut Vec::new(), &ExportOptions::new())));
    assert_eq!(db.apply_changes(0, 1), 0);
    let report = db.check(None);
    assert!(report.first_damage.is_some_and(|damage| damage.what.contains("after the fork")));
    assert!(is_refused(db.clone().close().map_err(Error::from)));
    std::panic::set_hook(Box::new(|_| ()));
    assert!(panics(|| drop(db.session())));
    assert!(panics(|| drop(db.stats())));
    assert!(panics(|| drop(db.session_stats())));
    assert!(panics(|| drop(db.metrics_text())));
    assert!(panics(|| drop(db.inspect(None))));
    assert!(panics(|| drop(db.scrub(None))));
    assert!(panics(|| _ = db.len()));
    let _ = std::panic::take_hook();
}

/// A child that tries everything, and drops all it has.
fn child(
    db: &mut Option<Db>,
    session: &mut Option<Session>,
    path: &Path,
    options: &Options,
) -> bool {
    let handle = db.as_ref().expect("inherited");
    assert_all_refused(handle, session.as_mut().expect("inherited"));
    let copy = path.with_extension("backup");
    assert!(is_refused(handle.backup(&copy, &BackupOptions::new())));
    assert!(!copy.exists());
    // The lock is the parent's, and stays so when everything is dropped.
    let is_locked = || matches!(Db::open(path, options), Err(Error::Locked { .. }));
    assert!(is_locked());
    let read_before_the_fork = handle.clone();
    drop(session.take());
    drop(db.take());
    drop(read_before_the_fork);
    assert!(is_locked(), "a child gave the parent's lock away");
    true
}

/// The parent of such children, in a process of its own. Does nothing when run as a test.
#[test]
fn a_parent() {
    let Ok(case) = std::env::var(CASE) else { return };
    let (engine, place) = case.split_once(' ').expect("an engine and a place");
    let engine = engine.parse().expect("an engine");
    let (directory, durability) = match place {
        "memory" => (scratch(), Durability::Process),
        _ => (scratch_on_disk(), Durability::Auto),
    };
    let path = directory.path().join("store");
    let options = options(engine, durability);
    let mut db = Some(open(&path, &options));
    let mut session = db.as_ref().map(Db::session);
    fill(session.as_mut().expect("open"), 0..300, 1);

    assert!(in_child(|| child(&mut db, &mut session, &path, &options)).expect("a child"));
    // Children of a parent whose other threads hold locks when they are forked.
    let (is_over, written) = (AtomicBool::new(false), AtomicU64::new(300));
    std::thread::scope(|scope| {
        let handle = db.clone().expect("open");
        scope.spawn(|| {
            let handle = handle;
            let mut session = handle.session();
            while !is_over.load(Ordering::Relaxed) {
                let number = written.load(Ordering::Relaxed);
                fill(&mut session, [number], 1);
                handle.put(key(number % 300), value(number % 300, 2)).expect("room");
                drop(handle.stats());
                written.store(number + 1, Ordering::Relaxed);
            }
        });
        for _ in 0..20 {
            let before = written.load(Ordering::Relaxed);
            assert!(in_child(|| child(&mut db, &mut session, &path, &options)).expect("a child"));
            while written.load(Ordering::Relaxed) == before {
                std::thread::yield_now();
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let written = written.into_inner();
    let session_of_parent = session.as_mut().expect("the parent's own");
    fill(session_of_parent, written..written + 2000, 1);
    assert_eq!(session_of_parent.get(key(5)).expect("read").map(|value| value.len()), Some(24));
    assert!(matches!(Db::open(&path, &options), Err(Error::Locked { .. })));
    drop(session);
    db.take().expect("open").close().expect("nobody else has it");

    let db = open(&path, &options);
    let found = contents(&db);
    assert_eq!(found.len() as u64, written + 2000);
    assert!((0..written + 2000).all(|number| found.contains_key(&key(number))));
    assert_sound(&db);
    db.close().expect("nobody else has it");
    println!("\nOUTCOME {case}: ok");
}

fn run(case: &str) {
    let _alone = crate::alone();
    let output = std::process::Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "forks::a_parent", "--nocapture"])
        .env(CASE, case)
        .output()
        .expect("a process");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains(&format!("OUTCOME {case}: ok")), "{text}\n{errors}");
}

#[test]
fn children_do_no_harm_in_memory() {
    for engine in ["viper", "hikv", "chameleon"] {
        run(&format!("{engine} memory"));
    }
}

#[test]
fn children_do_no_harm_on_plain_files() {
    for engine in ["viper", "hikv", "chameleon"] {
        run(&format!("{engine} disk"));
    }
}

/// What needs no process: where a fork is staged, nothing is written any more, and nothing ends.
#[test]
fn a_staged_fork_is_refused_everywhere_and_writes_nothing() {
    for engine in [EngineKind::Viper, EngineKind::Hikv, EngineKind::Chameleon] {
        let files = Arc::new(MemoryFiles::new().on(Medium::File));
        let stepped = Arc::new(SteppedEnvironment::with_files(1, files));
        stepped.allow_fork();
        let environment: Arc<dyn Environment> = stepped.clone();
        let options = options(engine, Durability::Auto);
        let pmem = Hardware::new(options.hardware_options()).expect("address space");
        let db = Db::open_on(pmem, &environment, "store", &options).expect("opens");
        let mut session = db.session();
        fill(&mut session, 0..20, 1);
        let bytes = || {
            let file = environment
                .open(Path::new("store/journal"), chimera_pmem::environment::OpenMode::Read);
            let file = file.expect("there");
            let mut bytes = vec![0; file.length().expect("a length") as usize];
            file.read_at(0, &mut bytes).expect("read");
            bytes
        };
        let before = bytes();
        stepped.fork();
        assert_all_refused(&db, &mut session);
        drop(session);
        drop(db);
        assert!(bytes() == before, "{engine}: a child has written");
    }
}
