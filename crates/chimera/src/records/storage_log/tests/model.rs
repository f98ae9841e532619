//! Anything that an engine can do, against a model.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Copy, Debug)]
enum Do {
    /// By one of three sessions, with a value of so many bytes.
    Append(usize, usize),
    /// The reference to one of the records, by its number among those that there are.
    Drop(usize),
    /// One of the records reaches a durable table.
    Flush(usize),
    Free,
    /// The session goes on as another one.
    End(usize),
    Sync,
    Reopen,
}

fn any_do() -> impl Strategy<Value = Do> {
    prop_oneof![
        20 => (0..3_usize, 0..700_usize).prop_map(|(session, bytes)| Do::Append(session, bytes)),
        1 => (0..3_usize, 700..9000_usize).prop_map(|(session, bytes)| Do::Append(session, bytes)),
        15 => any::<usize>().prop_map(Do::Drop),
        6 => any::<usize>().prop_map(Do::Flush),
        2 => Just(Do::Free),
        1 => (0..3_usize).prop_map(Do::End),
        1 => Just(Do::Sync),
        1 => Just(Do::Reopen),
    ]
}

/// A record of the model.
#[derive(Clone, Debug)]
struct Known {
    place: Appended,
    written: Written,
    is_flushed: bool,
}

struct Player {
    pool: Arc<Pool<Hardware>>,
    batch: u32,
    log: StorageLog<Hardware>,
    sessions: Vec<Appender>,
    /// Referred to, by version.
    live: BTreeMap<u64, Known>,
    version: u64,
}

impl Player {
    fn new(batch: u32) -> Self {
        let pool = new_pool();
        let log = new_log(&pool, batch);
        let sessions = (0..3).map(|_| log.begin()).collect();
        Self { pool, batch, log, sessions, live: BTreeMap::new(), version: 0 }
    }

    fn act(&mut self, what: Do) {
        match what {
            Do::Append(session, bytes) => {
                let written = record(self.version + 1, bytes);
                match append(&self.log, &mut self.sessions[session], &written) {
                    Ok(place) => {
                        self.version += 1;
                        let known = Known { place, written, is_flushed: false };
                        self.live.insert(self.version, known);
                    }
                    Err(error) => assert!(matches!(error, Error::PoolFull { .. }), "{error}"),
                }
            }
            Do::Drop(number) => {
                if let Some(version) = self.pick(number) {
                    let known = self.live.remove(&version).expect("just picked");
                    if !known.is_flushed {
                        self.log.flushed(known.place.at);
                    }
                    self.log.dropped(known.place.at, known.place.bytes);
                }
            }
            Do::Flush(number) => {
                let version = self.pick(number);
                if let Some(known) = version.and_then(|version| self.live.get_mut(&version))
                    && !std::mem::replace(&mut known.is_flushed, true)
                {
                    self.log.flushed(known.place.at);
                }
            }
            Do::Free => drop(self.log.free_ready().unwrap()),
            Do::End(session) => {
                self.log.end(&mut self.sessions[session]);
                self.sessions[session] = self.log.begin();
            }
            Do::Sync => self.log.sync_all(),
            Do::Reopen => self.reopen(),
        }
    }

    fn pick(&self, number: usize) -> Option<u64> {
        self.live.keys().nth(number.checked_rem(self.live.len())?).copied()
    }

    fn reopen(&mut self) {
        let log = new_log(&self.pool, self.batch);
        let mut replayed = BTreeMap::new();
        let (_, unsettled) = log
            .recover(runs(&self.pool), false, |record| {
                replayed.insert(record.version, record.at);
                let known = self.live.get(&record.version);
                Ok(known.is_some_and(|known| !known.is_flushed))
            })
            .unwrap();
        log.settle(unsettled);
        for (version, known) in &self.live {
            let at = replayed.get(version);
            assert!(at == Some(&known.place.at) || known.is_flushed, "{version} is not replayed");
        }
        for known in self.live.values() {
            log.count_reference(known.place.at, known.place.bytes);
        }
        log.end_counting();
        self.sessions = (0..3).map(|_| log.begin()).collect();
        self.log = log;
    }

    fn check(&self) {
        for known in self.live.values() {
            let found = read(&self.log, known.place.at, &known.written.1).unwrap();
            assert_eq!(found.as_ref(), Some(&known.written));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_log_keeps_what_is_referred_to(
        batched in any::<bool>(),
        all in prop::collection::vec(any_do(), 1..400),
    ) {
        let mut player = Player::new(BATCHES[usize::from(batched)]);
        for what in all {
            player.act(what);
            if matches!(what, Do::Free | Do::Reopen) {
                player.check();
            }
        }
        player.check();
        // Nothing is leaked: without references at most the runs of sessions, and one with the highest number, stay.
        while !player.live.is_empty() {
            player.act(Do::Drop(0));
        }
        for session in 0..3 {
            player.act(Do::End(session));
        }
        player.log.seal_left();
        player.act(Do::Free);
        prop_assert!(runs_in_use(&player.pool) <= 1);
    }
}
