//! Every protocol, crashed after each of its stores and fences, with every combination of what may have been
//! written back; and each step left out in turn, to see that this is noticed.

use chimera_pmem::Site;

use super::*;
use crate::pool::tests::media::{LeftOut, Photo, bytes_of};

/// What an engine does.
#[derive(Clone, Copy, Debug)]
enum Do {
    Take(BlockKind, u32),
    /// Frees the run that begins at this block.
    Free(u64),
}

use Do::{Free, Take};

/// Histories that go through every protocol.
const HISTORIES: [&[Do]; 8] = [
    // Fresh, freed, given back.
    &[Take(LOG, 1), Take(TABLE, 3), Free(1), Free(0)],
    // Freed in the other order: two are given back at once, and their blocks are taken again.
    &[Take(LOG, 2), Take(TABLE, 3), Free(0), Free(2), Take(LOG, 1), Take(LOG, 4)],
    // Split, and the rest taken whole.
    &[Take(LOG, 5), Take(LOG, 1), Free(0), Take(TABLE, 2), Take(TABLE, 3), Free(2), Free(0)],
    // Merged with the free run before, behind, and both.
    &[Take(LOG, 2), Take(LOG, 2), Take(TABLE, 2), Take(LOG, 1), Free(0), Free(2), Free(4)],
    &[Take(LOG, 2), Take(LOG, 2), Take(TABLE, 2), Take(LOG, 1), Free(2), Free(0)],
    &[Take(LOG, 2), Take(LOG, 2), Take(TABLE, 2), Take(LOG, 1), Free(4), Free(0), Free(2), Free(6)],
    // The rest of a segment, used later, and given back with what is behind it.
    &[Take(LOG, 13), Take(TABLE, 4), Take(LOG, 2), Free(13), Free(16), Take(TABLE, 4), Free(16)],
    // Given back across the end of a segment.
    &[Take(LOG, 13), Take(TABLE, 4), Free(0), Free(16), Take(LOG, 9)],
];

/// A run behind two that stay free for the reserve, given back with them and taken again; then the reserve is in use.
const BEHIND_THE_RESERVE: &[Do] = &[Take(LOG, 2), Free(48), Take(TABLE, 2), Free(0), Free(16)];

/// An engine that does what it is told.
struct Engine {
    pool: Pool<Media>,
    runs: Vec<(Run, u64)>,
    /// What is prepared in the next run.
    mark: u64,
}

impl Engine {
    fn new() -> Self {
        let pool = new_pool();
        // Growth has its own argument; the second segment is added while runs are taken.
        pool.grow_beyond(0).unwrap();
        Self { pool, runs: Vec::new(), mark: MARK }
    }

    fn with_reserve() -> Self {
        let (pool, runs) = pool_with_reserve();
        for run in &runs {
            fill(&pool, run);
        }
        Self { pool, runs: runs.map(|run| (run, MARK)).into(), mark: MARK }
    }

    fn act(&mut self, what: Do) {
        match what {
            Take(kind, blocks) => {
                self.mark += 1;
                let run = take_marked(&self.pool, kind, blocks, self.mark).unwrap();
                self.runs.push((run, self.mark));
            }
            Free(first) => {
                let begins = |(run, _): &(Run, u64)| run.first == first;
                let index = self.runs.iter().position(begins).expect("a run begins there");
                // Whether damage of the word is reported or what was left out leads to it.
                drop(self.pool.free_run(self.runs.swap_remove(index).0));
            }
        }
    }

    /// Does one thing and looks at every crash in it.
    fn crash_in(&mut self, what: Do) -> Result<(), String> {
        let before = held(&self.runs);
        let media = self.pool.pmem.clone();
        let mut photos = vec![media.photo()];
        let ((), taken) = media.photograph(|| self.act(what));
        photos.extend(taken);
        let after = held(&self.runs);
        let expected = [before, after.clone()];
        for photo in &photos {
            check_photo(photo, &expected)?;
            check_killed(&media, photo, &expected)?;
        }
        check_photo(&media.photo(), &[after.clone(), after])?;
        // What the engine writes to its bytes is no word of a block.
        if let Take(..) = what {
            fill(&self.pool, &self.runs.last().expect("just taken").0);
        }
        Ok(())
    }
}

/// What may be found after a crash: one of these is in use.
type Expected = [Held; 2];

