//! Crashes after each store and fence, with many combinations of what may have been written back; and each step left out
//! in turn, to see that this is noticed.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::pool::tests::media::{LeftOut, Photo, bytes_of};

/// What an engine does, with one of two sessions. A record with a value of 40 bytes has 72.
#[derive(Clone, Copy, Debug)]
enum Do {
    Append(usize, usize),
    Sync(usize),
    /// What the session has appended is certain.
    Certify(usize),
    /// The session goes on as another one.
    End(usize),
    /// All references from this version to that one are dropped, and the records are flushed.
    Drop(u64, u64),
    Free,
    /// The process ends and another one opens the store.
    Reopen,
}

use Do::{Append, Certify, Drop, End, Free, Reopen, Sync};

/// Histories that go through every protocol.
const HISTORIES: [&[Do]; 7] = [
    // Fresh runs, one that is full, one record in a run of its own.
    &[
        Append(0, 40),
        Append(1, 40),
        Append(0, 900),
        Append(0, 900),
        Append(0, 900),
        Append(0, 900),
        Append(1, 1100),
    ],
    // Opened again, behind what was cut.
    &[
        Append(0, 40),
        Append(0, 40),
        Append(0, 40),
        Reopen,
        Append(0, 40),
        Append(1, 40),
        Reopen,
        Append(0, 40),
        Append(0, 40),
    ],
    // Batches that others make durable; sessions that end.
    &[
        Append(0, 40),
        Append(1, 40),
        Sync(0),
        Append(0, 40),
        Append(0, 200),
        Append(0, 300),
        End(0),
        Append(1, 40),
        Append(0, 40),
        Sync(1),
    ],
    // Certified before others know that there is anything; then more is appended, also in another life.
    &[
        Append(0, 40),
        Certify(0),
        Append(0, 40),
        Append(1, 40),
        Append(0, 200),
        Certify(0),
        Reopen,
        Append(1, 40),
        Certify(1),
        Append(1, 40),
    ],
    // The run with the highest number is freed, and its place is used again.
    &[
        Append(0, 40),
        Append(1, 1100),
        Drop(1, 2),
        Free,
        Append(1, 1100),
        Append(1, 40),
        Drop(1, 3),
        Free,
        Append(0, 40),
    ],
    // So is one with records that begin where others will.
    &[
        Append(0, 900),
        Append(0, 900),
        Append(0, 900),
        Append(0, 900),
        Append(1, 40),
        Append(1, 40),
        Append(1, 40),
        Sync(1),
        Reopen,
        Drop(5, 7),
        Free,
    ],
    // Freed in front of a run that stays, after another life.
    &[
        Append(0, 900),
        Append(0, 900),
        Append(0, 900),
        Append(0, 900),
        Append(0, 900),
        Drop(1, 4),
        Reopen,
        Drop(1, 4),
        Free,
        Append(1, 900),
        Append(0, 40),
    ],
];

/// A record that was appended.
#[derive(Clone, Debug)]
struct Known {
    place: Appended,
    written: Written,
    session: (u64, usize),
}

/// What a crash may leave.
#[derive(Clone, Debug, Default)]
struct Expected {
    /// These are replayed.
    durable: BTreeSet<u64>,
    /// No others are.
    possible: BTreeSet<u64>,
    /// In this order for each session.
    sessions: BTreeMap<(u64, usize), Vec<u64>>,
    /// So many runs are open at most.
    open_runs_max: u64,
}

struct Engine {
    media: Media,
    pool: Arc<Pool<Media>>,
    log: StorageLog<Media>,
    sessions: Vec<Appender>,
    batch: u32,
    life: u64,
    version: u64,
    all: BTreeMap<u64, Known>,
    durable: BTreeSet<u64>,
    /// Those that may be replayed: neither freed nor lost.
    possible: BTreeSet<u64>,
    dropped: BTreeSet<u64>,
    /// States that are tried of each photograph.
    states: usize,
}

fn pool_of(image: &[u8]) -> (Media, Arc<Pool<Media>>) {
    let media = Media::default();
    let pool = media_pool(&media, image, SEGMENT_BYTES, 256 << 10);
    (media, pool)
}

