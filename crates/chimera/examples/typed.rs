//! Keys and values that are plain structures, stored as they are in memory.
//!
//! `cargo run -p chimera --example typed`

use std::error::Error;

use chimera::{Options, TypedDb};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// The key: no padding, no pointers.
#[derive(Clone, Copy, Debug, PartialEq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Account {
    branch: u32,
    number: u32,
}

/// The value.
#[derive(Clone, Copy, Debug, PartialEq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Balance {
    cents: i64,
    bookings: u64,
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    // A store of records of one size, which follows from the types.
    let path = directory.path().join("accounts");
    let db = TypedDb::<Account, Balance>::open(path, &Options::new())?;
    let mut session = db.session();

    let account = Account { branch: 7, number: 1001 };
    session.put(&account, &Balance { cents: 12_000, bookings: 1 })?;
    // Both fields change together, or not at all, whatever happens meanwhile.
    let is_there = session.update(&account, |balance| {
        balance.cents -= 4_550;
        balance.bookings += 1;
    })?;
    assert!(is_there);

    let balance = session.get(&account)?.ok_or("no such account")?;
    println!("{account:?}: {balance:?}");
    assert_eq!(balance, Balance { cents: 7_450, bookings: 2 });
    assert_eq!(session.get(&Account { branch: 7, number: 1002 })?, None);
    drop(session);
    db.close()?;
    Ok(())
}
