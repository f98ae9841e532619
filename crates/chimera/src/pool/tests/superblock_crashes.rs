//! The superblock, crashed after each store and fence of its creation and of its changes, with every
//! combination of what may have been written back; and each step left out in turn, to see that this is noticed.

use chimera_pmem::SteppedEnvironment;

use super::media::{LeftOut, Media, Photo};
use super::*;
use crate::pool::copies::find_superblock;
use crate::pool::superblock::{COPY_STRIDE, FILE_BYTES, WORDS};

/// Lengths of areas: none, part of a line, a whole line.
const AREAS: [u64; 3] = [0, 2, 3];

const WORDS_MAPPED: usize = (FILE_BYTES / 8) as usize;
const COPY_WORDS: usize = (COPY_STRIDE / 8) as usize;

fn superblock_with(area_words: u64) -> Superblock {
    Superblock { area: (11..11 + area_words).collect(), ..new_superblock() }
}

/// Makes a pool, without a segment.
fn create(media: &Media, area_words: u64) -> Pool<Media> {
    create_over(media, &[0; WORDS_MAPPED], area_words)
}

/// As [`create`], where the superblock's file has these words.
fn create_over(media: &Media, words: &[u64], area_words: u64) -> Pool<Media> {
    let environment = Arc::new(SteppedEnvironment::in_memory(1));
    environment.create_directory(Path::new("pool")).unwrap();
    for (name, bytes) in [("lock", &[][..]), ("superblock", &media::bytes_of(words))] {
        let file = environment.open(&Path::new("pool").join(name), OpenMode::CreateNew).unwrap();
        file.write_at(0, bytes).unwrap();
    }
    let new = || Ok(NewPool { superblock: superblock_with(area_words), is_segment_fixed: true });
    let options = PoolOptions { populate_ahead_bytes: Some(0), ..options() };
    let opened = Pool::open(media.clone(), environment, Path::new("pool"), &options, new);
    let (pool, Opened { created, .. }) = opened.unwrap();
    assert!(created, "what was there is no pool");
    pool
}

/// The superblock in force in these words.
fn found_in(media: &Media, state: &[u64], may_be_half_made: bool) -> Result<Option<Superblock>> {
    find_superblock(&|step| media.skips(step), &|at| state[(at / 8) as usize], may_be_half_made)
}

/// What matters: all but the number of the update.
fn content(superblock: &Superblock) -> Superblock {
    Superblock { sequence: 0, ..superblock.clone() }
}

/// Checks that every state of a photograph has one of these superblocks, whole.
fn check(media: &Media, photo: &Photo, either: &[Superblock]) -> Result<(), String> {
    for state in photo.states().ok_or("too much may be missing to try all states")? {
        let found = found_in(media, &state, false).map_err(|error| error.to_string())?;
        let found = found.ok_or("none is found")?;
        if !either.contains(&content(&found)) {
            return Err(format!("{found:?} instead of one of {either:?}"));
        }
    }
    Ok(())
}

/// Checks that either copy alone has this superblock, whatever a crash leaves.
fn check_alone(media: &Media, superblock: &Superblock) -> Result<(), String> {
    let photo = media.photo();
    for state in photo.states().ok_or("too much may be missing to try all states")? {
        for copy in [0, COPY_WORDS] {
            let mut state = state.clone();
            state[copy..copy + WORDS].fill(u64::MAX);
            let found = found_in(media, &state, false).map_err(|error| error.to_string())?;
            if found.as_ref().map(content).as_ref() != Some(superblock) {
                return Err(format!("{found:?} in one copy instead of {superblock:?}"));
            }
        }
    }
    Ok(())
}

/// Checks a change: a crash in it leaves what was before or what is after, one behind it the latter.
fn crash_in(pool: &Pool<Media>, change: impl FnOnce()) -> Result<Superblock, String> {
    let media = &pool.pmem;
    let before = content(&pool.superblock());
    let ((), photos) = media.photograph(change);
    let after = content(&pool.superblock());
    assert_ne!(before, after, "the change changes something");
    let either = [before, after.clone()];
    photos.iter().try_for_each(|photo| check(media, photo, &either))?;
    check(media, &media.photo(), std::slice::from_ref(&after))?;
    Ok(after)
}

