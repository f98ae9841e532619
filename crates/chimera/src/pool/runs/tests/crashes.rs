//! Every protocol, crashed after each of its stores and fences, with every combination of what may have been
//! written back; and each step left out in turn, to see that this is noticed.

use chimera_pmem::Site;

use super::*;
use crate::pool::tests::media::{ENGINE, LeftOut, Photo, bytes_of};

/// What an engine does.
#[derive(Clone, Copy, Debug)]
enum Do {
    Take(BlockKind, u32),
    /// Frees the run that begins at this block.
    Free(u64),
    Flag(u64, u8),
    /// Takes a single block and marks it, without a fence.
    TakeSingle,
    /// Fences what was done to single blocks.
    FenceSingles,
    /// Gives back the single block that is the last one.
    GiveBackSingle(u64),
}

use Do::{FenceSingles, Flag, Free, GiveBackSingle, Take, TakeSingle};

/// Flags of single blocks.
const SINGLE: u8 = 4;

/// Histories that go through every protocol.
const HISTORIES: [&[Do]; 10] = [
    // Fresh, freed, given back.
    &[Take(LOG, 1), Take(TABLE, 3), Free(1), Free(0)],
    // Freed in the other order: two become free at once, then one run of both is given back.
    &[Take(LOG, 2), Take(TABLE, 3), Free(0), Free(2), Take(LOG, 1)],
    // Split, and the rest taken whole.
    &[Take(LOG, 5), Take(LOG, 1), Free(0), Take(TABLE, 2), Take(TABLE, 3), Free(2), Free(0)],
    // Merged with the free run before, behind, and both.
    &[Take(LOG, 2), Take(LOG, 2), Take(TABLE, 2), Take(LOG, 1), Free(0), Free(2), Free(4)],
    &[Take(LOG, 2), Take(LOG, 2), Take(TABLE, 2), Take(LOG, 1), Free(2), Free(0)],
    &[Take(LOG, 2), Take(LOG, 2), Take(TABLE, 2), Take(LOG, 1), Free(4), Free(0), Free(2), Free(6)],
    // The rest of a segment, used later, and given back with what is behind it.
    &[Take(LOG, 13), Take(TABLE, 4), Take(LOG, 2), Free(13), Free(16), Take(TABLE, 4), Free(16)],
    // Flags.
    &[Take(LOG, 2), Flag(0, 9), Flag(0, 0), Free(0)],
    // Single blocks beside runs.
    &[Take(LOG, 3), Free(0), TakeSingle, FenceSingles, Take(LOG, 2), TakeSingle, Take(TABLE, 2)],
    &[TakeSingle, FenceSingles, Take(LOG, 2), TakeSingle, Free(1), FenceSingles, GiveBackSingle(3)],
];

/// What may be found after a crash.
#[derive(Clone, Debug, Default)]
struct Expected {
    /// One of these is in use.
    either: [Held; 2],
    /// Single blocks that may be in use, or not yet.
    unsettled: Vec<u64>,
    /// Whether single blocks were ever used, which may leave marks behind the used blocks.
    is_mixed: bool,
}

/// An engine that does what it is told.
struct Engine {
    pool: Pool<Media>,
    runs: Vec<(Run, u8)>,
    singles: Vec<u64>,
    unsettled: Vec<u64>,
    is_mixed: bool,
}

impl Engine {
    fn new() -> Self {
        let pool = new_pool();
        // Growth has its own argument; the second segment is added while runs are taken.
        pool.grow_beyond(0).unwrap();
        Self { pool, runs: Vec::new(), singles: Vec::new(), unsettled: Vec::new(), is_mixed: false }
    }

    fn held(&self) -> Held {
        let singles = self.singles.iter().map(|&block| (block, (1, 0, SINGLE)));
        held(&self.runs).into_iter().chain(singles).collect()
    }

    fn index_of(&self, first: u64) -> usize {
        self.runs.iter().position(|(run, _)| run.first == first).expect("a run begins there")
    }

    fn act(&mut self, what: Do) {
        let pool = &self.pool;
        match what {
            Take(kind, blocks) => {
                let run = pool.take_run(kind, blocks).unwrap();
                self.runs.push((run, 0));
            }
            Free(first) => {
                let (run, _) = self.runs.swap_remove(self.index_of(first));
                // Whether damage of the word is reported or what was left out leads to it.
                drop(self.pool.free_run(run));
            }
            Flag(first, flags) => {
                let index = self.index_of(first);
                self.pool.set_run_flags(&self.runs[index].0, flags);
                self.runs[index].1 = flags;
            }
            TakeSingle => {
                let block = pool.take_block().unwrap();
                pool.store_block_word(block, BlockWord::single(SINGLE.into()), ENGINE);
                self.unsettled.push(block);
                self.is_mixed = true;
            }
            FenceSingles => {
                pool.pmem.fence(ENGINE);
                self.singles.append(&mut self.unsettled);
            }
            GiveBackSingle(block) => {
                let clear = || {
                    pool.store_block_word(block, BlockWord::single(0), ENGINE);
                    pool.pmem.fence(ENGINE);
                    Ok(())
                };
                assert!(pool.give_back(block, clear));
                self.singles.retain(|single| *single != block);
            }
        }
    }

