//! Publishing: the file appears, is replaced, is withdrawn, and nobody who opens the store minds it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chimera::metrics::{FILE, Published};
use chimera::{Db, Error, Options};
use chimera_pmem::environment::{FileProvider, MemoryFiles, OpenMode};
use chimera_pmem::{Environment, Hardware, SteppedEnvironment};

use super::tools::{key, scratch, small, value};

const EVERY: Duration = Duration::from_millis(500);

/// What is published in the store `path` of `files`.
fn read(files: &dyn FileProvider, path: &Path) -> Option<Published> {
    let file = files.open(&path.join(FILE), OpenMode::Read).ok()?;
    let mut text = vec![0; file.length().unwrap() as usize];
    file.read_at(0, &mut text).unwrap();
    Some(Published::parse(std::str::from_utf8(&text).unwrap()).unwrap())
}

fn inserted(metrics: &Published) -> u64 {
    let labels = [("operation", "put"), ("outcome", "inserted")];
    metrics.value("chimera_operations_total", &labels).unwrap() as u64
}

#[test]
fn a_file_appears_is_replaced_and_withdrawn() {
    let directory = scratch();
    let files = Arc::new(chimera_pmem::environment::RealFiles);
    let environment = Arc::new(SteppedEnvironment::with_files(1, files.clone()));
    let shared: Arc<dyn Environment> = environment.clone();
    let path = directory.path().join("store");
    let open = |options: &Options| {
        let pmem = Hardware::new(options.hardware_options()).unwrap();
        Db::open_on(pmem, &shared, &path, options).unwrap()
    };
    // What a process left behind that was killed while it published.
    drop(open(&small()));
    std::fs::write(path.join("metrics.new"), "half a te").unwrap();
    std::fs::write(path.join("metrics"), "# nonsense").unwrap();

    let options = small().publish_metrics(EVERY);
    let db = open(&options);
    while environment.step_tasks() {}
    let first = read(&*files, &path).expect("published as soon as it is open");
    assert_eq!(inserted(&first), 0);
    assert_eq!(first.value("chimera_publish_interval_seconds", &[]), Some(0.5));
    db.put(key(1), value(1, 1)).unwrap();
    while environment.step_tasks() {}
    assert_eq!(read(&*files, &path).map(|metrics| inserted(&metrics)), Some(0), "not yet");
    environment.advance(EVERY.as_nanos() as u64);
    while environment.step_tasks() {}
    let second = read(&*files, &path).unwrap();
    assert_eq!(inserted(&second), 1);
    assert!(second.value("chimera_uptime_seconds", &[]) >= Some(0.5));
    assert!(!path.join("metrics.new").exists());
    let session = db.session();
    let failed = db.close().expect_err("a session is open");
    assert!(matches!(failed.error(), Error::StillInUse { others: 1 }), "{failed}");
    drop(failed);
    assert!(path.join(FILE).exists(), "still open, still published");
    drop(session);
    assert!(!path.join(FILE).exists());
    open(&small()).close().unwrap();
}

#[test]
fn where_there_is_no_directory_or_no_writing_nothing_is_published() {
    let directory = scratch();
    let path = directory.path().join("store");
    Db::open(&path, &small()).unwrap().close().unwrap();
    let reader = Db::open(&path, &Options::new().read_only(true).publish_metrics(EVERY)).unwrap();
    assert!(!path.join(FILE).exists());
    reader.close().unwrap();
    let options = small().publish_metrics(EVERY).anonymous(1 << 20);
    Db::open("", &options).unwrap().close().unwrap();
    let refused = Db::open(&path, &small().publish_metrics(Duration::from_millis(9)));
    assert!(matches!(refused, Err(Error::InvalidOptions(_))), "{refused:?}");
}

#[test]
fn a_place_that_cannot_be_published_in_does_no_harm() {
    let files = Arc::new(MemoryFiles::new());
    let environment = Arc::new(SteppedEnvironment::with_files(1, files.clone()));
    let shared: Arc<dyn Environment> = environment.clone();
    let options = small().publish_metrics(EVERY);
    let pmem = Hardware::new(options.hardware_options()).unwrap();
    // Memory that has no descriptor cannot be mapped: nothing of the store's is open then.
    assert!(Db::open_on(pmem, &shared, Path::new("/store"), &options).is_err());
    assert!(read(&*files, Path::new("/store")).is_none());
    assert!(!environment.step_tasks(), "no task is left");

    let directory = scratch();
    let path = directory.path().join("store");
    std::fs::create_dir_all(path.join(FILE)).unwrap();
    let db = Db::open(&path, &options).unwrap();
    db.put(key(1), value(1, 1)).unwrap();
    assert!(db.check(None).first_damage.is_none());
    db.close().unwrap();
    assert!(path.join(FILE).is_dir());
}

#[test]
fn readers_always_find_a_whole_text() {
    let directory = scratch();
    let path = directory.path().join("store");
    let options = small().publish_metrics(Duration::from_millis(10)).latency_sampling(1);
    let db = Db::open(&path, &options).unwrap();
    let mut session = db.session();
    let (mut looks, mut last) = (0, 0);
    for number in 0.. {
        session.put(key(number % 40), value(number % 40, number)).unwrap();
        let Some(metrics) = read(&chimera_pmem::environment::RealFiles, &path) else { continue };
        let labels = [("operation", "put"), ("outcome", "overwritten")];
        let now = metrics.value("chimera_operations_total", &labels).unwrap() as u64;
        assert!(now >= last, "it only grows");
        looks += u64::from(now > last);
        last = now;
        if looks == 10 {
            break;
        }
    }
    drop(session);
    db.close().unwrap();
    assert!(!path.join(FILE).exists());
    let db = Db::open(&path, &Options::new()).unwrap();
    assert_eq!((db.stats().records, db.stats().recovery.clean), (40, true));
}