/// All states of a photograph, or all of the largest part of it that is possible when a step is left out.
fn check_photo(photo: &Photo, expected: &Expected) -> Result<(), String> {
    let states = photo.states().ok_or("too much may be missing to try all states")?;
    states.into_iter().try_for_each(|state| check_state(&state, expected))
}

/// Checks that a set of runs in use is what is expected.
fn check_held(found: &Held, expected: &Expected) -> Result<(), String> {
    if expected.contains(found) {
        return Ok(());
    }
    Err(format!("{found:?} are in use instead of one of {expected:?}"))
}

/// Opens what a crash left, checks it, crashes again in each step of recovery, and uses the pool up.
fn check_state(state: &[u64], expected: &Expected) -> Result<(), String> {
    let (pool, photos) = recover_state(state, expected)?;
    for photo in photos {
        let states = photo.states().ok_or("recovery leaves too many states")?;
        for again in states {
            recover_state(&again, expected)?;
        }
    }
    let mut runs = pool.1;
    let pool = pool.0;
    // Taken beside them: nothing that is in use.
    let run = take(&pool, TABLE, 2).map_err(|error| error.to_string())?;
    runs.push((run, MARK));
    check_free(&pool, &held(&runs))?;
    for (run, _) in runs {
        pool.free_run(run).map_err(|error| error.to_string())?;
    }
    match pool.used_blocks() {
        0 => Ok(()),
        used => Err(format!("{used} blocks are lost")),
    }
}

type Recovered = (Pool<Media>, Vec<(Run, u64)>);

/// Opens what a crash left, with the photographs of that, and checks it.
fn recover_state(state: &[u64], expected: &Expected) -> Result<(Recovered, Vec<Photo>), String> {
    let media = Media::default();
    let pool =
        open_with(&media, &bytes_of(state), &options()).map_err(|error| error.to_string())?;
    let (found, photos) = media.photograph(|| recover(&pool));
    let runs = found.map_err(|error| error.to_string())?;
    check_held(&held(&runs), expected)?;
    check_free(&pool, &held(&runs))?;
    Ok(((pool, runs), photos))
}

/// The process is killed and the machine goes on. Once the next process has recovered, a power loss takes
/// nothing that it found.
fn check_killed(media: &Media, photo: &Photo, expected: &Expected) -> Result<(), String> {
    let states = photo.states().ok_or("too many states")?;
    // The last one: everything that was stored.
    let Some(seen) = states.into_iter().last() else { return Ok(()) };
    let next = Media::default();
    next.leave_out(media.left_out());
    let pool = open_with(&next, &bytes_of(&seen), &options()).map_err(|error| error.to_string())?;
    next.was_killed(photo.clone());
    let found = held(&recover(&pool).map_err(|error| error.to_string())?);
    check_held(&found, expected)?;
    check_photo(&next.photo(), &[found.clone(), found])
}

/// Plays all histories with something left out.
fn play(left_out: Option<LeftOut>) -> Result<(), String> {
    let all = HISTORIES.into_iter().map(|history| (Engine::new(), history));
    for (mut engine, history) in all.chain([(Engine::with_reserve(), BEHIND_THE_RESERVE)]) {
        engine.pool.pmem.leave_out(left_out);
        for what in history {
            engine.crash_in(*what).map_err(|error| format!("{what:?} of {history:?}: {error}"))?;
        }
    }
    Ok(())
}

#[test]
fn no_crash_loses_or_invents_a_run() {
    play(None).unwrap();
}

#[test]
fn whatever_is_left_out_is_noticed() {
    let each = |site: Site| [LeftOut::Store(site), LeftOut::Flush(site), LeftOut::Fence(site)];
    let mut all: Vec<_> = sites::ALL.iter().copied().flat_map(each).collect();
    // Where there is nothing to store, to write back or to wait for.
    let nothing = [
        LeftOut::Store(sites::RUN_FOUND),
        LeftOut::Store(sites::RUN_READY),
        LeftOut::Flush(sites::RUN_READY),
        LeftOut::Fence(sites::RUN_FRESH),
        LeftOut::Fence(sites::RUN_REST),
    ];
    all.retain(|left_out| !nothing.contains(left_out));
    let unnoticed: Vec<_> = all.into_iter().filter(|what| play(Some(*what)).is_ok()).collect();
    assert_eq!(unnoticed, []);
}
