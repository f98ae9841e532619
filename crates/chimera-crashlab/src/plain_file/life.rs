//! One life of a store: operations, kept disks, what each leaves, and whether promises were kept.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use chimera::{Batch, Db, Durability, Options, Session};
use chimera_pmem::{Environment, Hardware, SteppedEnvironment};

use super::chance::Chance;
use super::disk::Disk;
use super::files::{PlainFiles, Promise, Snapshot};
use super::plan::{Findings, Plan};
use crate::durability::{End, Loss};
use crate::subject::VALUE_BYTES;

/// Keys: few, so that slots are used again.
const KEYS: u64 = 24;
/// Ways in which the power fails at each moment.
const SURVIVORS: u64 = 3;
/// Power failures during, or right after, each recovery.
const NESTED: usize = 3;
/// Most violations to collect where there should be none.
const VIOLATIONS_MAX: usize = 10;

/// What a store holds.
pub(super) type State = BTreeMap<Vec<u8>, Vec<u8>>;

/// A store on simulated files.
pub(super) struct Store {
    pub(super) db: Db,
    pub(super) environment: Arc<SteppedEnvironment>,
}

/// Opens a store on files, at the start of the machine that `seed` stands for.
pub(super) fn open(files: &Arc<PlainFiles>, options: &Options, seed: u64) -> Result<Store, String> {
    files.boot(seed);
    let environment = Arc::new(SteppedEnvironment::with_files(seed, files.clone()));
    environment.advance(1 + seed % 1000);
    let as_trait: Arc<dyn Environment> = environment.clone();
    let pmem = Hardware::new(options.hardware_options()).map_err(|error| error.to_string())?;
    if let Some(step) = files.left_out() {
        pmem.skip(step);
    }
    let db = Db::open_on(pmem, &as_trait, Path::new("/stores/one"), options);
    Ok(Store { db: db.map_err(|error| format!("cannot be opened: {error}"))?, environment })
}

impl Store {
    pub(super) fn contents(&self) -> Result<State, String> {
        let mut state = State::new();
        let take = |key: &[u8], value: &[u8]| {
            state.insert(key.to_vec(), value.to_vec());
            true
        };
        self.db.for_each(take).map_err(|error| format!("cannot be read: {error}"))?;
        Ok(state)
    }

    /// What is in the store, after checking it.
    pub(super) fn verified(&self) -> Result<State, String> {
        let report = self.db.check(None);
        if !report.is_sound() {
            return Err(format!("is not sound: {report:?}"));
        }
        self.contents()
    }

    /// Lets go of the store as the end of its process does.
    pub(super) fn kill(self, files: &PlainFiles) -> Disk {
        let disk = files.disk().killed();
        drop(self.db);
        disk
    }
}

/// Explores a plan.
pub fn explore(plan: &Plan) -> Findings {
    let mut findings = Findings::default();
    let mut chance = Chance::new(plan.seed);
    let mut disk = Disk::default();
    let mut state = State::new();
    for life in 0..plan.lives {
        let Some((next_disk, next_state)) = live(plan, &disk, state, &mut chance, &mut findings)
        else {
            break;
        };
        findings.epochs += u64::from(life > 0);
        (disk, state) = (next_disk, next_state);
    }
    findings
}

/// Lives once and verifies every moment that was kept. What the next life begins with.
fn live(
    plan: &Plan,
    disk: &Disk,
    state: State,
    chance: &mut Chance,
    findings: &mut Findings,
) -> Option<(Disk, State)> {
    let one_in = 1 + chance.below(8);
    let files = Arc::new(PlainFiles::new(disk.clone(), plan.lie, one_in, chance.word()));
    files.leave_out(plan.left_out);
    files.write_ahead(plan.writes_ahead());
    let mut history = vec![state];
    match operate(plan, &files, &mut history, chance) {
        Ok(direct_bytes) => findings.direct_bytes += direct_bytes,
        Err(violation) => {
            findings.violations.push(format!("seed {}: {violation}", plan.seed));
            return None;
        }
    }
    let snapshots = files.take_snapshots();
    let mut survivors = Vec::new();
    // Where something is amiss by intention the first one says so.
    let is_amiss = plan.lie.is_some() || plan.left_out.is_some();
    let violations_max = if is_amiss { 1 } else { VIOLATIONS_MAX };
    for snapshot in &snapshots {
        findings.crash_points += 1;
        if let Err(violation) = verify_killed(plan, snapshot, &history, chance, findings) {
            findings.violations.push(format!(
                "seed {}: killed before `{}` with {:?}: {violation}",
                plan.seed, snapshot.before, snapshot.promise
            ));
        }
        for _ in 0..SURVIVORS {
            let left = snapshot.disk.survivor(chance);
            match verify(plan, snapshot, &left, &history, chance, findings) {
                Ok(state) => survivors.push((left, state)),
                Err(violation) => findings.violations.push(format!(
                    "seed {}: before `{}` with {:?}: {violation}",
                    plan.seed, snapshot.before, snapshot.promise
                )),
            }
            if findings.violations.len() >= violations_max {
                return None;
            }
        }
    }
    if survivors.is_empty() {
        return None;
    }
    let chosen = chance.below(survivors.len() as u64) as usize;
    Some(survivors.swap_remove(chosen))
}

