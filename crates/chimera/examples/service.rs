//! What a service keeps: sessions that expire, counters, requests that are done once, a log of events in order, backups.
//!
//! `cargo run -p chimera --example service`

use chimera::{BackupOptions, Batch, Db, Error, Keyspace, Options, Result};

struct Service {
    db: Db,
    sessions: Keyspace,
    requests: Keyspace,
    events: Keyspace,
}

impl Service {
    fn open(path: &std::path::Path) -> Result<Self> {
        let db = Db::open(path, &Options::new().ordered(true))?;
        let [sessions, requests, events] =
            ["sessions", "requests", "events"].map(|name| db.keyspace(name));
        Ok(Self { sessions: sessions?, requests: requests?, events: events?, db })
    }

    /// Tells whether the token was free.
    fn log_in(&self, token: &str, user: &str, expires: u64) -> Result<bool> {
        self.sessions.put_if_absent(token, [&expires.to_be_bytes()[..], user.as_bytes()].concat())
    }

    /// Whose session it is, unless it has expired.
    fn user(&self, token: &str, now: u64) -> Result<Option<Vec<u8>>> {
        self.sessions.delete_if(token, |value| value[..8] <= now.to_be_bytes()[..])?;
        self.sessions.get_with(token, |value| value[8..].to_vec())
    }

    /// Appends an event, once for each request, and as one write with it; tells whether it was the first time.
    fn record(&self, request: &str, event: &str) -> Result<bool> {
        let number = self.db.fetch_add_u64_or_insert("events", 0, 1, [0; 8])?.to_be_bytes();
        let (request, key) = (self.requests.key_of(request), self.events.key_of(number));
        let mut batch = Batch::new();
        match self.db.write(batch.put(&request, "").put(key, event).require_absent(&request)) {
            Err(Error::ConditionFailed { .. }) => Ok(false),
            written => written.map(|()| true),
        }
    }

    fn events_since(&self, number: u64) -> Result<Vec<Vec<u8>>> {
        self.events.scan(number.to_be_bytes()..)?.map(|record| Ok(record?.1)).collect()
    }
}

pub(crate) fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let service = Service::open(&directory.path().join("data"))?;
    assert!(service.log_in("token", "Ada", 100)? && !service.log_in("token", "Eve", 200)?);
    assert_eq!(service.user("token", 50)?.as_deref(), Some(&b"Ada"[..]));
    assert_eq!(service.user("token", 100)?, None);
    assert!(service.record("1", "paid")? && !service.record("1", "paid")?);
    assert!(service.record("2", "sent")?);
    assert_eq!(service.events_since(1)?, ["sent"].map(Vec::from));
    service.db.backup(directory.path().join("backup"), &BackupOptions::new())?;
    Ok(())
}
