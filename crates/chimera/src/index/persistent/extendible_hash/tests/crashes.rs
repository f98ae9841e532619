//! Crashes after each store and fence, with many combinations of what may have been written back; and each step left out
//! in turn, to see that this is noticed.

use super::*;
use crate::pool::tests::media::{ENGINE, LeftOut, Photo, bytes_of};

/// Hash and position of each entry.
type Model = BTreeMap<u64, u64>;

#[derive(Clone, Copy, Debug)]
enum Do {
    Insert(u64),
    Swap(u64, u64),
    Remove(u64),
}

use Do::{Insert, Remove, Swap};

/// Steps at the begin and at the end of each change in which crashes are all looked at.
const SOME: usize = 24;
/// Entries that are made before crashes are looked at, and in all.
const FIRST: u64 = 12;
const ENTRIES: u64 = 44;

/// Entries are made until there are several segments, swapped and removed.
fn history() -> Vec<Do> {
    let mut history = Vec::new();
    for number in 0..ENTRIES {
        history.push(Insert(number));
        if number % 12 == 11 {
            history.extend([Swap(number - 2, 1000 + number), Remove(number - 3)]);
        }
    }
    history
}

struct Run {
    media: Media,
    pool: Arc<Pool<Media>>,
    index: ExtendibleHash<Media>,
    model: Model,
    /// States that are tried of each photograph.
    states: usize,
}

