//! Keyspaces: named parts of a store, whose keys are apart.

use std::collections::BTreeMap;
use std::ops::Bound;

use chimera::{Absent, Db, Encoded, ErrorKind, Keyspace, Options, Plain, Record, Swap};

use crate::configurations::Configuration;
use crate::harness::{Test, tests};
use crate::records::at_once;
use crate::tools::{assert_fails, assert_sound, open, scratch};

pub(crate) const TESTS: &[Test] = tests![
    keys_of_keyspaces_are_apart: needs any_size,
    every_call_stays_inside: needs any_size,
    the_handle_has_the_calls_of_a_session: needs any_size,
    keys_and_values_have_types: needs any_size ordered,
    scans_stay_inside: needs any_size ordered,
    a_keyspace_is_dropped_with_its_keys: needs any_size,
    a_drop_that_ended_in_the_middle_is_ended: needs any_size,
    a_number_that_is_in_use_is_not_given_again: needs any_size,
    names_that_cannot_be_are_refused: needs any_size,
    records_of_one_size_have_no_keyspaces: needs fixed_size,
    a_name_that_is_made_by_many_is_one_keyspace: needs any_size,
    what_is_put_beside_a_drop_is_gone_or_in_the_next: needs any_size,
    a_record_of_a_name_that_is_none_is_said: needs any_size,
];

fn all<P: chimera_pmem::Pmem>(keyspace: &Keyspace<P>) -> BTreeMap<Vec<u8>, Vec<u8>> {
    keyspace.iter().map(|record| record.expect("no damage")).collect()
}

fn record(key: &str, value: &str) -> Record {
    (key.into(), value.into())
}

fn keys_of_keyspaces_are_apart(configuration: &Configuration) {
    let directory = scratch();
    let db = configuration.open(directory.path());
    db.put("key", "of the store").expect("room");
    for name in ["users", "orders", "u"] {
        let mut session = db.keyspace(name).expect("room").session();
        assert!(session.put("key", name).expect("room"), "it is new here");
        session.put("", "the empty key").expect("room");
    }
    assert_eq!(db.keyspaces().expect("names"), ["orders", "u", "users"]);
    db.close().expect("nobody else has it");
    let db = configuration.open(directory.path());
    for name in ["users", "orders", "u"] {
        let keyspace = db.keyspace(name).expect("it is there");
        let expected = [record("", "the empty key"), record("key", name)];
        assert_eq!(all(&keyspace), expected.into());
        assert_eq!(keyspace.count().expect("no damage"), 2);
    }
    assert_eq!(db.get("key").expect("a get"), Some("of the store".into()));
    // The record of the store, two of each keyspace, its name, and the number of the next one.
    assert_eq!(db.len(), 1 + 3 * 3 + 1);
    assert_sound(&db);
}

fn every_call_stays_inside(configuration: &Configuration) {
    let directory = scratch();
    let db = configuration.open(directory.path());
    let (one, other) = (db.keyspace("one").expect("room"), db.keyspace("other").expect("room"));
    let (mut session, mut others) = (one.session(), other.session());
    let number = 7_u64.to_le_bytes();
    for key in ["a", "b", "c"] {
        others.put(key, number).expect("room");
    }
    let before = all(&other);
    assert_eq!(session.multi_put(&[("a", number), ("b", number)]).expect("room"), 2);
    let found = session.multi_get(&["a", "c"]).expect("gets");
    assert_eq!(found, [Some(number.to_vec()), None]);
    assert!(!session.put_if_absent("a", "").expect("it is there"));
    assert!(session.put_if_absent("c", number).expect("room"));
    assert_eq!(session.fetch_add_u64("a", 0, 1).expect("room"), Some(7));
    assert_eq!(session.fetch_add_u64_or_insert("d", 0, 2, number).expect("room"), 7);
    assert_eq!(session.compare_and_swap_u64("a", 0, 8, 1).expect("room"), Some(8));
    assert!(session.update("b", |value| value[0] = 1).expect("room"));
    assert!(!session.update_or_insert("b", "", |value| value[1] = 1).expect("room"));
    let kept = session.try_update("b", |_| Err(chimera::Error::NotOrdered));
    assert!(kept.is_err());
    assert_eq!(session.compare_and_swap("e", Absent, "new").expect("room"), Swap::Swapped);
    assert!(session.delete("c").expect("a delete"));
    assert!(session.delete_if("d", |value| value[0] == 9).expect("a delete"));
    assert!(!session.contains_key("d").expect("a get"));
    assert_eq!(session.get_with("e", <[u8]>::len).expect("a get"), Some(3));
    assert_eq!(session.get("a").expect("a get"), Some(1_u64.to_le_bytes().to_vec()));
    let keys: Vec<_> = all(&one).into_keys().collect();
    assert_eq!(keys, ["a", "b", "e"].map(Vec::from));
    assert_eq!(all(&other), before, "nothing has changed there");
}

