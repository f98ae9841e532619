//! [`Model`]: what must be in the store.

use std::collections::BTreeMap;

use chimera::Db;

use super::operations::{KEYS, Stored, Work, key, operations};
use super::pipe::Received;
use super::plan::Outcome;
use crate::durability::Loss;

/// What a session did last and is not certain to be there: of its writes some, the first ones.
#[derive(Debug)]
pub(super) struct Uncertain {
    /// Of each its keys, and what it left there.
    writes: Vec<Vec<(u64, Option<Stored>)>>,
    /// Whether the last of them had begun and not ended.
    pub(super) in_flight: bool,
}

/// A key, and what was found there.
type Found = (u64, Option<Vec<u8>>);

/// What must be in the store.
#[derive(Debug, Default)]
pub(super) struct Model(BTreeMap<u64, Stored>);

impl Model {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn set(&mut self, number: u64, stored: Option<Stored>) {
        match stored {
            Some(stored) => drop(self.0.insert(number, stored)),
            None => drop(self.0.remove(&number)),
        }
    }

    /// Carries out what is certain; returns for each session what is not.
    pub(super) fn apply(&mut self, work: &Work, received: &Received, loss: Loss) -> Vec<Uncertain> {
        let sessions = 0..usize::from(work.sessions);
        sessions.map(|session| self.apply_session(session, work, received, loss)).collect()
    }

    fn apply_session(
        &mut self,
        session: usize,
        work: &Work,
        received: &Received,
        loss: Loss,
    ) -> Uncertain {
        let ended = received.ended(session) as usize;
        let certain = ended.saturating_sub(loss.operations_max());
        let in_flight = received.begun(session) > received.ended(session);
        let mut uncertain = Uncertain { writes: Vec::new(), in_flight };
        // What the session's keys hold once everything is done.
        let mut done = BTreeMap::new();
        let operations = operations(session as u64, work.cycle, work.shape.abilities());
        for (step, operation) in operations.take(ended + usize::from(in_flight)).enumerate() {
            let after = operation.numbers().map(|number| {
                let before = done.get(&number).copied();
                let before = before.unwrap_or_else(|| self.0.get(&number).copied());
                (number, operation.after(number, before))
            });
            let after: Vec<_> = after.collect();
            if step < certain {
                for (number, after) in after {
                    self.set(number, after);
                }
            } else {
                done.extend(after.iter().copied());
                uncertain.writes.push(after);
            }
        }
        uncertain
    }