    /// Does one thing and looks at every crash in it.
    fn crash_in(&mut self, what: Do) -> Result<(), String> {
        let before = self.held();
        let mut unsettled = self.unsettled.clone();
        if let GiveBackSingle(block) = what {
            // In use and without its mark.
            unsettled.push(block);
        }
        let media = self.pool.pmem.clone();
        let mut photos = vec![media.photo()];
        let ((), taken) = media.photograph(|| self.act(what));
        photos.extend(taken);
        let after = self.held();
        unsettled.extend(&self.unsettled);
        let is_mixed = self.is_mixed;
        let mut expected = Expected { either: [before, after.clone()], unsettled, is_mixed };
        for photo in &photos {
            check_photo(photo, &expected)?;
            check_killed(&media, photo, &expected)?;
        }
        expected.either = [after.clone(), after];
        expected.unsettled.clone_from(&self.unsettled);
        let end = media.photo();
        check_photo(&end, &expected)?;
        // What the engine writes to its bytes is no word of a block.
        if let Take(..) = what {
            fill(&self.pool, &self.runs.last().expect("just taken").0);
        }
        Ok(())
    }
}

/// All states of a photograph, or all of the largest part of it that is possible when a step is left out.
fn check_photo(photo: &Photo, expected: &Expected) -> Result<(), String> {
    let states = photo.states().ok_or("too much may be missing to try all states")?;
    states.into_iter().try_for_each(|state| check_state(&state, expected))
}

/// Checks that a set of runs in use is what is expected.
fn check_held(found: &Held, expected: &Expected) -> Result<(), String> {
    let is_settled = |first: &u64| !expected.unsettled.contains(first);
    let settled =
        |held: &Held| held.clone().into_iter().filter(|(first, _)| is_settled(first)).collect();
    let found_settled: Held = settled(found);
    for first in found.keys().filter(|first| !is_settled(first)) {
        let (blocks, code, _) = found[first];
        if (blocks, code) != (1, 0) {
            return Err(format!("a single block is {:?}", found[first]));
        }
    }
    if expected.either.iter().any(|held| found_settled == settled(held)) {
        return Ok(());
    }
    Err(format!("{found:?} are in use instead of one of {:?}", expected.either))
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
    let run = pool.take_run(TABLE, 2).map_err(|error| error.to_string())?;
    runs.push((run, 0));
    check_free(&pool, &held(&runs))?;
    for (run, _) in runs {
        pool.free_run(run).map_err(|error| error.to_string())?;
    }
    match pool.used_blocks() {
        0 => Ok(()),
        used => Err(format!("{used} blocks are lost")),
    }
}

type Recovered = (Pool<Media>, Vec<(Run, u8)>);

/// Opens what a crash left, with the photographs of that, and checks it.
fn recover_state(state: &[u64], expected: &Expected) -> Result<(Recovered, Vec<Photo>), String> {
    let media = Media::default();
    let pool =
        open_with(&media, &bytes_of(state), &options()).map_err(|error| error.to_string())?;
    let (found, photos) = media.photograph(|| recover(&pool));
    let runs = found.map_err(|error| error.to_string())?;
    check_held(&held(&runs), expected)?;
    check_free(&pool, &held(&runs))?;
    if expected.is_mixed {
        check_behind_mixed(&pool)?;
    } else {
        check_behind(&pool)?;
    }
    Ok(((pool, runs), photos))
}

/// As `check_behind`, where users of single blocks may not have lived to see their first fence.
fn check_behind_mixed(pool: &Pool<Media>) -> Result<(), String> {
    let used = pool.used_blocks();
    for block in used..pool.superblock().segments * PER_SEGMENT {
        let word = pool.pmem.load_u64(pool.map.block_at(block));
        let is_mark = block > used && word == BlockWord::single(SINGLE.into()).encode();
        if word != 0 && !is_mark {
            return Err(format!("the word of block {block} behind the used ones is {word:#x}"));
        }
    }
    Ok(())
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
    let expected = Expected { either: [found.clone(), found], ..expected.clone() };
    check_photo(&next.photo(), &expected)
}

/// Plays all histories with something left out.
fn play(left_out: Option<LeftOut>) -> Result<(), String> {
    for history in HISTORIES {
        let mut engine = Engine::new();
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
    // There is nothing to store there.
    all.retain(|left_out| *left_out != LeftOut::Store(sites::RUN_FOUND));
    all.push(LeftOut::Step(steps::RUN_BEHIND));
    let unnoticed: Vec<_> = all.into_iter().filter(|what| play(Some(*what)).is_ok()).collect();
    assert_eq!(unnoticed, []);
}