/// Changes words in both copies, as closing does.
fn change_both(pool: &Pool<Media>, words: [u64; 2]) {
    pool.change_superblock(|superblock| superblock.closed_words = words);
    pool.change_superblock(|_| {});
}

/// Crashes in all changes, with something left out.
fn play(left_out: Option<LeftOut>) -> Result<(), String> {
    for area_words in AREAS {
        let media = Media::default();
        let pool = create(&media, area_words);
        pool.mark_open().unwrap();
        media.leave_out(left_out);
        // One copy each.
        crash_in(&pool, || pool.change_superblock(|superblock| superblock.segments = 1))?;
        crash_in(&pool, || pool.change_superblock(|superblock| superblock.boot_id = 5))?;
        for round in 1..=3 {
            let words = [round << 40, u64::MAX - round];
            let after = crash_in(&pool, || change_both(&pool, words))?;
            assert_eq!((after.closed_words, after.area), (words, superblock_with(area_words).area));
            check_alone(&media, &content(&pool.superblock()))?;
        }
    }
    Ok(())
}

/// Makes a pool over these words and marks it as open, and checks what a crash in that leaves: nothing, or in the end the
/// pool. Some of the states in which it is nothing: for each step two, and so many others.
fn crash_in_creation(words: &[u64], area_words: u64, others: usize) -> Vec<Vec<u64>> {
    let media = Media::default();
    let (pool, photos) = media.photograph(|| create_over(&media, words, area_words));
    let states = |photos: &[Photo]| -> Vec<_> {
        photos.iter().zip(0..).flat_map(|(photo, seed)| photo.some_states(others, seed)).collect()
    };
    let mut nothing = states(&photos);
    for state in &nothing {
        assert_eq!(state.len(), WORDS_MAPPED);
        assert_eq!(found_in(&media, state, true).unwrap(), None);
    }
    let ((), photos) = media.photograph(|| pool.mark_open().unwrap());
    let marked = content(&superblock_with(area_words));
    for state in states(&photos) {
        match found_in(&media, &state, true).unwrap() {
            None => nothing.push(state),
            Some(found) => {
                assert!(matches!(found.sequence, 1 | 2));
                assert_eq!(content(&found), marked);
                let words = USED_BLOCKS_AT.map(|at| (state[(at / 8) as usize], at));
                assert!(words.iter().all(|&(word, at)| word == checked_word::encode_at(0, at)));
            }
        }
    }
    check(&media, &media.photo(), &[content(&pool.superblock())]).unwrap();
    nothing
}

#[test]
fn a_crash_in_creation_leaves_nothing_or_the_superblock() {
    for area_words in [0, 2, 3, 30] {
        let nothing = crash_in_creation(&[0; WORDS_MAPPED], area_words, 8);
        assert!(nothing.len() > 500, "only {} states", nothing.len());
    }
}

/// Whatever the engine of either is, and however often.
#[test]
fn a_crash_in_creation_is_in_the_way_of_no_other_creation() {
    for [first, second, third] in [[3, 0, 2], [30, 2, 30]] {
        for state in crash_in_creation(&[0; WORDS_MAPPED], first, 1).iter().step_by(389) {
            for state in crash_in_creation(state, second, 1).iter().step_by(797) {
                crash_in_creation(state, third, 1);
            }
        }
    }
}

#[test]
fn a_crash_leaves_the_old_words_or_the_new_ones() {
    play(None).unwrap();
}

#[test]
fn what_is_left_out_of_a_change_is_noticed() {
    let site = sites::SUPERBLOCK;
    let check = LeftOut::Step(steps::SUPERBLOCK_CHECK);
    for what in [LeftOut::Store(site), LeftOut::Flush(site), LeftOut::Fence(site), check] {
        assert!(play(Some(what)).is_err(), "{what:?}");
    }
}

#[test]
fn changing_both_copies_costs_two_changes() {
    for (area_words, lines) in [(0, 3), (3, 3), (4, 4), (11, 4), (30, 7)] {
        let pool = create(&Media::default(), area_words);
        let before = pool.pmem.counts();
        change_both(&pool, [1, 0]);
        let after = pool.pmem.counts();
        assert_eq!((after.0 - before.0, after.1 - before.1), (2 * lines, 2));
    }
}