fn the_handle_has_the_calls_of_a_session(configuration: &Configuration) {
    let directory = scratch();
    let db = configuration.open(directory.path());
    let keyspace = db.keyspace("one").expect("room");
    let number = 7_u64.to_le_bytes();
    db.put("a", "of the store").expect("room");
    assert!(keyspace.put("a", number).expect("room"));
    assert_eq!(keyspace.multi_put(&[("b", number)]).expect("room"), 1);
    assert!(keyspace.put_counter("c", number, 0).expect("room"));
    assert!(!keyspace.put_if_absent("a", "").expect("it is there"));
    let found = keyspace.multi_get(&["a", "x"]).expect("gets");
    assert_eq!(found, [Some(number.to_vec()), None]);
    assert_eq!(keyspace.fetch_add_u64("a", 0, 1).expect("room"), Some(7));
    assert_eq!(keyspace.fetch_add_u64_or_insert("d", 0, 2, number).expect("room"), 7);
    assert_eq!(keyspace.compare_and_swap_u64("a", 0, 8, 1).expect("room"), Some(8));
    assert!(keyspace.update("b", |value| value[0] = 1).expect("room"));
    assert!(!keyspace.update_or_insert("b", "", |value| value[1] = 1).expect("room"));
    assert!(keyspace.try_update("b", |_| Err(chimera::Error::NotOrdered)).is_err());
    assert_eq!(keyspace.compare_and_swap("e", Absent, "new").expect("room"), Swap::Swapped);
    assert!(keyspace.delete("c").expect("a delete"));
    assert!(keyspace.delete_if("d", |value| value[0] == 9).expect("a delete"));
    assert!(!keyspace.contains_key("d").expect("a get"));
    assert_eq!(keyspace.get_with("e", <[u8]>::len).expect("a get"), Some(3));
    assert_eq!(keyspace.get("a").expect("a get"), Some(1_u64.to_le_bytes().to_vec()));
    assert_eq!(all(&keyspace).len(), 3);
    assert_eq!(db.get("a").expect("a get"), Some("of the store".into()));
}