/// Carries out operations, and appends what the store holds after each to the history. Bytes that were written ahead of the
/// journal.
fn operate(
    plan: &Plan,
    files: &Arc<PlainFiles>,
    history: &mut Vec<State>,
    chance: &mut Chance,
) -> Result<u64, String> {
    let options = plan.options();
    let mut store = open(files, &options, chance.word())?;
    let mut session = store.db.session();
    let mut ahead = 0;
    for number in 1..=plan.operations {
        files.promise(|promise| promise.begun = number);
        let mut state = history[number - 1].clone();
        apply(plan, &mut session, &mut state, chance).map_err(|error| error.to_string())?;
        history.push(state);
        files.promise(|promise| {
            promise.acknowledged = number;
            if plan.durability == Durability::Immediate {
                promise.synced = number;
            }
        });
        match chance.below(20) {
            0 => {
                store.db.sync().map_err(|error| error.to_string())?;
                files.promise(|promise| promise.synced = number);
            }
            1 => {
                drop(session);
                ahead += direct_bytes(&store.db);
                store.db.close().map_err(|error| error.to_string())?;
                files.promise(|promise| promise.synced = number);
                store = open(files, &options, chance.word())?;
                session = store.db.session();
            }
            // Seldom: it makes everything durable.
            2 if chance.one_in(4) || plan.compacts_often => {
                let percent = 1 + chance.below(60) as u32;
                store.db.compact(percent, None).map_err(|error| error.to_string())?;
            }
            2..9 => store.environment.advance(chance.below(30_000_000)),
            _ => {}
        }
        if chance.one_in(2) {
            store.environment.step_tasks();
        }
    }
    let found = store.contents()?;
    if Some(&found) != history.last() {
        return Err("does not hold what was written".to_owned());
    }
    Ok(ahead + direct_bytes(&store.db))
}

/// Bytes that were written ahead of the journal since the store was opened.
fn direct_bytes(db: &Db) -> u64 {
    db.stats().journal.map_or(0, |journal| journal.direct_bytes)
}

/// One random operation, on the store and on the model.
fn apply(
    plan: &Plan,
    session: &mut Session,
    state: &mut State,
    chance: &mut Chance,
) -> chimera::Result<()> {
    let key = chance.below(KEYS).to_le_bytes();
    match chance.below(if plan.is_in_place() { 10 } else { 7 }) {
        0 if chance.one_in(4) => write_batch(session, state, chance)?,
        0..5 => {
            let value = any_value(plan.value_bytes_max(), key, chance);
            session.put(key, &value)?;
            state.insert(key.to_vec(), value);
        }
        5 | 6 => {
            session.delete(key)?;
            state.remove(&key[..]);
        }
        _ => {
            let delta = chance.word();
            session.fetch_add_u64(key, 16, delta)?;
            if let Some(value) = state.get_mut(&key[..]) {
                let mut word = [0; 8];
                word.copy_from_slice(&value[16..24]);
                let sum = u64::from_le_bytes(word).wrapping_add(delta);
                value[16..24].copy_from_slice(&sum.to_le_bytes());
            }
        }
    }
    Ok(())
}

fn any_value(bytes_max: usize, key: [u8; 8], chance: &mut Chance) -> Vec<u8> {
    let is_small = bytes_max == VALUE_BYTES || chance.one_in(2);
    let parts = if is_small { 1 } else { 1 + chance.below((bytes_max / VALUE_BYTES) as u64) };
    let mut value = chance.word().to_le_bytes().repeat(parts as usize * VALUE_BYTES / 8);
    value[8] = key[0];
    value
}

/// A batch of some puts of short values and deletes.
fn write_batch(
    session: &mut Session,
    state: &mut State,
    chance: &mut Chance,
) -> chimera::Result<()> {
    let mut batch = Batch::new();
    for _ in 0..2 + chance.below(4) {
        let key = chance.below(KEYS).to_le_bytes();
        if chance.one_in(3) {
            batch.delete(key);
            state.remove(&key[..]);
        } else {
            let value = any_value(VALUE_BYTES, key, chance);
            batch.put(key, &value);
            state.insert(key.to_vec(), value);
        }
    }
    session.write(&batch)
}

