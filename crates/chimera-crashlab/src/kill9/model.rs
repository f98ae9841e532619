//! [`Model`]: what must be in the store.

use std::collections::BTreeMap;

use chimera::Db;

use super::Outcome;
use super::operations::{KEYS, Stored, Work, key, operations};
use super::pipe::Received;

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

    /// Carries out what was acknowledged. Returns for each operation in flight its key and what it
    /// would have left there.
    pub(super) fn apply(&mut self, work: &Work, received: &Received) -> Vec<(u64, Option<Stored>)> {
        let mut in_flight = Vec::new();
        for session in 0..usize::from(work.sessions) {
            let mut operations = operations(session as u64, work.cycle);
            for operation in operations.by_ref().take(received.ended(session) as usize) {
                let before = self.0.get(&operation.number).copied();
                self.set(operation.number, operation.after(before));
            }
            if received.begun(session) > received.ended(session)
                && let Some(operation) = operations.next()
            {
                let before = self.0.get(&operation.number).copied();
                in_flight.push((operation.number, operation.after(before)));
            }
        }
        in_flight
    }

    /// Compares a store with what was acknowledged, and learns what became of what was in flight.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn verify(
        &mut self,
        db: &Db,
        sessions: u8,
        in_flight: Vec<(u64, Option<Stored>)>,
        outcome: &mut Outcome,
    ) -> Result<(), String> {
        let mut session = db.session();
        let mut get = |number: u64| {
            let found = session.get(&key(number));
            found.map_err(|error| format!("key {number} cannot be read: {error}"))
        };
        let is = |found: &Option<Vec<u8>>, number: u64, stored: Option<Stored>| {
            found.as_deref()
                == stored.map(|stored| stored.bytes(number)).as_ref().map(|bytes| &bytes[..])
        };
        for (number, after) in in_flight {
            let before = self.0.get(&number).copied();
            let found = get(number)?;
            if is(&found, number, before) {
                continue;
            }
            if !is(&found, number, after) {
                return Err(format!(
                    "key {number}, in flight, has {found:02x?}: neither {before:?} nor {after:?}"
                ));
            }
            outcome.in_flight_done += 1;
            self.set(number, after);
        }
        for number in 0..u64::from(sessions) * KEYS {
            let expected = self.0.get(&number).copied();
            let found = get(number)?;
            if !is(&found, number, expected) {
                return Err(format!(
                    "key {number} has {found:02x?}: {expected:?} was acknowledged"
                ));
            }
        }
        let report = db.check(None);
        if !report.is_sound() {
            return Err(format!("the store is not sound: {report:?}"));
        }
        let (found, expected) = (db.stats().records, self.0.len() as u64);
        if found != expected {
            return Err(format!("the store has {found} records instead of {expected}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use chimera::{Durability, RecordLayout};

    use super::super::pipe::Message;
    use super::super::writer::options;
    use super::*;

    const STEPS: u64 = 3000;

    /// A store in which a session has done its operations but for the last, and what it told.
    fn store_and_messages(done: u64) -> (tempfile::TempDir, Db, Work, Received) {
        let directory = tempfile::tempdir().unwrap();
        let layout = RecordLayout::Checked;
        let db = Db::open(directory.path(), &options(layout, Durability::Auto)).unwrap();
        let work = Work {
            sessions: 1,
            layout,
            durability: Durability::Auto,
            cycle: 7,
            operations: u64::MAX,
        };
        let mut bytes = Vec::new();
        let mut session = db.session();
        for (step, operation) in (1..=STEPS).zip(operations(0, 7)) {
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
        let mut model = Model::default();
        let in_flight = model.apply(work, received);
        assert_eq!(in_flight.len(), 1);
        model.verify(db, 1, in_flight, &mut Outcome::default()).map(|()| model)
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
            db.put(&key(there), &bytes).unwrap();
            db.delete(&key(absent)).unwrap();
        };
        is_noticed(&|| assert!(db.delete(&key(there)).unwrap()));
        is_noticed(&|| assert!(db.put(&key(absent), &bytes).unwrap()));
        is_noticed(&|| assert!(db.fetch_add_u64(&key(there), 8, 1).unwrap().is_some()));
    }
}