fn keys_and_values_have_types(configuration: &Configuration) {
    let directory = scratch();
    let db = open(directory.path(), &configuration.options().ordered(true));
    let points = db.keyspace("points").expect("room").typed::<(i32, String), Plain<[u16; 3]>>();
    let counts = db.keyspace("counts").expect("room").typed::<i8, u64>();
    let texts = db.keyspace("texts").expect("room").typed::<String, Encoded<Vec<String>>>();
    let key = |number: i32, name: &str| (number, name.to_owned());
    for (number, name) in [(3, "c"), (-7, "b"), (3, ""), (-7, "ab")] {
        assert!(points.put(&key(number, name), &Plain([number as u16; 3])).expect("room"));
    }
    let keys = |scan: chimera::Result<chimera::TypedRecords<_, _>>| {
        scan.expect("in order").map(|record| record.expect("of its types").0).collect::<Vec<_>>()
    };
    let all = [key(-7, "ab"), key(-7, "b"), key(3, ""), key(3, "c")];
    assert_eq!(keys(points.scan(..)), all);
    assert_eq!(keys(points.scan(key(-7, "b")..=key(3, ""))), all[1..3]);
    assert_eq!(
        points.scan(..).expect("in order").next_back().expect("one").expect("of its types").0,
        all[3]
    );
    assert_eq!(points.iter().count(), 4);
    assert!(!counts.update(&-1, |_| ()).expect("there is none"));
    assert!(counts.update_or_insert(&-1, &1, |count| *count += 1).expect("room"));
    assert!(!counts.update_or_insert(&-1, &1, |count| *count += 1).expect("room"));
    assert!(counts.put_if_absent(&4, &7).expect("room"));
    assert_eq!(counts.multi_get(&[4, 5, -1]).expect("gets"), [Some(7), None, Some(2)]);
    assert_eq!(counts.keyspace().fetch_add_u64([0x84], 0, 1).expect("room"), Some(7));
    assert_eq!(counts.compare_and_swap(&4, Some(&8), Some(&9)).expect("room"), Swap::Swapped);
    assert_eq!(counts.compare_and_swap(&4, None, Some(&9)).expect("room"), Swap::Different);
    assert_eq!(counts.compare_and_swap(&4, Some(&9), None).expect("room"), Swap::Swapped);
    assert!(!counts.contains_key(&4).expect("a get") && counts.delete(&-1).expect("a delete"));
    assert_eq!(counts.multi_put(&[(7, 70), (-7, 7), (7, 71)]).expect("room"), 2);
    let stop = |stops: bool| {
        counts.try_update(&7, |count| {
            *count += 1;
            if stops { Err(chimera::Error::NotOrdered) } else { Ok(()) }
        })
    };
    assert!(stop(true).is_err() && stop(false).expect("room"));
    assert!(!counts.delete_if(&7, |count| *count == 71).expect("a delete"));
    assert!(counts.delete_if(&7, |count| *count == 72).expect("a delete"));
    assert!(!counts.delete_if(&7, |_| true).expect("a delete"));
    let words = Encoded(vec!["one".to_owned(), "two".to_owned()]);
    texts.put(&"words".to_owned(), &words).expect("room");
    assert_eq!(texts.get(&"words".to_owned()).expect("of its type"), Some(words));
    // With other types.
    let wrong = db.keyspace("points").expect("there").typed::<u8, u64>();
    assert_fails(wrong.iter().next().expect("a record"), &["`points`", "none of its type"]);
    wrong.keyspace().put([9], "three").expect("room");
    assert_fails(wrong.get(&9), &["`points`", "a value is none of its type"]);
    assert_fails(wrong.update(&9, |number| *number = 1), &["none of its type"]);
    assert_fails(wrong.delete_if(&9, |_| true), &["none of its type"]);
    assert_fails(wrong.update_or_insert(&9, &1, |number| *number = 1), &["none of its type"]);
    assert_eq!(wrong.keyspace().get([9]).expect("a get"), Some("three".into()), "it stays");
}