/// Recovers what a power loss left, and says what it holds when that is as promised.
fn verify(
    plan: &Plan,
    snapshot: &Snapshot,
    left: &Disk,
    history: &[State],
    chance: &mut Chance,
    findings: &mut Findings,
) -> Result<State, String> {
    let allowed = allowed(plan, snapshot.promise, End::PowerLoss);
    let options = plan.options();
    findings.states += 1;
    let seen = read_only(left, &options, chance)?;
    let one_in = 1 + chance.below(6);
    let files = Arc::new(PlainFiles::new(left.clone(), plan.lie, one_in, chance.word()));
    let store = open(&files, &options, chance.word())?;
    let state = store.verified()?;
    expect(&state, history, allowed)?;
    if seen.is_some_and(|seen| seen != state) {
        return Err("holds something else when it is open for reading only".to_owned());
    }
    let killed = store.kill(&files);
    let snapshots = files.take_snapshots();
    let mut again = vec![killed];
    again.extend(snapshots.into_iter().map(|snapshot| snapshot.disk));
    for _ in 0..NESTED.min(again.len()) {
        let disk = again.swap_remove(chance.below(again.len() as u64) as usize);
        findings.states += 1;
        findings.nested += 1;
        let left = disk.survivor(chance);
        let files = Arc::new(PlainFiles::new(left, plan.lie, 0, 0));
        let store = open(&files, &options, chance.word())?;
        if store.verified()? != state {
            return Err("recovers to something else the second time".to_owned());
        }
    }
    Ok(state)
}

/// Recovers what the end of a process leaves, which is everything that was appended, with the power failing
/// during that: what had not been synced may be lost then, and nothing else.
fn verify_killed(
    plan: &Plan,
    snapshot: &Snapshot,
    history: &[State],
    chance: &mut Chance,
    findings: &mut Findings,
) -> Result<(), String> {
    let promise = snapshot.promise;
    let options = plan.options();
    let killed = snapshot.disk.killed();
    let files = Arc::new(PlainFiles::new(killed, plan.lie, 1 + chance.below(3), chance.word()));
    // The machine goes on: everything that was written is there, and nothing else is an end of the journal.
    let store = open(&files, &options, snapshot.boot)?;
    expect(&store.verified()?, history, allowed(plan, promise, End::Kill))?;
    drop(store);
    let mut moments = files.take_snapshots();
    for _ in 0..NESTED.min(moments.len()) {
        let moment = moments.swap_remove(chance.below(moments.len() as u64) as usize);
        findings.states += 1;
        findings.nested += 1;
        let left = moment.disk.survivor(chance);
        let store = open(&Arc::new(PlainFiles::new(left, plan.lie, 0, 0)), &options, chance.word());
        let state = store.and_then(|store| store.verified());
        let allowed = allowed(plan, promise, End::PowerLoss);
        state
            .and_then(|state| expect(&state, history, allowed))
            .map_err(|what| format!("then power failed before `{}`: {what}", moment.before))?;
    }
    Ok(())
}

/// What the store shows without writing; `None` when there is no store yet.
fn read_only(left: &Disk, options: &Options, chance: &mut Chance) -> Result<Option<State>, String> {
    let files = Arc::new(PlainFiles::new(left.clone(), None, 1, 0));
    let options = options.clone().read_only(true);
    match open(&files, &options, chance.word()) {
        Ok(store) => {
            let state = store.contents()?;
            drop(store);
            let changes = files.take_snapshots();
            match changes.first() {
                Some(change) => Err(format!("was changed by a reader: {}", change.before)),
                None => Ok(Some(state)),
            }
        }
        // A reader may not end a batch that was cut off.
        Err(error) if error.contains("there is no store") || error.contains("a batch was") => {
            Ok(None)
        }
        Err(error) => Err(format!("read-only, {error}")),
    }
}

/// After how many operations the store may be as it was, after an end.
fn allowed(plan: &Plan, promise: Promise, end: End) -> RangeInclusive<usize> {
    let first = match plan.loss(end) {
        Loss::Nothing => promise.acknowledged,
        Loss::Suffix => promise.synced,
        // There is one session.
        Loss::SuffixOfEachSession { operations_max } => {
            promise.acknowledged.saturating_sub(operations_max as usize).max(promise.synced)
        }
    };
    first..=promise.begun
}

/// Checks that the state is one that was there after as many operations as allowed.
fn expect(state: &State, history: &[State], allowed: RangeInclusive<usize>) -> Result<(), String> {
    let last = *allowed.end().min(&(history.len() - 1));
    if history[*allowed.start()..=last].contains(state) {
        return Ok(());
    }
    let earlier = history.iter().position(|earlier| earlier == state);
    Err(match earlier {
        Some(number) => format!("is as after operation {number}, not one of {allowed:?}"),
        None => format!("is as it never was; {allowed:?} were allowed"),
    })
}
