//! Transactions: as if nobody else wrote meanwhile.

use std::sync::atomic::{AtomicU64, Ordering};

use chimera::Error;

use crate::atomic_batch::{batch_of, db};
use crate::configurations::Configuration;
use crate::harness::{Test, tests};
use crate::records::{assert_holds, at_once, word};
use crate::tools::{Chance, assert_sound};

pub(crate) const TESTS: &[Test] = tests![
    a_transaction_reads_what_it_writes: needs atomic_batch,
    a_transaction_that_reads_two_values_is_made_again: needs atomic_batch,
    a_transaction_that_panics_holds_nothing: needs atomic_batch,
    transactions_keep_a_sum: needs atomic_batch,
    a_transaction_that_others_overtake_gives_up: needs atomic_batch,
];

fn a_transaction_reads_what_it_writes(configuration: &Configuration) {
    let (_directory, db) = db(configuration);
    configuration.fill(&mut db.session(), 0..3, 1);
    let value = |number, version| configuration.value(number, version);
    let found = db.transaction(|keys| {
        let key = |number| configuration.key(number);
        assert_eq!(keys.get(key(0))?, Some(value(0, 1)));
        keys.put(key(0), value(0, 2));
        assert_eq!(keys.get(key(0))?, Some(value(0, 2)));
        keys.delete(key(1));
        assert!(!keys.contains_key(key(1))?);
        assert!(!keys.contains_key(key(7))?);
        keys.put(key(7), value(7, 2));
        assert_eq!(db.get(key(7))?, None, "nobody sees it yet");
        keys.contains_key(key(7))
    });
    assert!(found.expect("room"));
    let mut expected = configuration.records([2], 1);
    expected.extend(configuration.records([0, 7], 2));
    assert_holds(&db, &expected);
    let stopped: Result<(), Error> = db.transaction(|keys| {
        keys.put(configuration.key(3), value(3, 1));
        keys.delete(configuration.key(0));
        Err(Error::NotOrdered)
    });
    assert!(matches!(stopped, Err(Error::NotOrdered)));
    assert_holds(&db, &expected);
}

/// A flag that goes up and down again while a transaction reads it twice.
fn a_transaction_that_reads_two_values_is_made_again(configuration: &Configuration) {
    let (_directory, db) = db(configuration);
    configuration.fill(&mut db.session(), [0, 1], 1);
    let key = |number| configuration.key(number);
    let mut tried = 0;
    let done = db.session().transaction(|keys| {
        tried += 1;
        let first = keys.get(key(0))?;
        if tried == 1 {
            db.put(key(0), configuration.value(0, 2))?;
        }
        let second = keys.get(key(0))?;
        if tried == 1 {
            db.put(key(0), configuration.value(0, 1))?;
            assert_ne!(first, second);
        }
        keys.put(key(1), second.expect("it is there"));
        Ok::<_, Error>(first)
    });
    assert_eq!(done.expect("room"), Some(configuration.value(0, 1)));
    assert_eq!(tried, 2);
    assert_eq!(db.get(key(1)).expect("a get"), Some(configuration.value(0, 1)));
}

fn a_transaction_that_panics_holds_nothing(configuration: &Configuration) {
    let (_directory, db) = db(configuration);
    configuration.fill(&mut db.session(), 0..3, 1);
    let work = || {
        let panicking = |keys: &mut chimera::Transaction<'_>| -> Result<(), Error> {
            keys.put(configuration.key(1), configuration.value(1, 2));
            panic!("in the middle of a transaction");
        };
        db.session().transaction(panicking)
    };
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    assert!(outcome.is_err());
    assert_holds(&db, &configuration.records(0..3, 1));
    db.write(&batch_of(configuration, 0..3, 2)).expect("nothing was held");
    assert_holds(&db, &configuration.records(0..3, 2));
}

fn transactions_keep_a_sum(configuration: &Configuration) {
    const ACCOUNTS: u64 = 6;
    let (_directory, db) = db(configuration);
    let account = |number: u64, amount: u64| {
        let mut value = configuration.value(number, 1);
        value[8..16].copy_from_slice(&amount.to_le_bytes());
        value
    };
    for number in 0..ACCOUNTS {
        db.put(configuration.key(number), account(number, 100)).expect("room");
    }
    let gave_up = AtomicU64::new(0);
    at_once(3, |thread| {
        let (mut session, mut chance) = (db.session(), Chance::new(thread));
        for _ in 0..100 {
            let [from, to] = [0; 2].map(|_| chance.below(ACCOUNTS));
            let moved = session.transaction(|accounts| {
                let mut amount = |number| {
                    let value = accounts.get(configuration.key(number));
                    value.map(|value| word(&value.expect("it is always there"), 8))
                };
                let (there, here) = (amount(from)?, amount(to)?);
                if from != to && there > 0 {
                    accounts.put(configuration.key(from), account(from, there - 1));
                    accounts.put(configuration.key(to), account(to, here + 1));
                }
                Ok::<_, Error>(())
            });
            match moved {
                Err(Error::Conflict { .. }) => drop(gave_up.fetch_add(1, Ordering::Relaxed)),
                moved => moved.expect("room"),
            }
        }
    });
    assert!(gave_up.into_inner() < 150, "hardly any transaction ended");
    let amounts = (0..ACCOUNTS)
        .map(|number| db.get(configuration.key(number)).expect("a get").expect("there"));
    assert_eq!(amounts.map(|value| word(&value, 8)).sum::<u64>(), ACCOUNTS * 100);
    assert_sound(&db);
}

fn a_transaction_that_others_overtake_gives_up(configuration: &Configuration) {
    let (_directory, db) = db(configuration);
    configuration.fill(&mut db.session(), 0..2, 1);
    let key = |number| configuration.key(number);
    let mut tried = 0;
    let outcome = db.session().transaction(|keys| {
        tried += 1;
        keys.get(key(0))?;
        db.put(key(0), configuration.value(0, 1 + tried))?;
        keys.put(key(1), configuration.value(1, 9));
        Ok::<_, Error>(())
    });
    assert!(matches!(outcome, Err(Error::Conflict { attempts: 64 })), "{outcome:?}");
    assert_eq!(tried, 64);
    assert_eq!(db.get(key(1)).expect("a get"), Some(configuration.value(1, 1)));
    // Overtaken twice, it is made the third time.
    tried = 0;
    let outcome = db.session().transaction(|keys| {
        tried += 1;
        let is_there = keys.contains_key(key(5))?;
        if tried == 1 {
            db.put(key(5), configuration.value(5, 1))?;
        } else if tried == 2 {
            db.delete(key(5))?;
        }
        keys.put(key(1), configuration.value(1, 1 + tried));
        Ok::<_, Error>(is_there)
    });
    assert!(!outcome.expect("it is made"));
    assert_eq!(tried, 3);
    assert_eq!(db.get(key(1)).expect("a get"), Some(configuration.value(1, 4)));
}
