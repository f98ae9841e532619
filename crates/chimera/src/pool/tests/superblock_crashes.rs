//! The superblock, crashed after each store and fence of its creation and of its changes, with every
//! combination of what may have been written back; and each step left out in turn, to see that this is noticed.

use chimera_pmem::SteppedEnvironment;

use super::media::{LeftOut, Media, Photo};
use super::*;
use crate::pool::copies::find_superblock;
use crate::pool::superblock::{COPY_STRIDE, FILE_BYTES, WORDS};

/// Lengths of areas: none, part of a line, a whole line.
const AREAS: [u64; 3] = [0, 3, 6];

const WORDS_MAPPED: usize = (FILE_BYTES / 8) as usize;
const COPY_WORDS: usize = (COPY_STRIDE / 8) as usize;

fn superblock_with(area_words: u64) -> Superblock {
    Superblock { area: (11..11 + area_words).collect(), ..new_superblock() }
}

/// Makes a pool, without a segment.
fn create(media: &Media, area_words: u64) -> Pool<Media> {
    let environment = Arc::new(SteppedEnvironment::in_memory(1));
    let new = || Ok(NewPool { superblock: superblock_with(area_words), is_segment_fixed: true });
    let options = PoolOptions { populate_ahead_bytes: 0, ..options() };
    Pool::open(media.clone(), environment, Path::new("pool"), &options, new).unwrap().0
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

/// Crashes in all changes, with something left out.
fn play(left_out: Option<LeftOut>) -> Result<(), String> {
    for area_words in AREAS {
        let media = Media::default();
        let pool = create(&media, area_words);
        media.leave_out(left_out);
        // One copy each.
        crash_in(&pool, || pool.change_superblock(|superblock| superblock.segments = 1))?;
        crash_in(&pool, || pool.change_superblock(|superblock| superblock.boot_id = 5))?;
        for round in 1..=3 {
            let roots = [round, 0, round << 40, u64::MAX - round];
            let after = crash_in(&pool, || pool.replace_roots(|into| *into = roots))?;
            assert_eq!((after.roots, after.area), (roots, superblock_with(area_words).area));
            check_alone(&media, &content(&pool.superblock()))?;
        }
    }
    Ok(())
}

#[test]
fn a_crash_in_creation_leaves_nothing_or_the_superblock() {
    for area_words in AREAS {
        let media = Media::default();
        let (pool, photos) = media.photograph(|| create(&media, area_words));
        let new = superblock_with(area_words);
        let mut nothing = 0;
        for state in photos.iter().flat_map(|photo| photo.states().expect("few states")) {
            assert_eq!(state.len(), WORDS_MAPPED);
            match found_in(&media, &state, true) {
                Ok(None) => nothing += 1,
                found => assert_eq!(found.unwrap(), Some(new.clone())),
            }
        }
        assert!(nothing > 500, "only {nothing} states of an incomplete superblock");
        check(&media, &media.photo(), &[content(&pool.superblock())]).unwrap();
    }
}

#[test]
fn a_crash_leaves_old_roots_or_new_ones() {
    play(None).unwrap();
}

#[test]
fn what_is_left_out_of_a_change_is_noticed() {
    let site = sites::SUPERBLOCK;
    let steps = [steps::SUPERBLOCK_CHECK, steps::SUPERBLOCK_NEWER].map(LeftOut::Step);
    let all = [LeftOut::Store(site), LeftOut::Flush(site), LeftOut::Fence(site)];
    for what in all.into_iter().chain(steps) {
        assert!(play(Some(what)).is_err(), "{what:?}");
    }
}

#[test]
fn replacing_roots_costs_two_changes() {
    for (area_words, lines) in [(0, 3), (3, 3), (6, 3), (7, 4), (30, 6)] {
        let pool = create(&Media::default(), area_words);
        let before = pool.pmem.counts();
        pool.replace_roots(|roots| roots[0] = 1);
        let after = pool.pmem.counts();
        assert_eq!((after.0 - before.0, after.1 - before.1), (2 * lines, 2));
    }
}
