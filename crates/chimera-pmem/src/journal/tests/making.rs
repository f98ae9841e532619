//! Making a journal, taking it into use, and what is kept beside it.

use super::staged::{Did, Staged};
use super::*;
use crate::Extent;

fn file() -> (Arc<dyn FileProvider>, Arc<Staged>) {
    let files: Arc<dyn FileProvider> = Arc::new(MemoryFiles::new().on(Medium::File));
    let file = Staged::new(open(&files, "file"));
    (files, file)
}

#[test]
fn a_capacity_that_no_journal_has_is_refused_before_anything_is_done() {
    for capacity in [0, 4096, CAPACITY - 4096, CAPACITY + 8, (1 << 30) + 4096] {
        let (_, file) = file();
        let error = Journal::format(&*file, 7, 99, capacity, BOOT).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{capacity}: {error}");
        assert_eq!((file.length().unwrap(), file.take_done()), (0, vec![]), "{capacity}");
    }
}

/// What is durable of a file, and what was written since.
#[derive(Clone, Default)]
struct Cached {
    durable: Vec<u8>,
    unsynced: Vec<(u64, Vec<u8>)>,
}

impl Cached {
    fn goes_on(&mut self, did: Did) {
        match did {
            Did::Wrote { at, bytes } => self.unsynced.push((at, bytes)),
            Did::Synced => {
                for (at, bytes) in self.unsynced.drain(..) {
                    put(&mut self.durable, at, &bytes);
                }
            }
        }
    }

    /// With any part of what is not durable.
    fn left_by_power_losses(&self) -> impl Iterator<Item = Vec<u8>> {
        (0..1_u32 << self.unsynced.len()).map(|part| {
            let mut content = self.durable.clone();
            let survivors =
                self.unsynced.iter().enumerate().filter(|(bit, _)| part >> bit & 1 == 1);
            survivors.for_each(|(_, (at, bytes))| put(&mut content, *at, bytes));
            content
        })
    }

    fn left_by_a_kill(&self) -> Vec<u8> {
        self.left_by_power_losses().last().unwrap()
    }
}