    /// Compares a store with what was acknowledged, and learns what became of what was not certain.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn verify(
        &mut self,
        db: &Db,
        uncertain: &[Uncertain],
        knows_new: bool,
        outcome: &mut Outcome,
    ) -> Result<(), String> {
        let mut with = db.session();
        for (session, uncertain) in (0..).zip(uncertain) {
            let keys = session * KEYS..(session + 1) * KEYS;
            let found = keys.map(|number| {
                let found = with.get(key(number));
                let found = found.map_err(|error| format!("key {number} cannot be read: {error}"));
                Ok((number, found?))
            });
            let found: Vec<_> = found.collect::<Result<_, String>>()?;
            let done = self.learn(&found, uncertain)?;
            outcome.in_flight_done +=
                u64::from(uncertain.in_flight && done == uncertain.writes.len());
        }
        let report = db.check(None);
        if !report.is_sound() {
            return Err(format!("the store is not sound: {report:?}"));
        }
        let (found, expected) = (db.stats().records, self.0.len() as u64);
        // Puts that do not know whether their key is new may have counted it twice.
        if found < expected || knows_new && found > expected {
            return Err(format!("the store has {found} records instead of {expected}"));
        }
        Ok(())
    }

    /// Carries out so many of a session's uncertain writes, the first ones, that the store is as found; how
    /// many.
    fn learn(&mut self, found: &[Found], uncertain: &Uncertain) -> Result<usize, String> {
        let mut done = 0;
        loop {
            let differs = |(number, found): &&Found| {
                let expected = self.0.get(number).map(|stored| stored.bytes(*number));
                found.as_deref() != expected.as_ref().map(|bytes| &bytes[..])
            };
            let Some((wrong, found)) = found.iter().find(differs) else { return Ok(done) };
            let Some(write) = uncertain.writes.get(done) else {
                let expected = self.0.get(wrong);
                return Err(format!(
                    "key {wrong} has {found:02x?}: {expected:?} was acknowledged or in flight, and no \
                     beginning of the last {done} operations gives what the session's keys hold"
                ));
            };
            for (number, after) in write {
                self.set(*number, *after);
            }
            done += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use chimera::{Durability, EngineKind};

    use super::super::pipe::Message;
    use super::super::writer::options;
    use super::*;
    use crate::subject::EngineShape;

    const STEPS: u64 = 3000;

    /// A store in which a session has done its operations but for the last, and what it told.
    /// One whose last operations each leave a trace.
    const CYCLE: u64 = 8;

    fn store_and_messages(done: u64) -> (tempfile::TempDir, Db, Work, Received) {
        let directory = tempfile::tempdir().unwrap();
        let shape = EngineShape::for_files(EngineKind::Viper, 0);
        let db = Db::open(directory.path(), &options(&shape, Durability::Auto)).unwrap();
        let work = Work {
            sessions: 1,
            shape,
            durability: Durability::Auto,
            cycle: CYCLE,
            operations: u64::MAX,
        };
        let mut bytes = Vec::new();
        let mut session = db.session();
        for (step, operation) in (1..=STEPS).zip(operations(0, CYCLE, work.shape.abilities())) {
            Message::Begin { session: 0, step }.send(&mut bytes).unwrap();
            if step <= done {
                operation.carry_out(&mut session).unwrap();
            }
            if step < STEPS {
                Message::End { session: 0, step }.send(&mut bytes).unwrap();
            }
        }
        drop(session);
        let received = Received::default();
        received.take_all(&*bytes).unwrap();
        (directory, db, work, received)
    }

    fn verify(db: &Db, work: &Work, received: &Received) -> Result<Model, String> {
        verify_with(Loss::Nothing, db, work, received)
    }

    fn verify_with(loss: Loss, db: &Db, work: &Work, received: &Received) -> Result<Model, String> {
        let mut model = Model::default();
        let uncertain = model.apply(work, received, loss);
        assert!(uncertain.len() == 1 && uncertain[0].in_flight);
        assert_eq!(uncertain[0].writes.len(), 1 + loss.operations_max());
        model.verify(db, &uncertain, true, &mut Outcome::default()).map(|()| model)
    }

    /// A store that acknowledges in batches may lose the last batch, and nothing before it.
    #[test]
    fn of_a_batch_a_beginning_must_be_done() {
        let loss = Loss::SuffixOfEachSession { operations_max: 5 };
        for (less, is_right) in [(0, true), (1, true), (5, true), (6, false), (20, false)] {
            let (_directory, db, work, received) = store_and_messages(STEPS - 1 - less);
            let verified = verify_with(loss, &db, &work, &received);
            assert_eq!(verified.is_ok(), is_right, "{less}: {:?}", verified.err());
        }
        // The last but one of the batch without the one before it.
        let (_directory, db, work, received) = store_and_messages(STEPS - 4);
        let later = operations(0, CYCLE, work.shape.abilities()).nth(STEPS as usize - 3);
        later.unwrap().carry_out(&mut db.session()).unwrap();
        verify_with(loss, &db, &work, &received).unwrap_err();
    }

    #[test]
    fn what_was_in_flight_may_be_done_or_not() {
        for done in [STEPS - 1, STEPS] {
            let (_directory, db, work, received) = store_and_messages(done);
            verify(&db, &work, &received).unwrap();
        }
    }

    #[test]
    fn what_was_acknowledged_must_be_done() {
        // Operations on what is not there leave no trace: not one of the last of these is such.
        let missed = (1..20).filter(|less| {
            let (_directory, db, work, received) = store_and_messages(STEPS - 1 - less);
            verify(&db, &work, &received).is_err()
        });
        assert_eq!(missed.count(), 19);
    }

    #[test]
    fn a_lost_a_revived_and_a_changed_record_are_noticed() {
        let (_directory, db, work, received) = store_and_messages(STEPS - 1);
        let model = verify(&db, &work, &received).unwrap();
        let (&there, stored) = model.0.iter().next().unwrap();
        let bytes = stored.bytes(there);
        let absent = (0..KEYS).find(|number| !model.0.contains_key(number)).unwrap();
        let is_noticed = |change: &dyn Fn()| {
            verify(&db, &work, &received).unwrap();
            change();
            verify(&db, &work, &received).unwrap_err();
            db.put(key(there), bytes).unwrap();
            db.delete(key(absent)).unwrap();
        };
        is_noticed(&|| assert!(db.delete(key(there)).unwrap()));
        is_noticed(&|| assert!(db.put(key(absent), bytes).unwrap()));
        is_noticed(&|| assert!(db.fetch_add_u64(key(there), 8, 1).unwrap().is_some()));
    }
}