fn scans_stay_inside(configuration: &Configuration) {
    let directory = scratch();
    let db = open(directory.path(), &configuration.options().ordered(true));
    let names = ["first", "second", "third"].map(|name| db.keyspace(name).expect("room"));
    for keyspace in &names {
        let mut session = keyspace.session();
        for key in ["", "a", "ab", "b", "\u{7f}"] {
            session.put(key, "value").expect("room");
        }
        session.put([255; 3], "highest").expect("room");
    }
    db.put("z", "of the store").expect("room");
    let keyspace = &names[1];
    let keys = |scan: chimera::Result<chimera::KeyspaceScan>| {
        let keys = scan.expect("in order").map(|record| record.expect("no damage").0);
        keys.collect::<Vec<_>>()
    };
    let everything = [&b""[..], b"a", b"ab", b"b", b"\x7f", &[255; 3]].map(<[u8]>::to_vec);
    assert_eq!(keys(keyspace.scan(..)), everything);
    assert_eq!(keys(keyspace.scan("a".."b")), everything[1..3]);
    assert_eq!(keys(keyspace.scan("ab"..)), everything[2..]);
    assert_eq!(keys(keyspace.scan(..="a")), everything[..2]);
    assert_eq!(keys(keyspace.scan((Bound::Excluded("a"), Bound::Unbounded))), everything[2..]);
    assert_eq!(keys(keyspace.scan_prefix("a")), everything[1..3]);
    let backwards: Vec<_> =
        keyspace.scan(..).expect("in order").rev().map(Result::unwrap).collect();
    assert_eq!(backwards[0], ([255; 3].to_vec(), b"highest".to_vec()));
    assert_eq!(backwards.len(), everything.len());
    assert_eq!(keyspace.first().expect("in order"), Some(record("", "value")));
    assert_eq!(keyspace.last().expect("in order").map(|last| last.0), Some(vec![255; 3]));
    assert_eq!(keyspace.delete_range("a".."b").expect("in order"), 2);
    assert_eq!(keyspace.count().expect("no damage"), 4);
    assert_eq!(keyspace.delete_range(..).expect("in order"), 4);
    assert_eq!(names.each_ref().map(|it| it.count().expect("no damage")), [6, 0, 6]);
    assert_eq!(keyspace.first().expect("in order"), None);
}

fn a_keyspace_is_dropped_with_its_keys(configuration: &Configuration) {
    for is_ordered in [false, true] {
        let directory = scratch();
        let db = open(directory.path(), &configuration.options().ordered(is_ordered));
        let mut kept = db.keyspace("kept").expect("room").session();
        let mut gone = db.keyspace("gone").expect("room").session();
        for key in 0..300_u32 {
            kept.put(key.to_le_bytes(), "kept").expect("room");
            gone.put(key.to_le_bytes(), "gone").expect("room");
        }
        drop((kept, gone));
        assert!(db.drop_keyspace("gone").expect("room"));
        assert!(!db.drop_keyspace("gone").expect("there is none"));
        assert_eq!(db.keyspaces().expect("names"), ["kept"]);
        assert_eq!(db.len(), 300 + 2);
        // One of the same name is another one.
        let again = db.keyspace("gone").expect("room");
        assert_eq!(again.count().expect("no damage"), 0);
        assert_eq!(db.keyspace("kept").expect("there").count().expect("no damage"), 300);
        assert_sound(&db);
    }
}

fn a_drop_that_ended_in_the_middle_is_ended(configuration: &Configuration) {
    let directory = scratch();
    let db = configuration.open(directory.path());
    let keyspace = db.keyspace("gone").expect("room");
    for key in 0..50_u32 {
        keyspace.session().put(key.to_le_bytes(), "gone").expect("room");
    }
    // As a drop begins.
    let name = [&[255, 0, 0, 0][..], b"gone"].concat();
    let number = db.get(&name).expect("a get").expect("a name");
    let dropped =
        (u64::from_le_bytes(number[..].try_into().expect("8 bytes")) | 1 << 32).to_le_bytes();
    db.put(&name, dropped).expect("room");
    assert_eq!(db.keyspaces().expect("names"), Vec::<String>::new());
    let again = db.keyspace("gone").expect("room");
    assert_eq!((again.count().expect("no damage"), db.len()), (0, 2));
    again.session().put("new", "value").expect("room");
    db.put(&name, dropped).expect("room");
    assert!(db.drop_keyspace("gone").expect("a drop"), "of the one before");
    assert_eq!(db.keyspaces().expect("names"), Vec::<String>::new());
}