fn put(into: &mut [u8], at: u64, bytes: &[u8]) {
    into[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
}

/// What is in a journal of this content. Nothing is.
fn read(file: &dyn File, content: &[u8], boot: u64) -> Option<Contents> {
    file.write_at(0, content).unwrap();
    let contents = Contents::read(file, boot, &no_data);
    let contents = contents.unwrap_or_else(|error| panic!("{error}"));
    let is_blank = |contents: &Contents| contents.damage().is_none() && contents.lines().is_empty();
    assert!(contents.as_ref().is_none_or(is_blank), "{contents:?}");
    contents
}

/// Each moment of making a journal: what is durable then, and what is not.
fn moments_of_making(file: &Staged) -> Vec<Cached> {
    Journal::format(file, 7, 99, CAPACITY, BOOT).unwrap();
    let durable = vec![0; file.length().unwrap() as usize];
    let mut moments = vec![Cached { durable, unsynced: vec![] }];
    for did in file.take_done() {
        let mut next = moments[moments.len() - 1].clone();
        next.goes_on(did);
        moments.push(next);
    }
    assert!(moments.len() > 4 && moments[moments.len() - 1].unsynced.is_empty());
    moments
}

/// Of what was written since the last sync a power loss leaves any part.
#[test]
fn a_power_loss_while_a_journal_is_made_leaves_one_that_holds_nothing() {
    let (_, file) = file();
    for moment in moments_of_making(&file) {
        for left in moment.left_by_power_losses() {
            read(&*file, &left, NEXT_BOOT);
        }
    }
}

/// The end of the process leaves what was written, durable or not, and the next one goes on with that.
#[test]
fn so_does_one_after_a_kill_while_the_journal_is_taken_into_use() {
    let (_, file) = file();
    let mut taken = 0;
    for mut moment in moments_of_making(&file) {
        let Some(contents) = read(&*file, &moment.left_by_a_kill(), BOOT) else { continue };
        taken += 1;
        file.take_done();
        contents.empty(&*file, BOOT, CAPACITY).unwrap();
        for did in file.take_done() {
            moment.goes_on(did);
            for left in moment.left_by_power_losses() {
                read(&*file, &left, NEXT_BOOT);
            }
        }
    }
    assert!(taken > 4, "{taken}");
}

/// A store through a mapping to a hole of the file, on a full device, is a signal, and not an error.
#[test]
fn entries_go_through_a_mapping_only_where_the_file_has_its_storage() {
    let directory = tempfile::tempdir().unwrap();
    for (name, has_storage) in [("whole", true), ("holes", false)] {
        let path = directory.path().join(name);
        let file = crate::environment::RealFiles.open(&path, OpenMode::CreateNew).unwrap();
        let file = Staged::new(file);
        Journal::format(&*file, 7, 99, CAPACITY, BOOT).unwrap();
        file.refuses_storage.store(!has_storage, Ordering::Relaxed);
        let environment = Arc::new(SteppedEnvironment::in_memory(1));
        let journal = Journal::open(file.clone(), CAPACITY, GROUP, environment).unwrap();
        file.take_done();
        journal.mark(Extent::new_checked(128, 64));
        journal.append(|_, into| into.fill(3));
        assert_eq!(file.take_done().is_empty(), has_storage, "{name}");
        let mut line = [0; 64];
        let contents = Contents::read(&*file, BOOT, &no_data).unwrap().unwrap();
        contents.lines().put_over(128..192, &mut line);
        assert_eq!(line, [3; 64], "{name}");
    }
}

const COPIES: [u64; 2] = [3 * 4096 + 128, 3 * 4096 + 2048];

fn kept(file: &Arc<dyn File>) -> Option<MarkState> {
    Mark::read(file.clone(), COPIES).unwrap().1.unwrap()
}

#[test]
fn of_two_copies_of_a_mark_the_later_one_is_believed() {
    let (_, file) = file();
    file.allocate(0, 4 * 4096).unwrap();
    let file: Arc<dyn File> = file;
    let mut mark = Mark::read(file.clone(), COPIES).unwrap().0;
    let used = |journal_id, position| MarkState::Used { journal_id, position, tail: position };
    let mut before = None;
    for now in [used(9, 800), MarkState::Unused, used(3, 80), used(3, 160), MarkState::Unused] {
        let read = |at| {
            let mut bytes = [0; 32];
            file.read_at(at, &mut bytes).unwrap();
            bytes
        };
        let old = COPIES.map(read);
        mark.keep(now).unwrap();
        let new = COPIES.map(read);
        for (copy, at) in COPIES.into_iter().enumerate() {
            // As a crash between the copies leaves it.
            file.write_at(at, &old[copy]).unwrap();
            assert_eq!(kept(&file), Some(now), "after {before:?}, copy {copy} is old");
            file.write_at(at, &new[copy]).unwrap();
        }
        before = Some(now);
    }
}

#[test]
fn the_tail_beside_a_mark_is_kept_through_a_mapping_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let file = crate::environment::RealFiles.open(&path, OpenMode::CreateNew).unwrap();
    file.allocate(0, 8 * 4096).unwrap();
    assert!(file.descriptor().is_some());
    let pool = Pool::create(GROUP);
    let journal = pool.journal();
    journal.keep_mark(Mark::read(file.clone(), COPIES).unwrap().0).unwrap();
    for number in 0..3 {
        pool.put(number * 64, 1);
        let (position, tail) = (journal.start_at(), journal.tail_at());
        assert_eq!(kept(&file), Some(MarkState::Used { journal_id: 99, position, tail }));
    }
    let mut bytes = vec![0; 8 * 4096];
    file.read_at(0, &mut bytes).unwrap();
    for (at, length) in [(COPIES[0], 32), (COPIES[1], 32), (COPIES[0] + 64, 16)] {
        bytes[at as usize..at as usize + length].fill(0);
    }
    assert!(bytes.iter().all(|byte| *byte == 0), "something else of the file was changed");
}