impl Engine {
    fn new(batch: u32, states: usize) -> Self {
        let (media, pool) = pool_of(&[]);
        assert!(runs(&pool).is_empty());
        let log = new_log(&pool, batch);
        let sessions = (0..2).map(|session| begin(&log, session)).collect();
        let [durable, possible, dropped] = [const { BTreeSet::new() }; 3];
        let (life, version, all) = (0, 0, BTreeMap::new());
        Self {
            media,
            pool,
            log,
            sessions,
            batch,
            life,
            version,
            all,
            durable,
            possible,
            dropped,
            states,
        }
    }

    fn act(&mut self, what: Do) {
        match what {
            Append(session, bytes) => {
                self.version += 1;
                let written = record(self.version, bytes);
                self.possible.insert(self.version);
                let place = append(&self.log, &mut self.sessions[session], &written).unwrap();
                let session = (self.life, session);
                self.all.insert(self.version, Known { place, written, session });
                if self.batch == 0 {
                    self.durable.insert(self.version);
                }
            }
            Sync(session) => {
                self.log.sync_session(self.sessions[session].number());
                self.note_durable(session);
            }
            Certify(session) => {
                self.log.certify(&mut self.sessions[session]);
                self.note_durable(session);
            }
            End(session) => {
                self.log.end(&mut self.sessions[session]);
                self.note_durable(session);
                self.sessions[session] = begin(&self.log, session);
            }
            Drop(first, last) => {
                for version in first..=last {
                    let known = &self.all[&version];
                    if self.possible.contains(&version) && self.dropped.insert(version) {
                        self.log.flushed(known.place.at);
                        self.log.dropped(known.place.at, known.place.bytes);
                    }
                    self.durable.remove(&version);
                }
            }
            Free => {
                self.log.free_ready().unwrap();
                let is_there = |version: &u64| {
                    let at = self.all[version].place.at;
                    self.log.runs.slot_of(&self.pool.map, at).is_some()
                };
                self.possible.retain(is_there);
            }
            Reopen => self.reopen(),
        }
    }

    fn note_durable(&mut self, session: usize) {
        let of = self.all.iter().filter(|(_, known)| known.session == (self.life, session));
        let of = of.map(|(version, _)| *version).filter(|version| !self.dropped.contains(version));
        self.durable.extend(of.filter(|version| self.possible.contains(version)));
    }

    /// Of what was not durable nothing is left.
    fn reopen(&mut self) {
        let left_out = self.media.left_out();
        let durable = self.media.photo().some_states(0, 1).swap_remove(0);
        (self.media, self.pool) = pool_of(&bytes_of(&durable));
        self.media.leave_out(left_out);
        let (log, found, _) = recover(&self.pool, self.batch, false).unwrap();
        let found: BTreeSet<_> = found.into_iter().map(|(_, (version, ..))| version).collect();
        self.durable = &found - &self.dropped;
        self.possible = found;
        for version in &self.possible {
            let place = self.all[version].place;
            log.count_reference(place.at, place.bytes);
        }
        log.end_counting();
        self.dropped.clear();
        self.sessions = (0..2).map(|session| begin(&log, session)).collect();
        self.log = log;
        self.life += 1;
    }

    fn expected(&self) -> Expected {
        let mut sessions: BTreeMap<_, Vec<u64>> = BTreeMap::new();
        for (version, known) in &self.all {
            if self.possible.contains(version) && !self.dropped.contains(version) {
                sessions.entry(known.session).or_default().push(*version);
            }
        }
        let (durable, possible) = (self.durable.clone(), self.possible.clone());
        Expected { durable, possible, sessions, open_runs_max: 2 }
    }

