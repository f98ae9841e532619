//! Changes of one aligned word, made where the value lies.

use chimera::Swap;

use crate::configurations::Configuration;
use crate::harness::{Test, tests};
use crate::records::{Records, assert_holds, at_once, word};
use crate::tools::{copy_store, open, scratch};

pub(crate) const TESTS: &[Test] = tests![
    a_change_of_a_word_takes_no_space: needs in_place,
    any_way_to_change_one_word_is_in_place: needs in_place,
    words_change_in_a_full_store: needs in_place,
    changed_words_survive_the_end_of_the_process: needs in_place,
    words_of_one_value_change_independently: needs in_place,
];

const RECORDS: u64 = 30;

fn a_change_of_a_word_takes_no_space(configuration: &Configuration) {
    const ROUNDS: u64 = 2000;
    let directory = scratch();
    let db = configuration.open(directory.path());
    let mut session = db.session();
    configuration.fill(&mut session, 0..RECORDS, 1);
    let before = db.stats();
    for round in 0..ROUNDS {
        let key = configuration.key(round % RECORDS);
        assert!(session.fetch_add_u64(&key, 8, 1).expect("fetch_add_u64").is_some());
    }
    let after = db.stats();
    // A record is written anew once at most: it says then that this word is not in its checksum.
    let in_place = session.stats().updates_in_place;
    assert!(in_place >= ROUNDS - RECORDS, "{in_place} in place");
    assert_eq!(session.stats().updates + in_place, ROUNDS);
    assert!(after.pmem_bytes <= 2 * before.pmem_bytes, "{before:?} {after:?}");
    let mut records = configuration.records(0..RECORDS, 1);
    for number in 0..RECORDS {
        let times = (0..ROUNDS).filter(|round| round % RECORDS == number).count() as u64;
        let value = records.get_mut(&configuration.key(number)).expect("it is there");
        let sum = word(value, 8).wrapping_add(times);
        value[8..16].copy_from_slice(&sum.to_le_bytes());
    }
    assert_holds(&db, &records);
    drop(session);
    drop(db);
    assert_holds(&configuration.open(directory.path()), &records);
}

fn any_way_to_change_one_word_is_in_place(configuration: &Configuration) {
    let directory = scratch();
    let db = configuration.open(directory.path());
    let mut session = db.session();
    let key = configuration.key(1);
    let mut value = vec![0; 24];
    session.put(&key, &value).expect("put");
    session.fetch_add_u64(&key, 16, 0).expect("the first time");
    let before = session.stats().updates_in_place;
    assert_eq!(session.compare_and_swap_u64(&key, 16, 0, 7).expect("swap"), Some(0));
    assert!(session.update(&key, |it| it[17] = 1).expect("update"));
    value[16..18].copy_from_slice(&[7, 1]);
    let mut new = value.clone();
    new[23] = 9;
    assert_eq!(session.compare_and_swap(&key, &value, &new).expect("swap"), Swap::Swapped);
    assert_eq!(session.stats().updates_in_place, before + 3);
    assert_holds(&db, &Records::from([(key, new)]));
}

fn words_change_in_a_full_store(configuration: &Configuration) {
    let directory = scratch();
    let options = configuration.options().capacity_bytes(configuration.full_bytes);
    let db = open(directory.path(), &options);
    let (mut session, mut records) = (db.session(), Records::new());
    // Ready for changes of this word while there is room.
    for number in 0..RECORDS {
        let key = configuration.key(number);
        session.put(&key, [0; 24]).or_else(|_| session.put(&key, [0; 24])).expect("put");
        session.fetch_add_u64(&key, 8, 5).expect("fetch_add_u64");
        let mut value = vec![0; 24];
        value[8] = 5;
        records.insert(key, value);
    }
    for number in RECORDS.. {
        let (key, value) = (configuration.key(number), configuration.value(number, 1));
        if session.put(&key, &value).is_err() {
            break;
        }
        records.insert(key, value);
    }
    for number in 0..RECORDS {
        let key = configuration.key(number);
        let found = session.fetch_add_u64(&key, 8, 1).expect("in place there is room");
        assert_eq!(found, Some(5));
        records.get_mut(&key).expect("it is there")[8] = 6;
    }
    assert_holds(&db, &records);
}

fn changed_words_survive_the_end_of_the_process(configuration: &Configuration) {
    let directory = scratch();
    let db = open(&directory.path().join("store"), &configuration.still());
    let mut session = db.session();
    let key = configuration.key(1);
    session.put(&key, [0; 24]).expect("put");
    for round in 1..=20 {
        session.fetch_add_u64(&key, 0, 1).expect("fetch_add_u64");
        let left = directory.path().join(format!("left-{round}"));
        copy_store(&directory.path().join("store"), &left);
        let found = configuration.open(&left).get(&key).expect("get").expect("it is there");
        assert_eq!(word(&found, 0), round);
    }
}

fn words_of_one_value_change_independently(configuration: &Configuration) {
    const EACH: u64 = 5000;
    let directory = scratch();
    let db = configuration.open(directory.path());
    let key = configuration.key(1);
    db.put(&key, [0; 24]).expect("put");
    at_once(3, |thread| {
        let mut session = db.session();
        for before in 0..EACH {
            let found = session.fetch_add_u64(&key, 8 * thread as usize, 1);
            assert_eq!(found.expect("fetch_add_u64"), Some(before), "an addition was lost");
        }
    });
    let value = EACH.to_le_bytes().repeat(3);
    assert_holds(&db, &Records::from([(key, value)]));
}
