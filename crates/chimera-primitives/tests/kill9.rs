//! Trees whose writer is killed at random moments: what it acknowledged is there.
//!
//! The writer is this test once more, as a process of its own. It prints the number of each operation before it begins and
//! again when it is acknowledged; what has begun and not ended at the kill may be done or not. This proves nothing about
//! power loss, which the crash lab is for: the machine lives on.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use chimera_pmem::environment::OpenMode;
use chimera_pmem::{Environment, Hardware, HardwareOptions, Pmem, RealEnvironment};
use chimera_primitives::tree::{CachedFpTree, FpTree, NvTree, Tree, TreeShape};

const SHAPE: TreeShape = TreeShape { key_bytes: 8, value_bytes: 24, leaf_entries: 8 };
const KEYS: u64 = 400;
const TREE: &str = "CHIMERA_TEST_TREE";
const FILE: &str = "CHIMERA_TEST_TREE_FILE";
const FIRST: &str = "CHIMERA_TEST_TREE_FIRST";

/// What operation `number` does: to which key, and its value; none deletes.
fn operation(number: u64) -> (u64, Option<[u8; 24]>) {
    let mixed = (number ^ 0x5EED).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let value = (mixed >> 60 > 4).then(|| {
        let mut value = [0; 24];
        value.chunks_mut(8).for_each(|word| word.copy_from_slice(&mixed.to_le_bytes()));
        value
    });
    ((mixed >> 20) % KEYS, value)
}

fn open<T: Tree<Hardware>>(path: &Path) -> T {
    let bytes = T::bytes_for(SHAPE, KEYS).expect("it fits").next_multiple_of(4096);
    let environment = RealEnvironment::new();
    let file = match environment.open(path, OpenMode::ReadWrite) {
        Ok(file) => file,
        Err(_) => environment.open(path, OpenMode::CreateNew).expect("a file"),
    };
    file.allocate(0, bytes).expect("room");
    let options = HardwareOptions { reserve_bytes: 1 << 28, ..HardwareOptions::default() };
    let pmem = Hardware::new(options).expect("address space");
    pmem.map(0, &file, 0, bytes).expect("mapped");
    T::open(pmem, SHAPE).expect("it opens after any kill")
}

/// Does operations one after the other until it is killed.
fn write<T: Tree<Hardware>>(path: &Path, first: u64) {
    let mut tree: T = open(path);
    let mut out = std::io::stdout().lock();
    for number in first.. {
        // The other end may be gone already.
        let _ = writeln!(out, "begin {number}").and_then(|()| out.flush());
        let (key, value) = operation(number);
        match value {
            Some(value) => drop(tree.put(&key.to_be_bytes(), &value).expect("it puts")),
            None => drop(tree.delete(&key.to_be_bytes()).expect("it deletes")),
        }
        let _ = writeln!(out, "end {number}").and_then(|()| out.flush());
    }
}

/// The process that is killed; does nothing as a test.
#[test]
fn writer() {
    let (Ok(tree), Ok(path), Ok(first)) =
        (std::env::var(TREE), std::env::var(FILE), std::env::var(FIRST))
    else {
        return;
    };
    let (path, first) = (Path::new(&path), first.parse().expect("a number"));
    match &*tree {
        "fptree" => write::<FpTree<Hardware>>(path, first),
        "fptree-cached" => write::<CachedFpTree<Hardware>>(path, first),
        _ => write::<NvTree<Hardware>>(path, first),
    }
}

/// Runs a writer for a while and kills it: the operations that it began, and those that it ended.
fn run(tree: &str, path: &Path, first: u64, time: Duration) -> (u64, u64) {
    let program = std::env::current_exe().expect("this test");
    let mut child = Command::new(program)
        .args(["--exact", "writer", "--nocapture", "--test-threads=1"])
        .envs([(TREE, tree), (FIRST, &first.to_string())])
        .env(FILE, path)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    std::thread::sleep(time);
    child.kill().expect("it is killed");
    child.wait().expect("it has ended");
    let (mut begun, mut ended) = (first, first);
    for line in BufReader::new(child.stdout.take().expect("a pipe")).lines() {
        let line = line.expect("text");
        let number = |rest: &str| rest.parse::<u64>().map_or(0, |number| number + 1);
        if let Some(rest) = line.split("begin ").nth(1) {
            begun = begun.max(number(rest));
        } else if let Some(rest) = line.strip_prefix("end ") {
            ended = ended.max(number(rest));
        }
    }
    (begun, ended)
}

fn survives<T: Tree<Hardware>>() {
    let kills =
        std::env::var("CHIMERA_TEST_KILLS").map_or(12, |text| text.parse().expect("a number"));
    let directory = tempfile::Builder::new();
    let memory = Path::new("/dev/shm");
    let directory =
        if memory.is_dir() { directory.tempdir_in(memory) } else { directory.tempdir() };
    let path = directory.as_ref().expect("a directory").path().join("tree");
    let (mut model, mut next, mut acknowledged) = (BTreeMap::new(), 0, 0);
    for kill in 0..kills {
        let time = Duration::from_millis(20 + 7 * (kill % 10));
        let (begun, ended) = run(T::NAME, &path, next, time);
        let apply = |model: &mut BTreeMap<u64, [u8; 24]>, number: u64| match operation(number) {
            (key, Some(value)) => drop(model.insert(key, value)),
            (key, None) => drop(model.remove(&key)),
        };
        (next..ended).for_each(|number| apply(&mut model, number));
        let mut tree: T = open(&path);
        tree.check().expect("it is sound");
        let mut found = BTreeMap::new();
        tree.scan(&[0; 8], usize::MAX, |key, value| {
            let key = u64::from_be_bytes(key.try_into().expect("eight bytes"));
            found.insert(key, value.try_into().expect("a value"));
        })
        .expect("it scans");
        let mut with_next = model.clone();
        (ended..begun).for_each(|number| apply(&mut with_next, number));
        assert!(begun <= ended + 1, "{begun} begun, {ended} ended");
        assert!(found == model || found == with_next, "{}, kill {kill} at {ended}", T::NAME);
        // Whatever became of the one under way, the next life begins with it once more.
        (model, acknowledged) = (found, acknowledged + ended - next);
        next = begun;
        let was_there = tree.delete(&u64::MAX.to_be_bytes()).expect("it deletes");
        assert!(!was_there, "a key that nobody wrote");
    }
    assert!(acknowledged > 0, "nothing was acknowledged");
}

#[test]
fn fptree_survives_kills() {
    survives::<FpTree<Hardware>>();
}

#[test]
fn fptree_with_a_cache_survives_kills() {
    survives::<CachedFpTree<Hardware>>();
}

#[test]
fn nvtree_survives_kills() {
    survives::<NvTree<Hardware>>();
}