fn pool_of(image: &[u8]) -> (Media, Arc<Pool<Media>>) {
    let media = Media::default();
    let pool = media_pool(&media, image, POOL_SEGMENT_BYTES, 256 << 10);
    (media, pool)
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn text(error: Error) -> String {
    error.to_string()
}

/// What the index has, if a lookup says the same as the listing.
fn contents(index: &ExtendibleHash<Media>) -> Result<Model, String> {
    let (entries, damages) = listed(index);
    if !damages.is_empty() {
        return Err(format!("damage at {damages:?}"));
    }
    let model: Model = entries.iter().copied().collect();
    if model.len() != entries.len() || index.len() != model.len() as u64 {
        return Err(format!("{} entries are {} or {}", entries.len(), model.len(), index.len()));
    }
    for number in (0..ENTRIES).chain(1900..1906) {
        let expected: Vec<_> = model.get(&hash_of(number)).copied().into_iter().collect();
        if positions(index, hash_of(number)).map_err(text)? != expected {
            return Err(format!("key {number} is not found as it is listed"));
        }
    }
    Ok(model)
}

impl Run {
    fn new(states: usize) -> Self {
        let (media, pool) = pool_of(&[]);
        let index = recovered(&pool, false).unwrap().0;
        Self { media, pool, index, model: Model::new(), states }
    }

    fn act(&mut self, what: Do) {
        match what {
            Insert(number) => {
                let _ = insert(&self.index, hash_of(number), number);
                self.model.insert(hash_of(number), record(number).offset());
            }
            Swap(number, new) => {
                let hash = hash_of(number);
                if let Some(old) = self.model.get(&hash).copied() {
                    let _ = self.index.swap(hash, old, record(new));
                    self.model.insert(hash, record(new).offset());
                }
            }
            Remove(number) => {
                let hash = hash_of(number);
                if let Some(old) = self.model.remove(&hash) {
                    let _ = self.index.remove(hash, old);
                }
            }
        }
    }

    /// Does one thing and looks at every crash in it.
    fn crash_in(&mut self, what: Do) -> Result<(), String> {
        let before = self.model.clone();
        let media = self.media.clone();
        let ((), photos) = media.photograph(|| self.act(what));
        let expected = [before, self.model.clone()];
        for (number, photo) in photos.iter().enumerate() {
            // In between the words of a segment are stored, to which nothing leads.
            let is_between = (SOME..photos.len().saturating_sub(SOME)).contains(&number);
            if !is_between || number % 8 == 0 {
                self.check_photo(photo, &expected, number as u64)?;
            }
        }
        if let Some(photo) = photos.get(photos.len() / 2) {
            self.check_killed(photo, &expected)?;
        }
        let after = self.media.photo();
        self.check_photo(&after, &expected[1..], 0)
    }

    fn check_photo(&self, photo: &Photo, expected: &[Model], seed: u64) -> Result<(), String> {
        let states = photo.some_states(self.states, seed);
        let step = states.len().div_ceil(self.states + 2);
        states.iter().rev().step_by(step).try_for_each(|state| self.check_state(state, expected))
    }

    /// Recovers what a crash left, crashes in that, checks it, goes on, and recovers again.
    fn check_state(&self, state: &[u64], expected: &[Model]) -> Result<(), String> {
        let (media, pool) = pool_of(&bytes_of(state));
        media.leave_out(self.media.left_out());
        let (found, photos) = media.photograph(|| recovered(&pool, false));
        let index = found.map_err(text)?.0;
        let model = contents(&index)?;
        if !expected.contains(&model) {
            return Err(format!("{} entries are not what they should be", model.len()));
        }
        for photo in &photos {
            for again in photo.some_states(1, 1).iter().take(3) {
                let (_, pool) = pool_of(&bytes_of(again));
                if contents(&recovered(&pool, false).map_err(text)?.0)? != model {
                    return Err("recovery does not give the same again".to_owned());
                }
            }
        }
        go_on(&media, &pool, &index, model)
    }

    /// The process is killed and the machine goes on. Once the next process has recovered, a power loss takes nothing that
    /// it found.
    fn check_killed(&self, photo: &Photo, expected: &[Model]) -> Result<(), String> {
        let seen = photo.states().and_then(Iterator::last);
        let seen = seen.unwrap_or_else(|| photo.some_states(0, 1).swap_remove(1));
        let (media, pool) = pool_of(&bytes_of(&seen));
        media.leave_out(self.media.left_out());
        media.was_killed(photo.clone());
        let found = contents(&recovered(&pool, false).map_err(text)?.0)?;
        if !expected.contains(&found) {
            return Err("what a killed process left is wrong".to_owned());
        }
        self.check_photo(&media.photo(), &[found], 1)
    }
}

/// Other entries, durably: nothing comes back that was gone, and no run is lost.
fn go_on(
    media: &Media,
    pool: &Arc<Pool<Media>>,
    index: &ExtendibleHash<Media>,
    mut model: Model,
) -> Result<(), String> {
    for number in 1900..1903 {
        insert(index, hash_of(number), number).map_err(text)?;
        model.insert(hash_of(number), record(number).offset());
    }
    let counts = pool.count_runs(&[KINDS.segment, KINDS.directory]);
    if (counts.kinds[0].runs, counts.kinds[1].runs) != (index.segments(), 1) {
        return Err("a run is lost".to_owned());
    }
    let durable = media.photo().some_states(0, 1).swap_remove(0);
    let again = recovered(&pool_of(&bytes_of(&durable)).1, false).map_err(text)?.0;
    if contents(&again)? == model { Ok(()) } else { Err("what came later is gone".to_owned()) }
}

/// Plays the history with something left out.
fn play(left_out: Option<LeftOut>, states: usize) -> Result<u64, String> {
    let mut run = Run::new(states);
    run.media.leave_out(left_out);
    for (number, what) in history().into_iter().enumerate() {
        if (1..FIRST as usize).contains(&number) {
            run.act(what);
        } else {
            run.crash_in(what).map_err(|error| format!("step {number}, {what:?}: {error}"))?;
        }
    }
    assert!(left_out.is_some() || run.pool.used_blocks() > 0);
    Ok(run.index.segments())
}

#[test]
fn no_crash_loses_or_invents_an_entry() {
    let segments = play(None, 4).unwrap();
    assert!(segments >= 3, "{segments} segments");
}

#[test]
fn whatever_is_left_out_is_noticed() {
    let each = |site: Site| [LeftOut::Store(site), LeftOut::Flush(site), LeftOut::Fence(site)];
    let lists = [sites::ALL, buckets::sites::ALL];
    let mut all: Vec<_> = lists.concat().into_iter().flat_map(each).collect();
    all.push(LeftOut::Step(steps::COMPLETE));
    all.push(LeftOut::Step(buckets::steps::FOREIGN));
    // Where there is nothing to store or to wait for, or where another word decides.
    let nothing = [
        LeftOut::Store(sites::FOUND),
        LeftOut::Fence(sites::FOUND),
        LeftOut::Fence(sites::SEGMENT),
        LeftOut::Fence(sites::BEGIN),
        // Recovery completes what is not durable.
        LeftOut::Flush(sites::LEAD),
        LeftOut::Fence(sites::LEAD),
        // Below: what lay there before is zeros here.
        LeftOut::Store(sites::BEGIN),
        LeftOut::Flush(sites::BEGIN),
    ];
    all.retain(|left_out| !nothing.contains(left_out));
    let unnoticed: Vec<_> = all.into_iter().filter(|what| play(Some(*what), 2).is_ok()).collect();
    assert_eq!(unnoticed, []);
}

/// Makes the first directory where memory is full of words that put a directory in force; whether every crash leaves what
/// recovery takes.
fn begin_on_forged_words(left_out: Option<LeftOut>) -> Result<(), String> {
    let mut run = Run::new(4);
    let (pool, pmem) = (run.pool.clone(), &run.pool.pmem);
    let used = pool.take_bare_run(KINDS.segment, 40).map_err(text)?;
    for block in used.first()..used.first() + u64::from(used.blocks()) {
        let at = pool.map.block_at(block) + CACHE_LINE;
        pmem.store_u64(at, Directory { at, depth: 4 }.header(), ENGINE);
        pmem.flush(pool.extent(at, 8), ENGINE);
    }
    pmem.fence(ENGINE);
    pool.free_run(used).map_err(text)?;
    run.media.leave_out(left_out);
    run.crash_in(Insert(0))
}

#[test]
fn what_lay_where_a_directory_is_made_does_not_matter() {
    begin_on_forged_words(None).unwrap();
    for left_out in [LeftOut::Store(sites::BEGIN), LeftOut::Flush(sites::BEGIN)] {
        assert!(begin_on_forged_words(Some(left_out)).is_err(), "{left_out:?}");
    }
}