fn a_number_that_is_in_use_is_not_given_again(configuration: &Configuration) {
    let directory = scratch();
    let db = configuration.open(directory.path());
    for name in ["one", "two"] {
        db.keyspace(name).expect("room").put("key", name).expect("room");
    }
    // A key from before there were keyspaces, where the third one's would be.
    db.put([255, 0, 0, 3, 9], "old").expect("room");
    // What is written down as the next number is lost, as by salvage.
    assert!(db.delete([255, 0, 0, 0]).expect("a delete"));
    let three = db.keyspace("three").expect("room");
    assert_eq!(three.count().expect("no damage"), 0);
    three.put("key", "three").expect("room");
    assert!(db.drop_keyspace("three").expect("a drop"));
    for name in ["one", "two"] {
        let keyspace = db.keyspace(name).expect("it is there");
        assert_eq!(all(&keyspace), [record("key", name)].into());
    }
    assert_eq!(db.get([255, 0, 0, 3, 9]).expect("a get"), Some("old".into()));
}

fn names_that_cannot_be_are_refused(configuration: &Configuration) {
    let directory = scratch();
    let db = configuration.open(directory.path());
    assert_fails(db.keyspace(""), &["1 to 255 bytes"]);
    assert_fails(db.keyspace(&"n".repeat(256)), &["1 to 255 bytes"]);
    assert_eq!(db.keyspace("").expect_err("none").kind(), ErrorKind::InvalidArgument);
    db.keyspace(&"n".repeat(100)).expect("room");
    db.close().expect("nobody else has it");
    let reader = open(directory.path(), &Options::new().read_only(true));
    assert_fails(reader.keyspace("none"), &["`none`", "reading only"]);
    reader.keyspace(&"n".repeat(100)).expect("it is there");
    assert_eq!(reader.keyspaces().expect("names"), ["n".repeat(100)]);
}

fn records_of_one_size_have_no_keyspaces(configuration: &Configuration) {
    let directory = scratch();
    let db = configuration.open(directory.path());
    assert_fails(db.keyspace("users"), &["any size"]);
    assert_fails(db.drop_keyspace("users"), &["any size"]);
}

fn a_name_that_is_made_by_many_is_one_keyspace(configuration: &Configuration) {
    let directory = scratch();
    let db = configuration.open(directory.path());
    at_once(4, |thread| {
        for number in 0..20 {
            let keyspace = db.keyspace(&format!("name {number}")).expect("room");
            keyspace.session().put([thread as u8], "value").expect("room");
        }
    });
    for number in 0..20 {
        let keyspace = db.keyspace(&format!("name {number}")).expect("it is there");
        assert_eq!(keyspace.count().expect("no damage"), 4, "of {number}");
    }
    assert_eq!(db.keyspaces().expect("names").len(), 20);
}

fn what_is_put_beside_a_drop_is_gone_or_in_the_next(configuration: &Configuration) {
    let directory = scratch();
    let db = configuration.open(directory.path());
    at_once(3, |thread| {
        for round in 0..30_u32 {
            if thread == 0 {
                db.drop_keyspace("part").expect("a drop");
                continue;
            }
            let mut session = db.keyspace("part").expect("room").session();
            for key in 0..10_u32 {
                session.put((round * 10 + key).to_le_bytes(), "value").expect("room");
            }
        }
    });
    let last = db.keyspace("part").expect("room");
    assert!(last.count().expect("no damage") <= 300);
    assert!(db.drop_keyspace("part").expect("a drop"));
    assert_eq!(db.keyspaces().expect("names"), Vec::<String>::new());
    assert_sound(&db);
}

fn a_record_of_a_name_that_is_none_is_said(configuration: &Configuration) {
    let directory = scratch();
    let db: Db = configuration.open(directory.path());
    db.keyspace("users").expect("room");
    for value in [&b""[..], b"short", &[0; 8], &[255; 8], &[1; 9]] {
        db.put([&[255, 0, 0, 0][..], b"users"].concat(), value).expect("room");
        assert_fails(db.keyspace("users"), &["`users`", "byte 255"]);
        assert_fails(db.drop_keyspace("users"), &["`users`"]);
    }
}
