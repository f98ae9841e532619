//! Which files are written and synced: a journal's own, data files, the mark.

use super::staged::{Asked, Stage, Staged, put_lines};
use super::*;
use crate::environment::RealFiles;

#[test]
fn lines_go_to_the_data_files_that_they_lie_in_and_only_these_are_synced() {
    let stage = Stage::new(GROUP);
    let files = [(0, 128), (4096, 4096), (8192, 0)]
        .map(|(at, file_offset)| stage.add_data(at, file_offset, 4096));
    let journal = &stage.journal;
    let synced = |first, count| {
        put_lines(journal, first, count);
        journal.checkpoint().unwrap();
        files.each_ref().map(|file| file.asked().contains(&Asked::Sync))
    };
    assert_eq!(synced(0, 1), [true, false, false]);
    assert_eq!(synced(63, 1), [true, false, false], "up to the end of the first");
    assert_eq!(synced(64, 1), [false, true, false], "from the start of the second");
    assert_eq!(synced(66, 1), [false, true, false]);
    assert_eq!(synced(127, 2), [false, true, true], "across");
    for (number, at, line) in
        [(0, 128, 0), (0, 128 + 63 * 64, 63), (1, 4096, 64), (1, 4224, 66), (2, 0, 128)]
    {
        let mut bytes = [0; 64];
        files[number].read_at(at, &mut bytes).unwrap();
        assert_eq!(bytes, [line; 64], "line {line}");
    }
}

#[test]
fn a_line_of_no_data_file_fails_the_checkpoint() {
    let stage = Stage::new(GROUP);
    stage.add_data(0, 0, 4096);
    put_lines(&stage.journal, 63, 2);
    assert_eq!(stage.journal.checkpoint().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    assert_eq!(stage.journal.pending_bytes(), 168, "it is still in the journal");
}

#[test]
fn a_journal_has_a_header_before_it_has_anything_else() {
    let inner = MemoryFiles::new().open(Path::new("journal"), OpenMode::CreateNew).unwrap();
    let file = Staged::new(inner);
    Journal::format(&*file, 7, 99, CAPACITY, BOOT).unwrap();
    assert_eq!(
        file.asked()[..4],
        [Asked::Allocate, Asked::Write(0), Asked::Sync, Asked::Write(DATA_AT)]
    );
}

#[test]
fn other_capacities_are_refused() {
    let file = MemoryFiles::new().open(Path::new("journal"), OpenMode::CreateNew).unwrap();
    for capacity in [0, CAPACITY - 4096, CAPACITY + 8, (1 << 30) + 4096] {
        let error = Journal::format(&*file, 7, 99, capacity, BOOT).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(file.length().unwrap(), 0, "nothing was made");
    }
}

#[test]
fn a_journal_is_mapped_unless_it_may_lack_storage() {
    let directory = tempfile::tempdir().unwrap();
    let inner = RealFiles.open(&directory.path().join("journal"), OpenMode::CreateNew).unwrap();
    Journal::format(&*inner, 7, 99, CAPACITY, BOOT).unwrap();
    let open = |file| Journal::open(file, GROUP, Arc::new(SteppedEnvironment::new(1))).unwrap();
    assert!(open(inner.clone()).ring.is_some());
    let full = Staged::new(inner);
    full.hook(|asked| match asked {
        Asked::Allocate => Err(io::ErrorKind::StorageFull.into()),
        _ => Ok(()),
    });
    assert!(open(full).ring.is_none());
}

#[test]
fn a_mapped_tail_says_where_the_last_entry_ended() {
    let directory = tempfile::tempdir().unwrap();
    let data = RealFiles.open(&directory.path().join("data"), OpenMode::CreateNew).unwrap();
    data.allocate(0, 4 * 4096).unwrap();
    let copies = [2 * 4096 + 512, 3 * 4096];
    let stage = Stage::new(GROUP);
    stage.journal.keep_mark(Mark::read(data.clone(), copies).unwrap().0).unwrap();
    stage.put(1);
    let kept = Mark::read(data, copies).unwrap().1.unwrap();
    assert_eq!(kept, Some(Kept::Used { journal_id: 99, position: 0, tail: 104 }));
}

#[test]
fn of_two_copies_of_a_mark_the_later_one_counts() {
    let file = MemoryFiles::new().open(Path::new("data"), OpenMode::CreateNew).unwrap();
    file.set_length(4096).unwrap();
    let copies = [0, 1024];
    let mut mark = Mark::read(file.clone(), copies).unwrap().0;
    mark.keep(Kept::Used { journal_id: 99, position: 8, tail: 8 }).unwrap();
    let mut earlier = [0; 32];
    file.read_at(copies[1], &mut earlier).unwrap();
    mark.keep(Kept::Unused).unwrap();
    file.write_at(copies[1], &earlier).unwrap();
    assert_eq!(Mark::read(file, copies).unwrap().1.unwrap(), Some(Kept::Unused));
}