    /// Does one thing and looks at every crash in it.
    fn crash_in(&mut self, what: Do) -> Result<(), String> {
        let before = self.expected();
        let media = self.media.clone();
        let mut photos = vec![media.photo()];
        let ((), taken) = media.photograph(|| self.act(what));
        if matches!(what, Reopen) {
            // Crashes in recovery are looked at below.
            photos.clear();
        } else {
            photos.extend(taken);
        }
        let after = self.expected();
        let between = Expected {
            durable: &before.durable & &after.durable,
            possible: &before.possible | &after.possible,
            sessions: after.sessions.clone(),
            // One that is full is sealed once there is another, and so is one of a record of its own.
            open_runs_max: after.open_runs_max + 2,
        };
        for (number, photo) in photos.iter().enumerate() {
            self.check_photo(photo, &between, number as u64)?;
        }
        self.check_photo(&self.media.photo(), &after, 0)?;
        if let Certify(session) = what {
            self.check_certified(session)?;
        }
        self.check_killed(&self.media.photo(), &after)?;
        self.check_recovery(&self.media.photo(), &after)
    }

    /// Damage of the last record of a session is not taken for its end.
    fn check_certified(&self, session: usize) -> Result<(), String> {
        let mut state = self.media.photo().some_states(0, 1).swap_remove(0);
        let of_session = |known: &&Known| known.session == (self.life, session);
        let last = self.all.values().rev().find(of_session).expect("a record");
        state[last.place.at as usize / 8 + 3] ^= 1;
        let (_, pool) = pool_of(&bytes_of(&state));
        let is_noticed = is_corrupted(recover(&pool, self.batch, false));
        if is_noticed { Ok(()) } else { Err(format!("damage of {last:?} looks like the end")) }
    }

    /// Crashes in each step of recovery.
    fn check_recovery(&self, photo: &Photo, expected: &Expected) -> Result<(), String> {
        for state in photo.some_states(2, 5).iter().take(3) {
            let (media, pool) = pool_of(&bytes_of(state));
            media.leave_out(self.media.left_out());
            let (recovered, photos) = media.photograph(|| recover(&pool, self.batch, false));
            let found =
                self.check_found(recovered.map_err(|error| error.to_string())?.1, expected)?;
            for photo in photos {
                for again in photo.some_states(1, 1).iter().take(3) {
                    let (_, pool) = pool_of(&bytes_of(again));
                    let recovered = recover(&pool, self.batch, false);
                    let again = recovered.map_err(|error| error.to_string())?.1;
                    if self.check_found(again, expected)? != found {
                        return Err("recovery does not give the same again".to_owned());
                    }
                }
            }
        }
        Ok(())
    }

    fn check_photo(&self, photo: &Photo, expected: &Expected, seed: u64) -> Result<(), String> {
        let states = photo.some_states(self.states, seed);
        let step = states.len().div_ceil(self.states);
        states.iter().rev().step_by(step).try_for_each(|state| self.check_state(state, expected))
    }

    /// Recovers what a crash left, checks it, goes on, and recovers again.
    fn check_state(&self, state: &[u64], expected: &Expected) -> Result<(), String> {
        let (media, pool) = pool_of(&bytes_of(state));
        media.leave_out(self.media.left_out());
        let recovered = recover(&pool, self.batch, false);
        let (log, found, recovered) = recovered.map_err(|error| error.to_string())?;
        let found = self.check_found(found, expected)?;
        if recovered.open_runs > expected.open_runs_max {
            return Err(format!("{} runs are open", recovered.open_runs));
        }
        self.go_on(&pool, &log, &found)
    }

    /// Other records in every run that there is, and fresh ones: nothing comes back that was gone.
    fn go_on(
        &self,
        pool: &Arc<Pool<Media>>,
        log: &StorageLog<Media>,
        found: &BTreeSet<u64>,
    ) -> Result<(), String> {
        let mut expected = found.clone();
        let mut sessions: Vec<_> = (0..4).map(|_| log.begin()).collect();
        for (session, version) in sessions.iter_mut().zip(1001..) {
            append(log, session, &record(version, 40)).map_err(|error| error.to_string())?;
            expected.insert(version);
        }
        let again = recover(pool, self.batch, false).map_err(|error| error.to_string())?.1;
        let again: BTreeSet<_> = again.into_iter().map(|(_, (version, ..))| version).collect();
        if again == expected { Ok(()) } else { Err(format!("{again:?} instead of {expected:?}")) }
    }

    fn check_found(&self, found: Found, expected: &Expected) -> Result<BTreeSet<u64>, String> {
        for (at, written) in &found {
            if let Some(known) = self.all.get(&written.0)
                && (known.place.at, &known.written) != (*at, written)
            {
                return Err(format!("record {} is not what was written", written.0));
            }
        }
        let count = found.len();
        let found: BTreeSet<_> = found.into_iter().map(|(_, (version, ..))| version).collect();
        if found.len() != count || !found.is_subset(&expected.possible) {
            return Err(format!("{found:?} are found, and possible are {:?}", expected.possible));
        }
        if !found.is_superset(&expected.durable) {
            return Err(format!("{found:?} are found, and durable are {:?}", expected.durable));
        }
        for versions in expected.sessions.values() {
            let first_lost = versions.iter().position(|version| !found.contains(version));
            let behind = &versions[first_lost.unwrap_or(versions.len())..];
            if behind.iter().any(|version| found.contains(version)) {
                return Err(format!("of {versions:?} of a session {found:?} are found"));
            }
        }
        Ok(found)
    }

    /// The process is killed and the machine goes on. Once the next process has recovered, a power loss takes nothing that
    /// it found.
    fn check_killed(&self, photo: &Photo, expected: &Expected) -> Result<(), String> {
        let states = photo.some_states(0, 1);
        let seen = states.last().expect("all of it");
        let (media, pool) = pool_of(&bytes_of(seen));
        media.leave_out(self.media.left_out());
        media.was_killed(photo.clone());
        let (_, found, _) = recover(&pool, self.batch, false).map_err(|error| error.to_string())?;
        let found = self.check_found(found, expected)?;
        let exactly = Expected {
            durable: found.clone(),
            possible: found,
            sessions: BTreeMap::new(),
            open_runs_max: 0,
        };
        self.check_photo(&media.photo(), &exactly, 1)
    }
}

/// Plays all histories with something left out.
/// A session; the second one is one for which runs are kept.
fn begin(log: &StorageLog<Media>, session: usize) -> Appender {
    if session == 0 { log.begin() } else { log.begin_for(Purpose::Reclaim) }
}

fn play(left_out: Option<LeftOut>, states: usize) -> Result<(), String> {
    for batch in BATCHES {
        for history in HISTORIES {
            let mut engine = Engine::new(batch, states);
            engine.media.leave_out(left_out);
            for what in history {
                let crashed = engine.crash_in(*what);
                crashed
                    .map_err(|error| format!("{what:?} of {history:?}, batch {batch}: {error}"))?;
            }
        }
    }
    Ok(())
}

#[test]
fn no_crash_loses_or_invents_a_record() {
    play(None, 5).unwrap();
}

#[test]
fn whatever_is_left_out_is_noticed() {
    let each = |site: Site| [LeftOut::Store(site), LeftOut::Flush(site), LeftOut::Fence(site)];
    let mut all: Vec<_> = sites::ALL.iter().copied().flat_map(each).collect();
    let nothing = [
        // Where there is nothing to store or to wait for.
        LeftOut::Fence(sites::BEGIN),
        LeftOut::Store(sites::BATCH),
        LeftOut::Store(sites::FOUND),
        LeftOut::Flush(sites::PENDING),
        LeftOut::Fence(sites::PENDING),
        LeftOut::Fence(sites::FLUSHED),
        // More is replayed than has to be, which other tests notice.
        LeftOut::Store(sites::FLUSHED),
        LeftOut::Flush(sites::FLUSHED),
        // The fence of the first record does the same for one thread. With batches it may be that of another thread.
        LeftOut::Fence(sites::UNSEAL),
    ];
    all.retain(|left_out| !nothing.contains(left_out));
    let is_unnoticed = |what: &LeftOut| {
        let played = std::panic::catch_unwind(|| play(Some(*what), 3));
        played.is_ok_and(|played| played.is_ok())
    };
    let unnoticed: Vec<_> = all.into_iter().filter(is_unnoticed).collect();
    assert_eq!(unnoticed, []);
}
